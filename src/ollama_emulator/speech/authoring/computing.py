"""Write methods that compute, chosen by the words of their intent, with checks that a method without effect fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ollama_emulator.speech.authoring.thinking import about
from ollama_emulator.speech.authoring.wish_texts import MethodCheck, MethodWish, WrittenMethod, method

_LISTS: Final = re.compile(r"^(items|values|numbers|words|lines|parts|entries|names|list|rows|texts|\w+_list)$")
_NUMBERS: Final = re.compile(r"^(n|limit|count|many|number|amount|size|width|most|least|factor|\w+_count)$")
_PLAIN: Final = re.compile(r"[^\W\d_]+")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class _Sum:
    """A computation on one argument: its source, the same as a Python function, and two values to check it with."""

    expression: str
    value: Callable[[Any], Any]
    samples: tuple[Any, Any]


_TEXTS: Final = ("Lamp and rope", "the gate stands open at noon")
_LINES: Final = ("lamp\nrope", "gate\nbell\nrope\nlamp")
_LISTED: Final = (["rope", "lamp"], ["gate", "bell", "lamp", "gate"])
_COUNTED: Final = ([3, 1, 2], [10, 4, 4, 7])

# By the word that calls for each; the first such word in the selector, then in the intent, decides.
_TEXT_SUMS: Final[dict[str, _Sum]] = {
    "words": _Sum("len({}.split())", lambda text: len(text.split()), _TEXTS),
    "lines": _Sum("len({}.splitlines())", lambda text: len(text.splitlines()), _LINES),
    "letters": _Sum("sum(1 for sign in {} if sign.isalpha())", lambda text: sum(map(str.isalpha, text)), _TEXTS),
    "characters": _Sum("len({})", len, _TEXTS),
    "vowels": _Sum(
        'sum(1 for sign in {}.lower() if sign in "aeiou")',
        lambda text: len(re.findall("[aeiou]", text.lower())),
        _TEXTS,
    ),
    "upper": _Sum("{}.upper()", str.upper, _TEXTS),
    "lower": _Sum("{}.lower()", str.lower, ("Lamp AND Rope", "The GATE")),
    "capitals": _Sum("{}.title()", str.title, _TEXTS),
    "reverse": _Sum("{}[::-1]", lambda text: text[::-1], _TEXTS),
    "backwards": _Sum("{}[::-1]", lambda text: text[::-1], _TEXTS),
    "initials": _Sum(
        '"".join(word[0] for word in {}.split())', lambda text: "".join(word[0] for word in text.split()), _TEXTS
    ),
}
_LIST_SUMS: Final[dict[str, _Sum]] = {
    "average": _Sum("sum({0}) / len({0}) if {0} else 0", lambda values: sum(values) / len(values), _COUNTED),
    "mean": _Sum("sum({0}) / len({0}) if {0} else 0", lambda values: sum(values) / len(values), _COUNTED),
    "sum": _Sum("sum({})", sum, _COUNTED),
    "total": _Sum("sum({})", sum, _COUNTED),
    "add": _Sum("sum({})", sum, _COUNTED),
    "largest": _Sum("max({})", max, _COUNTED),
    "smallest": _Sum("min({})", min, _COUNTED),
    "sort": _Sum("sorted({})", sorted, _LISTED),
    "order": _Sum("sorted({})", sorted, _LISTED),
    "unique": _Sum("sorted(set({}))", lambda values: sorted(set(values)), _LISTED),
    "count": _Sum("len({})", len, _LISTED),
    "many": _Sum("len({})", len, _LISTED),
    "number": _Sum("len({})", len, _LISTED),
    "join": _Sum('", ".join(str(item) for item in {})', ", ".join, _LISTED),
    "list": _Sum(
        '"\\n".join("- " + str(item) for item in {})', lambda items: "\n".join(f"- {item}" for item in items), _LISTED
    ),
}
_COUNTING: Final = frozenset(("count", "counts", "counter", "counting", "increment", "tally"))
_COLLECTING: Final = frozenset(
    ("collect", "collects", "remember", "remembers", "keep", "keeps", "note", "notes", "append", "record", "store")
)
_FORMATTING: Final = frozenset(
    ("format", "formats", "label", "render", "write", "writes", "greet", "greets", "greeting", "report", "line", "join")
)


def compute(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that computes; return None if the intent calls for no known computation."""
    if wish.speaks:
        return None
    for make in (_tally_method, _list_method, _duration_method, _occurrence_counter, _sum_method, _line_method):
        made = make(wish)
        if made is not None:
            return made
    return None


