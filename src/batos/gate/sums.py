"""Sums that an answer shows: written out with signs or words, or implied by numbers beside their result."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow
from itertools import accumulate, groupby, islice, product

from batos.gate import dates, figures
from batos.gate.figures import Figure, exponent, is_about

_OPERATORS = {
    "+": "+ plus più mais plús",
    "-": "- − – minus menos meno moins",
    "*": "* × x · ⋅ ∙ \\times \\cdot times mal fois por veces volte keer",
    "/": "/ ÷ : \\div",
    "^": "^ **",
    "of": "of von de di van af",
}
_MEANT = {sign: operator for operator, signs in _OPERATORS.items() for sign in signs.split()}
_MEANT |= dict.fromkeys(("divided by", "geteilt durch", "divisé par", "dividido por", "diviso per"), "/")
_MEANT |= dict.fromkeys(("multiplied by", "multipliziert mit", "multiplié par", "multiplicado por"), "*")
_SIGNS = "|".join(re.escape(sign) for sign in sorted(_MEANT, key=len, reverse=True) if sign not in "-–")
_UNIT = r"(?:[%‰°€$£]|°[CF]|[^\W\d_]{1,12}[²³]?\.?(?:/[^\W\d_]{1,8}[²³]?)?)?"
#: The text between two numbers of a sum. A hyphen needs blanks around it, else it is a range or a date.
_GAP = re.compile(
    rf"(?P<power>[²³]?)\s?{_UNIT}\s?(?P<shut>\)*)(?:\s?(?P<sign>{_SIGNS})|\s(?P<dash>[-–])(?=\s))\s?(?P<open>\(*)[€$£]?"
)
_POWERS = {"²": 2, "³": 3}

#: The sign between a sum and its stated result; what only comes near may be a hundredth off.
_STATED = re.compile(rf"[²³]?\s?{_UNIT}\s?\)*\s?(?P<sign>=|≈|~|≅)\s?(?:\*\*)?[€$£]?")
_NEARLY = Decimal("0.01")
#: Factors between the units of a sum and the unit of its result, where units are named: a stated result that differs by
#: one of them is right (231 km / 165 min = 84 km/h).
_BETWEEN_UNITS = (1, 60, 3600, 24, 7, 12, 100, 1000)

#: Numbers that a sum may use although no text gives them: how many of one unit make another.
_CONSTANTS = frozenset(map(Decimal, (12, 24, 30, 31, 52, 60, 100, 360, 365, 366, 1000, 3600)))
#: Ways to read one sum that are tried, numbers that one has, and numbers on each side of a result that are tried.
_READINGS, _TERMS, _NEAR = 64, 40, 12
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？\n]")
_ADDING = frozenset("+-()")
_RANK = {"+": 1, "-": 1, "*": 2, "/": 2, "of": 2, "^": 3}


@dataclass(frozen=True, slots=True)
class _Term:
    value: Decimal
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class CalculatedSums:
    """The results of the written sums of a text, and the places of numbers that are only operands."""

    results: frozenset[Decimal]
    constants: frozenset[int]
    operands: frozenset[int]

    def shows(self, figure: Figure) -> bool:
        """Test if a number is the result of a sum, rounded to its digits, or as a percentage if it is one."""
        return any(
            is_about(result * (100 if percent else 1), value)
            for result in self.results
            for value in figure.values
            for percent in {False, figure.is_percent}
        )


def calculate_sums(text: str, figures: Sequence[Figure]) -> CalculatedSums:
    """Calculate the sums that a text writes out, such as `3 × 40 km`, `(120 + 25) / 2` or `25 % of 120`."""
    results: set[Decimal] = set()
    operands: dict[int, Figure] = {}
    for run in _runs(text, figures):
        results.update(islice(_values(run), _READINGS))
        operands.update((each.start, each) for each in run if isinstance(each, Figure))
    constants = frozenset(start for start, each in operands.items() if is_constant(each))
    return CalculatedSums(frozenset(results), constants, frozenset(operands))


@dataclass(frozen=True, slots=True)
class WrittenSum:
    """A written sum: its numbers, the result that the text states, those that it can have, and if it is one of them.

    `grouped` is its result where `1,200` and the like are thousands, `is_addition` if it only adds and subtracts.
    """

    terms: tuple[Figure, ...]
    stated: Figure
    results: tuple[Decimal, ...]
    grouped: Decimal
    is_right: bool
    is_addition: bool


def written_sums(text: str, figures: Sequence[Figure]) -> Iterator[WrittenSum]:
    """Yield the sums of a text whose result stands behind an equals sign."""
    places = {each.start: place for place, each in enumerate(figures)}
    for run in _runs(text, figures):
        terms = [each for each in run if isinstance(each, Figure)]
        place = places[terms[-1].start] + 1
        sign = _STATED.match(text, terms[-1].end)
        if sign is None or place >= len(figures) or figures[place].start != sign.end():
            continue
        stated = figures[place]
        goes_on = place + 1 < len(figures) and _GAP.fullmatch(text, stated.end, figures[place + 1].start)
        values = list(_values(run))
        results = tuple(dict.fromkeys(values))
        if results and stated.values and not goes_on:
            units = text[terms[0].start : stated.end + 8]
            near = sign["sign"] != "=" or stated.is_approximate
            right = any(_is_stated(result, stated, units, near=near) for result in results)
            adds = all(isinstance(each, Figure) or each in _ADDING for each in run)
            yield WrittenSum(tuple(terms), stated, results, values[-1], right, adds)


#: Words for a difference, in a question and in a sentence that states one.
_DIFFERENCE = re.compile(
    r"\bdifferences?\b|\bdiffers?\b|\bunterschied|\bdifferenz|\bdifférences?\b|\bécart\b|\bdiferencia"
    r"|\bdifferenz[ae]\b|\bdiferença|\bverschil|разниц|差额|差异|相差|差は|差額",
    re.IGNORECASE,
)


#: Words between one for a difference and its number, of which the last leads to the number; and those of a share of it.
_LEADS = re.compile(
    r"[^\d]{0,60}?(?:(?<!\w)(?:is|was|of|by|equals|ist|war|beträgt|betrug|von|um|macht|est|de|es|è|é|di"
    r"|составляет|равна)|[=:：是为は])\s*(?:about|roughly|around|rund|etwa|ca\.|circa|environ|около)?\s*[€$£¥]?\s*",
    re.IGNORECASE,
)
_SHARE_OF = re.compile(r"(?<!\w)(?:per|pro|je|par|por|each|every)(?!\w)", re.IGNORECASE)
_TIMES = re.compile(r"\s*(?:times|x|mal|-?fach|fois|veces|volte|vezes|倍|/)(?!\w)", re.IGNORECASE)


def asks_for_difference(text: str) -> bool:
    """Test if a text has a word for a difference."""
    return _DIFFERENCE.search(text) is not None


def _names_difference(text: str, sentence: slice, stated: Figure) -> bool:
    """Test if a number is what a sentence says that a difference is: no share or multiple of it."""
    word = _DIFFERENCE.search(text, sentence.start, stated.start)
    said = "" if word is None else text[word.end() : stated.start]
    is_led = _LEADS.fullmatch(said) is not None and _SHARE_OF.search(text[sentence]) is None
    return is_led and not stated.is_percent and _TIMES.match(text, stated.end) is None


def named_differences(text: str, figures: Sequence[Figure]) -> Iterator[WrittenSum]:
    """Yield the difference that a sentence names, of the two numbers that are all that a text says before it."""
    if len(figures) < 3:
        return
    one, other, stated = figures[:3]
    begin, end = _sentence(text, stated)
    alone = not any(begin <= each.start < end for each in figures if each is not stated)
    results = [abs(value) for value in _values([one, "-", other])]
    if alone and results and stated.values and _names_difference(text, slice(begin, end), stated):
        right = any(_is_stated(result, stated, "", near=stated.is_approximate) for result in results)
        yield WrittenSum((one, other), stated, tuple(dict.fromkeys(results)), results[-1], right, is_addition=True)


def _is_stated(result: Decimal, stated: Figure, units: str, *, near: bool) -> bool:
    """Test if a result is what is stated: rounded or cut to its digits, as a share, or in another unit."""
    named = re.search(r"\d\s?[^\W\d_]", units) is not None
    factors = {Decimal(each) for each in (_BETWEEN_UNITS if named else (1, 100))}
    for value in stated.values:
        for meant in {result * each for each in factors} | {result / each for each in factors}:
            cut = 0 <= abs(meant) - abs(value) < Decimal(1).scaleb(min(0, exponent(value))) and meant * value >= 0
            if is_about(meant, value) or (cut and meant % 1) or (near and abs(meant - value) <= _NEARLY * abs(meant)):
                return True
    return False


def follows_from_others(figures: Sequence[Figure], place: int, sure: Container[int], text: str) -> bool:
    """Test if the number at a place follows from sure ones beside it.

    The number may be a total of those before it, the difference of the only two, or a sum, difference, product, share
    or change of two in its sentence.
    """
    target = figures[place]
    before = [
        figures[each] for each in range(max(0, place - 2 * _NEAR), place) if each in sure and figures[each].values
    ]
    total = Decimal(0)
    for count, figure in enumerate(reversed(before), start=1):
        total += min(figure.values)
        if count > 1 and total in target.values:
            return True
    start, end = _sentence(text, target)
    apart = [abs(one - other) for one, other in product(*(each.values for each in before))] if len(before) == 2 else []
    if target.values.intersection(apart) and _DIFFERENCE.search(text[start:end]):
        return True
    window = range(max(0, place - _NEAR), min(len(figures), place + _NEAR + 1))
    near = [figures[each] for each in window if each != place and each in sure]
    values = [value for each in near if start <= each.start < end for value in each.values]
    return any(_made_of(one, other, target) for one, other in product(values, repeat=2) if one != other)


def _made_of(one: Decimal, other: Decimal, target: Figure) -> bool:
    if {one + other, one - other, one * other} & target.values:
        return True
    if not other:
        return False
    shares = (100 * one / other, 100 * (one - other) / other, 100 * (other - one) / other) if target.is_percent else ()
    return any(is_about(share, value) for share in (*shares, one / other) for value in target.values if value > 1)


def _sentence(text: str, figure: Figure) -> tuple[int, int]:
    """Return begin and end of the sentence around a number, at most some hundred characters away."""
    first = max(0, figure.start - 400)
    begins = [found.end() for found in _SENTENCE_END.finditer(text, first, figure.start)]
    after = _SENTENCE_END.search(text, figure.end, figure.end + 400)
    return (begins[-1] if begins else first), (after.start() if after else figure.end + 400)


def _runs(text: str, figures: Sequence[Figure]) -> Iterator[list[Figure | str]]:
    """Yield each written sum: its numbers with signs, powers and brackets between them, brackets balanced."""
    run: list[Figure | str] = []
    terms = 0
    for figure, after in zip(figures, (*figures[1:], None), strict=False):
        if not run:
            run = ["("] * _opening(text, figure.start)
        run.append(figure)
        terms += 1
        gap = _GAP.fullmatch(text, figure.end, after.start) if after and after.start - figure.end < 48 else None
        if gap is not None and terms < _TERMS:
            run += _power(gap["power"])
            run += [")"] * len(gap["shut"])
            run += [_MEANT[gap["sign"]] if gap["sign"] else "-", *["("] * len(gap["open"])]
            continue
        run += _power(text[figure.end : figure.end + 1])
        if terms > 1 or "^" in run:
            yield _balance(run)
        run, terms = [], 0


def is_constant(figure: Figure) -> bool:
    """Test if a number may stand in a sum although no text gives it: a small count, or how many make a unit."""
    return bool(figure.values & _CONSTANTS) or any(value < 10 and value % 1 == 0 for value in figure.values)


def _opening(text: str, start: int) -> int:
    before = text[max(0, start - 4) : start].rstrip("€$£ ")
    return len(before) - len(before.rstrip("("))


def _power(sign: str) -> list[Figure | str]:
    return ["^", f"{_POWERS[sign]}"] if sign in _POWERS and sign else []


def _balance(run: list[Figure | str]) -> list[Figure | str]:
    """Remove closing brackets that were opened before the sum, and add those that are missing at its end."""
    depth, kept = 0, []
    for each in run:
        depth += (each == "(") - (each == ")")
        if depth < 0:
            depth = 0
            continue
        kept.append(each)
    return [*kept, *[")"] * depth]


def _values(run: Sequence[Figure | str]) -> Iterator[Decimal]:
    """Yield the result of a sum for every reading of its numbers."""
    figures = [each for each in run if isinstance(each, Figure)]
    if not all(each.values for each in figures):
        return
    for chosen in islice(product(*(sorted(each.values) for each in figures)), _READINGS):
        left = iter(chosen)
        terms = [_Term(next(left), each.is_percent) if isinstance(each, Figure) else each for each in run]
        try:
            yield _calculate(terms)
        except (DivisionByZero, InvalidOperation, Overflow, IndexError):
            continue  # a sum that divides by zero, or is none, shows nothing


def _calculate(run: Sequence[_Term | str]) -> Decimal:
    """Calculate a sum by the order of operations (Dijkstra's shunting yard)."""
    terms: list[_Term] = []
    signs: list[str] = []
    for each in run:
        if isinstance(each, _Term):
            terms.append(_Term(each.value / 100 if each.is_percent else each.value, each.is_percent))
        elif each.isdigit():
            terms.append(_Term(Decimal(each)))
        elif each == "(":
            signs.append(each)
        elif each == ")":
            while signs[-1] != "(":
                _reduce(terms, signs.pop())
            signs.pop()
        else:
            while signs and signs[-1] != "(" and _RANK[signs[-1]] >= _RANK[each]:
                _reduce(terms, signs.pop())
            signs.append(each)
    while signs:
        _reduce(terms, signs.pop())
    return terms[-1].value


def _reduce(terms: list[_Term], sign: str) -> None:
    other, one = terms.pop(), terms.pop()
    if sign in "+-":
        amount = one.value * other.value if other.is_percent and not one.is_percent else other.value
        value = one.value + amount if sign == "+" else one.value - amount
    elif sign == "/":
        value = one.value / other.value
    elif sign == "^":
        if not 0 <= other.value <= 10:
            raise InvalidOperation
        value = one.value**other.value
    elif sign == "of" and not one.is_percent:
        raise InvalidOperation
    else:
        value = one.value * other.value
    terms.append(_Term(value))


# -- numbers that stand together in a text, in a line or one below the other: a total may be their sum


_TOTAL = re.compile(
    r"\b(?:in all|in total|totals?|altogether|together|overall|sum|combined|insgesamt|zusammen|gesamt\w*|summe"
    r"|au total|en tout"
    r"|ensemble|somme|en total|juntos|juntas|suma|in totale|totale|insieme|somma|no total|soma|in totaal|totaal"
    r"|samen|som"
    r"|всего|итого|сумма)\b|一共|总共|总计|合计|总数|合計|全部で|総",
    re.IGNORECASE,
)
#: Numbers of the longest run, lines of a text that are looked at, and numbers of a line.
_LONGEST, _MOST_LINES, _MOST_NUMBERS = 12, 400, 24


def asks_for_total(text: str) -> bool:
    """Test if a text has a word for a total."""
    return _TOTAL.search(text) is not None


def run_sums(text: str) -> frozenset[Decimal]:
    """Return the sums of neighbours: numbers of a line, and those at the same place from the end of lines in a row.

    >>> sorted(map(str, run_sums("ink 3, paper 12 euros\\nglue 4, tape 20 euros")))
    ['15', '24', '32', '7']
    """
    lines = [_numbers(line) for line in text.splitlines()[:_MOST_LINES]]
    # 1,250 is one number or another in all of a text.
    read = [[[of(each.values) for each in line] for line in lines] for of in (max, min)]
    return frozenset(total for one in read for run in (*one, *_columns(one)) for total in _sums(run))


def _numbers(line: str) -> list[figures.Figure]:
    """Return the numbers of a line without those of dates."""
    days = dates.find(line)
    found = [each for each in figures.find(line) if not any(day.start <= each.start < day.end for day in days)]
    return [each for each in found if each.values][:_MOST_NUMBERS]


def _columns(lines: Sequence[Sequence[Decimal]]) -> Iterator[list[Decimal]]:
    """Yield the numbers that stand at the same place from the end in lines in a row."""
    for place in range(1, max(map(len, lines), default=0) + 1):
        for is_long, run in groupby(lines, key=lambda line: len(line) >= place):
            if is_long:
                yield [line[-place] for line in run]


def _sums(run: Sequence[Decimal]) -> Iterator[Decimal]:
    for at in range(len(run)):
        yield from list(accumulate(run[at : at + _LONGEST]))[1:]
