"""The shapes that a model must answer in, compiled to what the daemon enforces."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, Field, create_model

from batos.gate.quotation_search import Quotation
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


_Citations: TypeAlias = list[Citation]
_Gist: TypeAlias = Annotated[
    str, Field(max_length=GIST, description="the answer alone, in a few words: a number, yes or no, a name, a phrase")
]
_KnownModel: TypeAlias = Annotated[bool, Field(description="whether there is an answer")]


@lru_cache(maxsize=16)
def _answer(longest: int, quotes: int, *, gist: bool, whole: bool) -> Decision[Any]:
    """Return the shape of an answer of at most `longest` characters, with up to `quotes` citations if any.

    A vote has a `gist`, which is counted. A whole answer names the sub-queries that stay open; a part's says whether
    the part knows an answer.
    """
    fields: dict[str, Any] = {"answer": (Annotated[str, Field(max_length=longest)], ...)}
    if quotes:
        said = "the documents' own words that it rests on"
        fields["citations"] = (Annotated[_Citations, Field(max_length=quotes, description=said)], ...)
    if gist:
        fields["gist"] = (_Gist, ...)
    if whole:
        fields["unanswered"] = (_Unanswered, ...)
    else:
        fields["known"] = (_KnownModel, ...)
    shape: type[BaseModel] = create_model("Answer", **fields)
    return Decision(shape)


class ChangedAnswer(BaseModel):
    """The answer of a mission as a key protocol changes it."""

    answer: Annotated[str, Field(max_length=ANSWER)]


CHANGED: Decision[ChangedAnswer] = Decision(ChangedAnswer)


def part(cites: bool, *, votes: bool = False) -> Decision[Any]:
    """Return the shape of a facet's answer, with or without documents; with `votes` also the gist that is counted."""
    return _answer(PART_ANSWER, 3 if cites else 0, gist=votes, whole=False)


def weave_decision(cites: bool, *, inner: bool = False, votes: bool = False) -> Decision[Any]:
    """Return the shape of the weave's answer, with or without documents; for a mind within another that of a part."""
    if inner:
        return _answer(PART_ANSWER, 3 if cites else 0, gist=votes, whole=True)
    return _answer(ANSWER, 4 if cites else 0, gist=False, whole=True)


PART, PLAIN_PART = part(cites=True), part(cites=False)
WOVEN, PLAIN_WOVEN = weave_decision(cites=True), weave_decision(cites=False)


@lru_cache(maxsize=16)
def choice(candidates: int) -> Decision[BaseModel]:
    """Return the shape of a choice between so many candidates, by their numbers as shown, from 1."""
    best: Any = (Annotated[int, Field(ge=1, le=candidates, description="the number of the answer that stands")], ...)
    shape: type[BaseModel] = create_model("Choice", best=best)
    return Decision(shape)


def citations_of(value: BaseModel) -> tuple[Quotation, ...]:
    """Return the citations of a part or a woven answer."""
    cited: list[Citation] = getattr(value, "citations", [])
    return tuple(Quotation(each.document, each.quote) for each in cited)


@lru_cache(maxsize=MOST_PARTS)
def decomposition(parts: int) -> Decision[BaseModel]:
    """Return the shape of one bounded sub-query for each of so many parts, by plain keys: `q1`, `q2` and so on.

    Keys that say more are copied by small models in place of questions.
    """
    query: Any = (Annotated[str, Field(max_length=QUERY)], ...)
    keys = (f"q{number}" for number in range(1, parts + 1))
    shape: type[BaseModel] = create_model("Decomposition", **dict.fromkeys(keys, query))
    return Decision(shape)


def sub_queries(value: BaseModel) -> tuple[str, ...]:
    """Return the sub-queries of a decomposition in the order of its parts, on one line each."""
    return tuple(" ".join(str(text).split()) for text in value.model_dump().values())
