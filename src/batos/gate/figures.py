"""Numbers as people write them, with groups, scales and units, in every reading that they can have."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files

from batos.gate import numerals

# Digits with what groups them; not what belongs to a word (B12, v2.5) or goes on a longer number. The bounds keep
# hostile texts from taking long.
_BLANK = " \u00a0\u202f\u2009"
_FIGURE = rf"(?:\d{{1,3}}(?:[{_BLANK}'’]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d{{1,40}}(?:[.,]\d{{1,40}}){{0,12}})"
# A letter of a script without blanks may stand right before a number.
_NUMBER = re.compile(rf"(?<![^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3])(?<!\d[.,]){_FIGURE}")
_GROUPS = re.compile(rf"[{_BLANK}'’]")

_READ = tomllib.loads(files(__package__).joinpath("figures.toml").read_text(encoding="utf-8"))
#: The powers of ten of words that multiply a number; of a word with two meanings both are tried.
_POWERS: dict[str, tuple[int, ...]] = {}
for _power, _said in _READ["scales"].items():
    for _word in _said.split():
        _POWERS[_word] = (*_POWERS.get(_word, ()), int(_power))
_SIGNS = {"千": 3, "万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8}
#: Scales that are a unit as well: what is meant may also be the number itself.
_ALSO_UNITS = {"k", "m", "mil", "mille"}

#: Units that are read as multiples of one another: (what they measure, how much of it).
_UNITS = {
    word: (kind, Decimal(factor))
    for kind, units in {
        "length": {"mm": "0.001", "cm": "0.01", "dm": "0.1", "m": "1", "km": "1000"},
        "mass": {"mg": "0.001", "g": "1", "kg": "1000", "t": "1000000"},
        "volume": {"ml": "0.001", "cl": "0.01", "dl": "0.1", "l": "1"},
        "time": {"ms": "0.001", "s": "1", "min": "60", "h": "3600"},
        "data": {"kb": "1000", "mb": "1000000", "gb": "1000000000", "tb": "1000000000000"},
    }.items()
    for word, factor in units.items()
}
_UNITS.update({word: _UNITS[unit] for unit, said in _READ["long_units"].items() for word in said.split()})

_AFTER = re.compile(
    rf"[-{_BLANK}]?(?:(?P<sign>[千万萬만億亿억])|(?P<word>[^\W\d_]{{1,12}}(?![^\W_]))|(?P<mark>[%‰€$£¥]))"
)
_CURRENCY = re.compile(r"(?:[$€£¥₹]|\b(?:usd|eur|gbp|chf|kr|rs)\.?)\s?\Z", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx|nearly|almost|over|some|more than|less than|under|circa|ca|"
    r"rund|etwa|ungefähr|knapp|gut|über|fast|mehr als|weniger als|environ|près de|presque|plus de|moins de|unos|unas|"
    r"casi|alrededor de|más de|menos de|quasi|più di|meno di|cerca de|mais de|"
    r"ongeveer|bijna|около|почти|более|менее)\.?|"
    r"[≈~≃]|[约約]|大约|およそ|लगभग)\s*(?:[$€£¥₹]|[a-z]{2,3}\.? )?\s?\Z",
    re.IGNORECASE,
)
_SHORT_YEAR = re.compile(r"(?:['’‘]|(?<!\d)(?:19|20)\d\d\s?[-–/])\Z")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number where it stands in a text; `values` is what it can mean, none for what is not a number (a version).

    `readings` are its values without the scale that follows it, which is a power of ten in `scales`; `measured` those
    values that a unit makes comparable.
    """

    text: str
    start: int
    end: int
    values: frozenset[Decimal]
    readings: frozenset[Decimal]
    scales: frozenset[int] = frozenset()
    measured: frozenset[tuple[str, Decimal]] = frozenset()
    is_percent: bool = False
    is_approximate: bool = False
    #: True if it may be a count of things, which an answer makes on its way.
    counts: bool = False


@dataclass(frozen=True, slots=True)
class KnownNumbers:
    """The numbers of a text, as others are looked up in it."""

    values: frozenset[Decimal] = frozenset()
    written: frozenset[str] = frozenset()
    measured: frozenset[tuple[str, Decimal]] = frozenset()
    scales: frozenset[int] = field(default_factory=frozenset)


def find(text: str) -> list[Figure]:
    """List the numbers of a text, in order."""
    text = plain(text)
    return [
        _figure(text, found.start(), found.end(), text[max(0, found.start() - 24) : found.start()])
        for found in _NUMBER.finditer(text)
    ]


