"""Numbers as people write them: read in every way that they can be meant, and sums that an answer shows worked out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal, DivisionByZero, InvalidOperation
from itertools import islice, product

# Digits with what groups them; not what belongs to a word (B12, v2.5) or goes on a longer number. The bounds keep
# hostile texts from taking long.
_BLANK = " \u00a0\u202f\u2009"
_FIGURE = rf"(?:\d{{1,3}}(?:[{_BLANK}'’]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d{{1,40}}(?:[.,]\d{{1,40}}){{0,12}})"
_NUMBER = re.compile(rf"(?<!\w)(?<!\d[.,]){_FIGURE}")
_GROUPS = re.compile(rf"[{_BLANK}'’]")
_UNIT = r"(?:\s?[%€$£°]|\s?[^\W\d_]{1,12})?"
_TERM = rf"\s*[-+−–×x*·/÷:]\s*{_FIGURE}{_UNIT}"
_SUM = re.compile(rf"(?<!\w)({_FIGURE}{_UNIT}(?:{_TERM}){{1,16}})\s*[=≈]\s*[€$£]?\s*({_FIGURE})")
_SIGN = {"+": "+", "-": "-", "−": "-", "–": "-", "×": "*", "x": "*", "*": "*", "·": "*", "/": "/", "÷": "/", ":": "/"}
_TOKEN = re.compile(rf"({_FIGURE})|\s*([-+−–×x*·/÷:])\s*(?=\d)")
#: Ways to read one sum that are tried; each figure has at most two.
_READINGS = 64

_SAID = {
    10: "ten zehn dix diez dieci",
    11: "eleven elf onze once undici",
    12: "twelve zwölf douze doce dodici dozen dutzend",
    13: "thirteen dreizehn treize trece",
    14: "fourteen vierzehn quatorze catorce",
    15: "fifteen fünfzehn quinze quince",
    16: "sixteen sechzehn seize dieciséis",
    17: "seventeen siebzehn",
    18: "eighteen achtzehn",
    19: "nineteen neunzehn",
    20: "twenty zwanzig vingt veinte venti",
    30: "thirty dreißig trente treinta trenta",
    40: "forty vierzig quarante cuarenta quaranta",
    50: "fifty fünfzig cinquante cincuenta cinquanta half halb halbe",
    60: "sixty sechzig soixante sesenta",
    70: "seventy siebzig setenta",
    80: "eighty achtzig ochenta",
    90: "ninety neunzig noventa",
    100: "hundred hundert cent cien cento",
    1000: "thousand tausend mille mil",
}
_WORDS = {word: Decimal(value) for value, said in _SAID.items() for word in said.split()}
_WORD = re.compile(r"[^\W\d_]+")


def found(text: str) -> list[str]:
    """The numbers of a text as they stand in it, each once, in order."""
    return list(dict.fromkeys(_NUMBER.findall(_plain(text))))


def readings(figure: str) -> frozenset[Decimal]:
    """What a figure can mean; empty for what is no number (an address, a date, a version).

    >>> sorted(map(str, readings("1.200")))
    ['1.200', '1200']
    """
    digits = _GROUPS.sub("", figure)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return frozenset({Decimal(digits)})
    if len(set(marks)) == 2:
        return _mixed(digits, marks)
    head, *tail = re.split("[.,]", digits)
    meant: set[Decimal] = set()
    grouped = len(head) <= 3 and head != "0" and all(len(each) == 3 for each in tail)
    if len(tail) == 1 and not (grouped and tail[0] == "000"):
        meant.add(Decimal(f"{head}.{tail[0]}"))
    if grouped:
        meant.add(Decimal("".join((head, *tail))))
    return frozenset(meant)


def _mixed(digits: str, marks: Sequence[str]) -> frozenset[Decimal]:
    """Both marks in one number: the last is the decimal one, and stands there once."""
    if marks.count(marks[-1]) > 1:
        return frozenset()
    return frozenset({Decimal(digits.replace(marks[0], "").replace(marks[-1], "."))})


def known(text: str) -> frozenset[Decimal | str]:
    """Every value that a text has, in every reading, spelled numbers too; what is no number as it is written."""
    text = _plain(text)
    values: set[Decimal | str] = set()
    for figure in set(_NUMBER.findall(text)):
        values |= readings(figure) or {figure}
        values.update(Decimal(part) for part in re.split(r"\D", figure) if part)
    values.update(_WORDS[word] for word in {each.casefold() for each in _WORD.findall(text)} & _WORDS.keys())
    return frozenset(values)


def is_known(figure: str, values: frozenset[Decimal | str]) -> bool:
    """Whether one of the values is meant; small counts need no source, and a date is known by its parts."""
    meant = readings(figure)
    if not meant or _GROUPS.search(figure):
        # No number, or several that only stand beside each other: then each of them is known.
        parts = [Decimal(part) for part in re.split(r"\D", figure) if part]
        if figure in values or all(part < 10 or part in values for part in parts):
            return True
    return bool(meant & values) or any(value < 10 and value == value.to_integral_value() for value in meant)


def computed(text: str) -> frozenset[Decimal | str]:
    """The results of the sums that a text shows and that are right: `3 × 40 km = 120 km` gives 120."""
    results: set[Decimal | str] = set()
    for terms, result in _SUM.findall(_plain(text)):
        for value in _values(terms):
            results.update(meant for meant in readings(result) if _is_about(value, meant))
    return frozenset(results)


def _values(terms: str) -> Iterator[Decimal]:
    """What a sum makes, for every way to read its figures."""
    tokens = _TOKEN.findall(terms)
    figures = [readings(figure) for figure, _ in tokens if figure]
    signs = [_SIGN[sign] for _, sign in tokens if sign]
    if len(signs) != len(figures) - 1 or not all(figures):
        return
    for chosen in islice(product(*figures), _READINGS):
        try:
            yield _worked_out(list(chosen), list(signs))
        except (DivisionByZero, InvalidOperation):
            continue  # a sum that divides by zero shows nothing


def _worked_out(values: list[Decimal], signs: list[str]) -> Decimal:
    total, product_, sign = Decimal(0), values[0], "+"
    for operation, value in zip([*signs, "+"], [*values[1:], Decimal(0)], strict=True):
        if operation == "*":
            product_ *= value
        elif operation == "/":
            product_ /= value
        else:
            total += product_ if sign == "+" else -product_
            product_, sign = value, operation
    return total


def _is_about(value: Decimal, shown: Decimal) -> bool:
    """Whether `shown` is the value, rounded to the digits that it has."""
    exponent = shown.as_tuple().exponent
    places = -exponent if isinstance(exponent, int) else 0
    return abs(value - shown) <= Decimal("0.5").scaleb(-places)


def _plain(text: str) -> str:
    """Full-width and other scripts' digits as the usual ones; what else NFKC would change stays."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.digit(each)) if each.isdigit() and not each.isascii() else each for each in text)
