"""The shapes of replies: answers are free text, and the few decisions are compiled to what the daemon enforces."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, create_model

from batos.inference.decisions.free_text import FreeText
from batos.inference.decisions.schema import Decision
from batos.memory.sentences import sentence_spans

#: The end of a sentence that is whole.
_ENDED = re.compile(r"""[.!?…。！？؟۔।॥;`|][\s"'”’»)\]」』*_]*\Z""")

#: Longest citation that a method gives, in characters.
QUOTE = 240
MOST_PARTS = 9
#: Longest sub-query, in characters.
QUERY = 280
#: The same in lean form.
SHORT_QUERY = 140
#: Longest answer of a part and of a mission, in characters.
PART_ANSWER, ANSWER = 900, 1_800


def whole_sentences(text: str) -> str:
    """Return the sentences at the head of a text that was cut, without the last one if it stops in the middle.

    >>> whole_sentences("Lamps burn. They are wound every fo")
    'Lamps burn.'
    """
    spans = sentence_spans(text)
    if spans and not _ENDED.search(text[: spans[-1][1]]):
        spans.pop()
    return text[: spans[-1][1]] if spans else ""


#: The answer of a part, and of a mission: plain text.
PART: Final = FreeText(PART_ANSWER, whole_sentences)
WHOLE: Final = FreeText(ANSWER, whole_sentences)


def answer_shape(*, inner: bool) -> FreeText:
    """Return the shape of a mind's answer; that of a mind within another is a part's."""
    return PART if inner else WHOLE


@lru_cache(maxsize=16)
def choice(candidates: int) -> Decision[BaseModel]:
    """Return the shape of a choice between so many candidates, by their numbers as shown, from 1."""
    best: Any = (Annotated[int, Field(ge=1, le=candidates, description="the number of the answer that stands")], ...)
    shape: type[BaseModel] = create_model("Choice", best=best)
    return Decision(shape)


@lru_cache(maxsize=2 * MOST_PARTS)
def decomposition(parts: int, most: int = QUERY) -> Decision[BaseModel]:
    """Return the shape of one bounded sub-query for each of so many parts, by plain keys: `q1`, `q2` and so on.

    Keys that say more are copied by small models in place of questions. A sub-query has at most `most` characters.
    """
    query: Any = (Annotated[str, Field(max_length=most)], ...)
    keys = (f"q{number}" for number in range(1, parts + 1))
    shape: type[BaseModel] = create_model("Decomposition", **dict.fromkeys(keys, query))
    return Decision(shape)


def sub_queries(value: BaseModel) -> tuple[str, ...]:
    """Return the sub-queries of a decomposition in the order of its parts, on one line each."""
    return tuple(" ".join(str(text).split()) for text in value.model_dump().values())