def _tally_method(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that adds one to a slot with a number, or return None."""
    slot = wish.slot("int", "number", "integer")
    if wish.parameters or not slot or not wish.words & _COUNTING:
        return None
    body = [f"self.{slot} += 1", "self._p_changed = True"]
    checks = tuple(MethodCheck(slots={slot: before}, after={slot: before + 1}) for before in (0, 4))
    return WrittenMethod(method(wish, body, about(wish)), checks)


def _list_method(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that adds its argument to a slot with a list, or return None."""
    slot = wish.slot("list", "array")
    if len(wish.parameters) != 1 or not slot or not wish.words & _COLLECTING:
        return None
    (item,) = wish.parameters
    body = [f"self.{slot} = [*self.{slot}, {item}]", "self._p_changed = True"]
    checks = tuple(
        MethodCheck(("lamp",), slots={slot: before}, after={slot: [*before, "lamp"]}) for before in ([], ["rope"])
    )
    return WrittenMethod(method(wish, body, about(wish)), checks)


def _duration_method(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that converts the hours, minutes and seconds in a text to seconds, or return None."""
    if len(wish.parameters) != 1 or not wish.words >= {"seconds"} or not wish.words & {"duration", "durations", "time"}:
        return None
    (text,) = wish.parameters
    body = [
        f"units = {_SECONDS!r}",
        f'found = re.findall(r"(\\d+)\\s*([dhms])", str({text}).lower())',
        "return sum(int(amount) * units[unit] for amount, unit in found)",
    ]
    checks = (MethodCheck(("2 h 30 min",), result=9000), MethodCheck(("1 day, 45 s",), result=86445))
    return WrittenMethod(method(wish, body, about(wish), imports="import re"), checks)


def _occurrence_counter(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that counts how often one text occurs in another, or return None."""
    if len(wish.parameters) != 2 or not wish.words & {"often", "occurrences", "times"}:
        return None
    text, part = wish.parameters
    checks = (MethodCheck(("rope, lamp, rope", "rope"), result=2), MethodCheck(("gate", "e"), result=1))
    return WrittenMethod(method(wish, [f"return {text}.count({part})"], about(wish)), checks)


def _sum_method(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that counts or sums up a text or a list, or return None."""
    if len(wish.parameters) != 1:
        return None
    (name,) = wish.parameters
    known = _LIST_SUMS if _LISTS.match(name) else _TEXT_SUMS
    found = next((known[word] for word in _in_order(wish) if word in known), None)
    if found is None:
        return None
    checks = tuple(MethodCheck((sample,), result=found.value(sample)) for sample in found.samples)
    return WrittenMethod(method(wish, [f"return {found.expression.format(name)}"], about(wish)), checks)


def _line_method(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that joins all its arguments on a line, after the first word of the intent, or return None."""
    if not wish.parameters or not wish.words & _FORMATTING or wish.parameters[-1].startswith("*"):
        return None
    mark = next(iter(_PLAIN.findall(wish.intent)), "line").capitalize()
    shown = " | ".join(f"{{{name}}}" for name in wish.parameters)
    checks = []
    for at in (0, 1):
        given = [_sample(name, at) for name in wish.parameters]
        checks.append(MethodCheck(tuple(given), result=f"{mark}: " + " | ".join(map(str, given))))
    return WrittenMethod(method(wish, [f'return f"{mark}: {shown}"'], about(wish)), tuple(checks))


def _sample(name: str, at: int) -> Any:
    """Return a value for an argument of this name, one of two."""
    if _NUMBERS.match(name):
        return 3 + at
    return _LISTED[at] if _LISTS.match(name) else _TEXTS[at]


def _in_order(wish: MethodWish) -> Sequence[str]:
    """Return the words of the selector and then those of the intent, in small letters."""
    return _PLAIN.findall(f"{wish.selector.replace('_', ' ')} {wish.intent}".lower())
