"""The shapes that a model must answer in, compiled to what the daemon enforces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Field, create_model

from batos.gate.citing import Quoted
from batos.inference.decisions.schema import Decision
from batos.memory.evidence import MOST_DOCUMENTS

#: A quotation long enough to prove something and short enough to be copied exactly.
QUOTE = 240
MOST_PARTS = 9
#: Longest sub-query, in characters.
QUERY = 280
#: Longest answer of a part and of a mission, in characters: where the grammar cuts.
PART_ANSWER, ANSWER = 900, 1_800
#: Longest gist of an answer that is a vote.
GIST = 80

_Unanswered: TypeAlias = Annotated[
    list[Annotated[int, Field(ge=1, le=MOST_PARTS)]],
    Field(max_length=MOST_PARTS, description="the numbers of the sub-questions that stay open"),
]


class Citation(BaseModel):
    """A verbatim span of one document."""

    document: Annotated[int, Field(ge=1, le=MOST_DOCUMENTS)]
    quote: Annotated[str, Field(max_length=QUOTE)]


class PlainPart(BaseModel):
    """A facet's answer when there are no documents."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    known: Annotated[bool, Field(description="whether there is an answer")]


class Part(BaseModel):
    """A facet's answer to its sub-query, from documents."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    citations: Annotated[list[Citation], Field(max_length=3, description="the documents' own words that it rests on")]
    known: Annotated[bool, Field(description="whether there is an answer")]


class PlainWoven(BaseModel):
    """The answer of a mission when there are no documents."""

    answer: Annotated[str, Field(max_length=ANSWER)]
    unanswered: _Unanswered


class Woven(BaseModel):
    """The answer of a mission, from documents."""

    answer: Annotated[str, Field(max_length=ANSWER)]
    citations: Annotated[list[Citation], Field(max_length=4, description="the documents' own words that it rests on")]
    unanswered: _Unanswered


class PlainVoiced(BaseModel):
    """The answer of a mind within another without documents: no longer than a facet's answer."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    unanswered: _Unanswered


class Voiced(BaseModel):
    """The answer of a mind within another, from documents: no longer than a facet's answer."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    citations: Annotated[list[Citation], Field(max_length=3, description="the documents' own words that it rests on")]
    unanswered: _Unanswered


_Gist: TypeAlias = Annotated[
    str, Field(max_length=GIST, description="the answer alone, in a few words: a number, yes or no, a name, a phrase")
]


class PlainBallot(BaseModel):
    """A facet's vote when there are no documents: `gist` is what is counted."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    gist: _Gist
    known: Annotated[bool, Field(description="whether there is an answer")]


class Ballot(BaseModel):
    """A facet's vote, from documents."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    citations: Annotated[list[Citation], Field(max_length=3, description="the documents' own words that it rests on")]
    gist: _Gist
    known: Annotated[bool, Field(description="whether there is an answer")]


class PlainMindBallot(BaseModel):
    """The vote of a mind within another when there are no documents."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    gist: _Gist
    unanswered: _Unanswered


class MindBallot(BaseModel):
    """The vote of a mind within another, from documents."""

    answer: Annotated[str, Field(max_length=PART_ANSWER)]
    citations: Annotated[list[Citation], Field(max_length=3, description="the documents' own words that it rests on")]
    gist: _Gist
    unanswered: _Unanswered


class Changed(BaseModel):
    """The answer of a mission as a key protocol changes it."""

    answer: Annotated[str, Field(max_length=ANSWER)]


PART: Decision[Part] = Decision(Part)
PLAIN_PART: Decision[PlainPart] = Decision(PlainPart)
WOVEN: Decision[Woven] = Decision(Woven)
PLAIN_WOVEN: Decision[PlainWoven] = Decision(PlainWoven)
VOICED: Decision[Voiced] = Decision(Voiced)
PLAIN_VOICED: Decision[PlainVoiced] = Decision(PlainVoiced)
BALLOT: Decision[Ballot] = Decision(Ballot)
PLAIN_BALLOT: Decision[PlainBallot] = Decision(PlainBallot)
MIND_BALLOT: Decision[MindBallot] = Decision(MindBallot)
PLAIN_MIND_BALLOT: Decision[PlainMindBallot] = Decision(PlainMindBallot)
CHANGED: Decision[Changed] = Decision(Changed)


def part(cites: bool, *, votes: bool = False) -> Decision[Any]:
    """Return the shape of a facet's answer, with or without documents; with `votes` also the gist that is counted."""
    if votes:
        return BALLOT if cites else PLAIN_BALLOT
    return PART if cites else PLAIN_PART


def woven(cites: bool, *, inner: bool = False, votes: bool = False) -> Decision[Any]:
    """Return the shape of the weave's answer, with or without documents; for a mind within another that of a part."""
    if inner and votes:
        return MIND_BALLOT if cites else PLAIN_MIND_BALLOT
    if inner:
        return VOICED if cites else PLAIN_VOICED
    return WOVEN if cites else PLAIN_WOVEN


@lru_cache(maxsize=16)
def choice(candidates: int) -> Decision[BaseModel]:
    """Return the shape of a choice between so many candidates, by their numbers as shown, from 1."""
    best: Any = (Annotated[int, Field(ge=1, le=candidates, description="the number of the answer that stands")], ...)
    shape: type[BaseModel] = create_model("Choice", best=best)
    return Decision(shape)


def citations_of(value: BaseModel) -> tuple[Quoted, ...]:
    """Return the citations of a part or a woven answer."""
    cited: list[Citation] = getattr(value, "citations", [])
    return tuple(Quoted(each.document, each.quote) for each in cited)


@lru_cache(maxsize=64)
def decomposition(slots: tuple[str, ...]) -> Decision[BaseModel]:
    """Return the shape of one bounded sub-query for each pillar, by slot: no pillar can be forgotten or named twice."""
    query: Any = (Annotated[str, Field(max_length=QUERY)], ...)
    shape: type[BaseModel] = create_model("Decomposition", **dict.fromkeys(slots, query))
    return Decision(shape)


def sub_queries(value: BaseModel, question: str) -> Mapping[str, str]:
    """Return the sub-queries by slot, on one line each; a pillar that was given none gets the question itself."""
    return {slot: " ".join(text.split()) or question for slot, text in value.model_dump().items()}
