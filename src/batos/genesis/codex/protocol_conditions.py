"""Conditions of key protocols: they are computed, so that no model call is spent on the choice."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from batos.genesis.codex.value_checks import ValueFault, refusal

EFFORTS = ("reflex", "cycle", "council")

#: Each condition and what it must be.
CONDITIONS: Mapping[str, str] = {
    "efforts": f"a list of {', '.join(EFFORTS)}",
    "words": "a list of words or phrases",
    "without": "a list of words or phrases",
    "min_words": "a whole number",
    "max_words": "a whole number",
    "min_parts": "a whole number",
    "evidence": "true or false",
}


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts with which a protocol's conditions are compared, known once there is an answer.

    `parts` counts the parts that answered.
    """

    query: str
    effort: str
    parts: int
    has_evidence: bool


def check(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the conditions of a `when` table. Raises: PydanticCustomError: one is wrong, or two contradict."""
    faults: list[ValueFault] = []
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in CONDITIONS:
            faults.append(ValueFault("condition", path=(name,), known=tuple(CONDITIONS)))
        elif not _is_right(name, value):
            what = f"`{name}` must be {CONDITIONS[name]}"
            faults.append(ValueFault(what, f"Write `{name}` as {CONDITIONS[name]}.", (name,)))
        else:
            found[name] = tuple(value) if isinstance(value, list) else value
    faults += _find_contradictions(found)
    if not values:
        faults.append(ValueFault("`when` has no condition", "Write one, or remove `when`."))
    if faults:
        raise refusal(*faults)
    return MappingProxyType(found)


def _find_contradictions(found: Mapping[str, Any]) -> Iterator[ValueFault]:
    """Yield conditions that can never hold together."""
    least, most = found.get("min_words", 0), found.get("max_words")
    if most is not None and least > most:
        message = f"`min_words` is {least} and `max_words` {most}: no question fits both"
        yield ValueFault(message, "Raise `max_words`, or lower `min_words`.", ("max_words",))
    without = {fold(phrase) for phrase in found.get("without", ())}
    for place, phrase in enumerate(found.get("words", ())):
        if fold(phrase) in without:
            what = f"{phrase!r} is in `words` and in `without`"
            yield ValueFault(what, "Remove it from one of them.", ("words", place))


def holds(when: Mapping[str, Any] | None, situation: Situation) -> bool:
    """Test if every condition holds. A protocol without conditions never applies."""
    if not when:
        return False
    text = fold(situation.query)
    words = len(text.split())
    return (
        ("efforts" not in when or situation.effort in when["efforts"])
        and ("words" not in when or mentions(text, when["words"]))
        and not mentions(text, when.get("without", ()))
        and words >= when.get("min_words", 0)
        and ("max_words" not in when or words <= when["max_words"])
        and situation.parts >= when.get("min_parts", 0)
        and ("evidence" not in when or situation.has_evidence is when["evidence"])
    )


def fold(text: str) -> str:
    """Return the form in which words are compared: NFKC, no case, one kind of apostrophe, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).replace("\u2019", "'").casefold().split())


def mentions(text: str, phrases: Iterable[str]) -> bool:
    """Test if a folded text has one of the phrases as whole words (CJK phrases: anywhere)."""
    return any(_pattern(phrase).search(text) for phrase in phrases)


@lru_cache(maxsize=1024)
def _pattern(phrase: str) -> re.Pattern[str]:
    phrase = fold(phrase)
    before = r"(?<!\w)" if phrase[:1].isascii() else ""
    after = r"(?!\w)" if phrase[-1:].isascii() else ""
    return re.compile(before + re.escape(phrase) + after)


def _is_right(name: str, value: Any) -> bool:
    if name == "evidence":
        return isinstance(value, bool)
    if CONDITIONS[name] == "a whole number":
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    texts = isinstance(value, list) and bool(value) and all(isinstance(item, str) and item.strip() for item in value)
    return texts and (name != "efforts" or set(value) <= set(EFFORTS))
