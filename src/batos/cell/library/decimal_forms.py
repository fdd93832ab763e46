"""Comparing, ordering and formatting a Decimal, which the interpreter lacks; a part of the cell's `decimal`."""

from __future__ import annotations

from typing import Any

from batos.cell.library.decimal import ROUND_HALF_EVEN, Decimal, _difference, _rescale, _with_point


def _compare(one: Any, op: str, other: Any) -> bool:
    """Say whether `one < other`, or whichever of the four comparisons `op` is."""
    left, right = one, other
    if isinstance(one, Decimal) or isinstance(other, Decimal):
        if not isinstance(one, (Decimal, int, float)) or not isinstance(other, (Decimal, int, float)):
            raise TypeError("a Decimal is compared with numbers only")
        left, right = _difference(one, other), 0
    if op == "<":
        return bool(left < right)
    if op == "<=":
        return bool(left <= right)
    return bool(left > right if op == ">" else left >= right)


def _before(one: Any, other: Any) -> bool:
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        for left, right in zip(one, other, strict=False):
            if left != right:
                return _before(left, right)
        return len(one) < len(other)
    return _compare(one, "<", other)


def _sort(values: Any, key: Any = None, reverse: bool = False) -> list[Any]:
    """Do as `sorted` does, stably, for values that may be Decimals."""
    pairs = [(each if key is None else key(each), each) for each in values]
    if reverse:
        pairs.reverse()
    width = 1
    while width < len(pairs):
        merged = []
        for start in range(0, len(pairs), 2 * width):
            left, right = pairs[start : start + width], pairs[start + width : start + 2 * width]
            at, to = 0, 0
            while at < len(left) and to < len(right):
                if _before(right[to][0], left[at][0]):
                    merged.append(right[to])
                    to += 1
                else:
                    merged.append(left[at])
                    at += 1
            merged += left[at:] + right[to:]
        pairs = merged
        width *= 2
    if reverse:
        pairs.reverse()
    return [each for _, each in pairs]


def _least(*values: Any, key: Any = None, default: Any = None) -> Any:
    """Do as `min` does, for values that may be Decimals."""
    return _pick(values, key, default, False)


def _greatest(*values: Any, key: Any = None, default: Any = None) -> Any:
    """Do as `max` does, for values that may be Decimals."""
    return _pick(values, key, default, True)


def _pick(values: Any, key: Any, default: Any, greatest: bool) -> Any:
    given = list(values[0]) if len(values) == 1 else list(values)
    if not given:
        if default is None:
            raise ValueError("the iterable is empty")
        return default
    found, best = given[0], given[0] if key is None else key(given[0])
    for each in given[1:]:
        measure = each if key is None else key(each)
        if _before(best, measure) if greatest else _before(measure, best):
            found, best = each, measure
    return found


def _format(value: Any, spec: str) -> str:
    """Do as `format(value, spec)` does, for values that may be Decimals."""
    if not isinstance(value, Decimal):
        return format(value, spec)
    front, _, places = spec.partition(".")
    kind = places[-1:] if places else front[-1:]
    if kind not in ("f", "F", "%") or not (places[:-1].isdigit() if places else True):
        return format(float(value) if spec[-1:].isalpha() else str(value), spec)
    if kind == "%":
        value = Decimal(value.n, value.e + 2)
    number = _rescale(value, -int(places[:-1]), ROUND_HALF_EVEN) if places else value
    text = _with_point(str(abs(number.n)), number.e) if number.e <= 0 else str(abs(number.n) * 10**number.e)
    front = front if places else front[:-1]
    if "," in front:
        front = front.replace(",", "")
        text = _group_digits(text)
    text += "%" if kind == "%" else ""
    return _wide(text, number.n < 0, front)


def _group_digits(text: str) -> str:
    """Put a comma before every group of three digits."""
    whole, point, part = text.partition(".")
    groups = []
    while len(whole) > 3:
        groups.append(whole[-3:])
        whole = whole[:-3]
    groups.append(whole)
    groups.reverse()
    return ",".join(groups) + point + part


def _wide(text: str, below: bool, front: str) -> str:
    """Add the sign to a number and pad it to the width that the front of a format asks for."""
    fill, align = " ", ">"
    if len(front) > 1 and front[1] in "<>^=":
        fill, align, front = front[0], front[1], front[2:]
    elif front[:1] and front[0] in "<>^=":
        align, front = front[0], front[1:]
    plus = front[:1] if front[:1] in ("+", " ", "-") else ""
    front = front[len(plus) :]
    sign = "-" if below else "" if plus == "-" else plus
    if front.startswith("0"):
        fill, align = "0", "="
    width = int(front) if front else 0
    if align == "=":
        return sign + text.rjust(width - len(sign), fill)
    if align == "<":
        return (sign + text).ljust(width, fill)
    if align == "^":
        return (sign + text).center(width, fill)
    return (sign + text).rjust(width, fill)
