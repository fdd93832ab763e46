"""The shapes that a model must answer in, compiled to what the daemon enforces."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from batos.inference.schema import Decision

#: A quotation long enough to prove something and short enough to be copied exactly.
QUOTE = 240
MOST_PARTS = 9


class Citation(BaseModel):
    """A verbatim span of one document."""

    document: Annotated[int, Field(ge=1, le=99)]
    quote: Annotated[str, Field(max_length=QUOTE)]


class Part(BaseModel):
    """A facet's answer to its sub-query, from documents."""

    answer: Annotated[str, Field(max_length=900)]
    citations: Annotated[list[Citation], Field(max_length=3)]
    known: bool


class PlainPart(BaseModel):
    """A facet's answer when there are no documents."""

    answer: Annotated[str, Field(max_length=900)]
    known: bool


class Woven(BaseModel):
    """The answer of a mission, from documents; `unanswered` numbers the sub-queries that stay open."""

    answer: Annotated[str, Field(max_length=1_800)]
    citations: Annotated[list[Citation], Field(max_length=4)]
    unanswered: Annotated[list[Annotated[int, Field(ge=1, le=MOST_PARTS)]], Field(max_length=MOST_PARTS)]


class PlainWoven(BaseModel):
    """The answer of a mission when there are no documents."""

    answer: Annotated[str, Field(max_length=1_800)]
    unanswered: Annotated[list[Annotated[int, Field(ge=1, le=MOST_PARTS)]], Field(max_length=MOST_PARTS)]


PART: Decision[Part] = Decision(Part)
PLAIN_PART: Decision[PlainPart] = Decision(PlainPart)
WOVEN: Decision[Woven] = Decision(Woven)
PLAIN_WOVEN: Decision[PlainWoven] = Decision(PlainWoven)


@lru_cache(maxsize=64)
def decomposition(slots: tuple[str, ...]) -> Decision[BaseModel]:
    """One bounded sub-query for each pillar, by slot: no pillar can be forgotten or named twice."""
    query: Any = (Annotated[str, Field(max_length=280)], ...)
    shape: type[BaseModel] = create_model("Decomposition", **dict.fromkeys(slots, query))
    return Decision(shape)


def sub_queries(value: BaseModel, question: str) -> Mapping[str, str]:
    """Sub-query by slot; a pillar that was given none works on the question itself."""
    return {slot: text.strip() or question for slot, text in value.model_dump().items()}