def _figure(text: str, start: int, end: int, before: str = "") -> Figure:
    """Return the number at a place. Without the text before it, that text adds no readings."""
    written = text[start:end]
    readings_, after = readings(written), _AFTER.match(text, end)
    sign, word, mark = (after["sign"], (after["word"] or "").casefold(), after["mark"]) if after else (None, "", None)
    scales = (_SIGNS[sign],) if sign else _POWERS.get(word, ())
    values = {value.scaleb(power) for value in readings_ for power in scales} or set(readings_)
    if not scales or word in _ALSO_UNITS:
        values |= readings_
    if before and len(written) == 2 and _SHORT_YEAR.search(before):
        values |= {century + int(written) for century in (Decimal(1900), Decimal(2000))}
    unit = _UNITS.get(word)
    measured = frozenset((unit[0], value * unit[1]) for value in readings_) if unit else frozenset()
    counted = len(written) == 1 and not (scales or unit or mark or _CURRENCY.search(before))
    return Figure(
        written,
        start,
        end,
        frozenset(values),
        readings_,
        frozenset(scales),
        measured,
        mark == "%" or word in ("percent", "prozent"),
        bool(before) and _ABOUT.search(before) is not None,
        counted,
    )


def readings(figure: str) -> frozenset[Decimal]:
    """Return the values that a figure can mean; empty for anything but a number (an address, a date, a version).

    >>> sorted(map(str, readings("1.200")))
    ['1.200', '1200']
    """
    digits = _GROUPS.sub("", figure)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return frozenset({Decimal(digits)})
    if len(set(marks)) == 2:
        return _read_mixed_marks(digits, marks)
    head, *tail = re.split("[.,]", digits)
    meant: set[Decimal] = set()
    grouped = len(head) <= 3 and head != "0" and all(len(each) == 3 for each in tail)
    if len(tail) == 1 and not (grouped and tail[0] == "000"):
        meant.add(Decimal(f"{head}.{tail[0]}"))
    if grouped:
        meant.add(Decimal("".join((head, *tail))))
    elif marks[0] == "," and len(tail[-1]) == 3 and all(len(each) == 2 for each in tail[:-1]) and len(head) <= 2:
        meant.add(Decimal("".join((head, *tail))))  # 12,50,000 as in India
    return frozenset(meant)


def _read_mixed_marks(digits: str, marks: Sequence[str]) -> frozenset[Decimal]:
    """Read a number with both marks: the last one is the decimal mark and occurs once."""
    if marks.count(marks[-1]) > 1:
        return frozenset()
    return frozenset({Decimal(digits.replace(marks[0], "").replace(marks[-1], "."))})


def read_numbers(text: str) -> KnownNumbers:
    """Return every value in a text, in every reading, with and without scale, with numbers in words."""
    values: set[Decimal] = set(numerals.numbers_in_words(text))
    written: set[str] = set()
    measured: set[tuple[str, Decimal]] = set()
    scales: set[int] = set()
    text = plain(text)
    for found in _NUMBER.finditer(text):
        figure = _figure(text, found.start(), found.end())
        values |= figure.values | figure.readings
        measured |= figure.measured
        if not figure.readings:
            written.add(figure.text)
        values.update(Decimal(part) for part in re.split(r"\D", figure.text) if part)
    for word in set(re.findall(r"[^\W\d_]+|[千万萬만億亿억]", text.casefold())):
        scales.update(_POWERS.get(word, ()))
        scales.update({_SIGNS[word]} if word in _SIGNS else ())
    return KnownNumbers(frozenset(values), frozenset(written), frozenset(measured), frozenset(scales))


def is_known(figure: Figure, there: KnownNumbers) -> bool:
    """Test if one of a number's values occurs, in another unit, or rounded if the text says so; small counts always
    pass.

    A scale that the text names anywhere (the head of a table) may belong to any of its numbers.
    """
    if not figure.readings:
        return figure.text in there.written
    if figure.values & there.values or figure.counts:
        return True
    if figure.measured & there.measured or (figure.scales & there.scales and figure.readings & there.values):
        return True
    if _GROUPS.search(figure.text):
        # Several numbers that only stand beside each other: then each of them is known.
        parts = [Decimal(part) for part in re.split(r"\D", figure.text) if part]
        if all(part < 10 or part in there.values for part in parts):
            return True
    return figure.is_approximate and rounds(figure.values, there.values)


def rounds(shown: Iterable[Decimal], values: Iterable[Decimal]) -> bool:
    """Test if one of the values is what is shown, rounded to its last digit that is not a zero."""
    steps = [(value, Decimal(5).scaleb(exponent(value.normalize()) - 1)) for value in shown if value]
    return any(abs(value - each) <= step for each in values for value, step in steps)


def is_about(value: Decimal, shown: Decimal) -> bool:
    """Test if `shown` is the value, rounded to the digits that `shown` has."""
    return abs(value - shown) <= Decimal(5).scaleb(exponent(shown) - 1)


def exponent(value: Decimal) -> int:
    """Return the power of ten of a number's last digit."""
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def plain(text: str) -> str:
    """Replace full-width digits and those of other scripts by the usual ones, character for character."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(each)) if each.isdecimal() and not each.isascii() else each for each in text)
