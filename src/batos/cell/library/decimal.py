"""The part of `decimal` that methods use: exact decimal numbers of 28 digits, in what the interpreter has.

The interpreter asks no object how it compares or formats: `decimal_forms` does that, where a method that imports
this module compares or formats anything (`lowering.decimals`). There is no infinity, no NaN, no
negative zero and no context to change.
"""

from __future__ import annotations

from typing import Any

ROUND_UP = "ROUND_UP"
ROUND_DOWN = "ROUND_DOWN"
ROUND_CEILING = "ROUND_CEILING"
ROUND_FLOOR = "ROUND_FLOOR"
ROUND_HALF_UP = "ROUND_HALF_UP"
ROUND_HALF_DOWN = "ROUND_HALF_DOWN"
ROUND_HALF_EVEN = "ROUND_HALF_EVEN"
InvalidOperation = ArithmeticError
DivisionByZero = ZeroDivisionError
_PRECISION = 28


class Decimal:
    """`n` times ten to the power of `e`."""

    n: int
    e: int

    def __init__(self, value: Any = 0, _e: Any = None) -> None:
        if _e is not None:
            self.n = value
            self.e = _e
            return
        if isinstance(value, Decimal):
            self.n, self.e = value.n, value.e
        elif isinstance(value, (bool, int)):
            self.n, self.e = int(value), 0
        elif isinstance(value, float):
            self.n, self.e = _split_float(value)
        elif isinstance(value, str):
            self.n, self.e = _parse_text(value)
        else:
            raise TypeError("conversion from " + type(value).__name__ + " to Decimal is not supported")

    def __str__(self) -> str:
        digits = str(abs(self.n))
        sign = "-" if self.n < 0 else ""
        left = self.e + len(digits)
        if self.e <= 0 and left > -6:
            return sign + _with_point(digits, self.e)
        text = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        power = left - 1
        return sign + text + "E" + ("+" if power >= 0 else "") + str(power)

    def __repr__(self) -> str:
        return "Decimal('" + str(self) + "')"

    def __hash__(self) -> int:
        n, e = self.n, self.e
        while n and n % 10 == 0:
            n //= 10
            e += 1
        return hash((n, e if n else 0))

    def __bool__(self) -> bool:
        return self.n != 0

    def __int__(self) -> int:
        return _whole(self)

    def __float__(self) -> float:
        return float(str(self))

    def __neg__(self) -> Decimal:
        return _fix(-self.n, self.e)

    def __pos__(self) -> Decimal:
        return _fix(self.n, self.e)

    def __abs__(self) -> Decimal:
        return _fix(abs(self.n), self.e)

    def __add__(self, other: Any) -> Decimal:
        other = _number(other)
        e = min(self.e, other.e)
        if (self.n == 0) != (other.n == 0):
            e = max(e, (self.e if self.n else other.e) - _PRECISION - 1)
            return _fix(*((self.n * 10 ** (self.e - e), e) if self.n else (other.n * 10 ** (other.e - e), e)))
        return _fix(self.n * 10 ** (self.e - e) + other.n * 10 ** (other.e - e), e)

    def __radd__(self, other: Any) -> Decimal:
        return self.__add__(other)

    def __sub__(self, other: Any) -> Decimal:
        other = _number(other)
        return self + Decimal(-other.n, other.e)

    def __rsub__(self, other: Any) -> Decimal:
        return _number(other).__sub__(self)

    def __mul__(self, other: Any) -> Decimal:
        other = _number(other)
        return _fix(self.n * other.n, self.e + other.e)

    def __rmul__(self, other: Any) -> Decimal:
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Decimal:
        return _quotient(self, _number(other))

    def __rtruediv__(self, other: Any) -> Decimal:
        return _quotient(_number(other), self)

    def __floordiv__(self, other: Any) -> Decimal:
        return _divide(self, _number(other))[0]

    def __rfloordiv__(self, other: Any) -> Decimal:
        return _divide(_number(other), self)[0]

    def __mod__(self, other: Any) -> Decimal:
        return _divide(self, _number(other))[1]

    def __rmod__(self, other: Any) -> Decimal:
        return _divide(_number(other), self)[1]

    def __pow__(self, other: Any) -> Decimal:
        power = _number(other)
        if power.e < 0 and power.n % 10**-power.e:
            raise ArithmeticError("the exponent of a Decimal is a whole number here")
        times = _whole(power)
        if not times and not self.n:
            raise ArithmeticError("0 ** 0")
        if not self.n and times > 0:
            return Decimal(0, 0)
        whole = Decimal(self.n ** abs(times), self.e * abs(times))
        return _quotient(Decimal(1), whole) if times < 0 else _fix(whole.n, whole.e)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (Decimal, int, float)):
            return False
        return _difference(self, other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __round__(self, digits: Any = None) -> Any:
        if digits is None:
            return _rescale(self, 0, ROUND_HALF_EVEN).n
        return _rescale(self, -digits, ROUND_HALF_EVEN)

    def quantize(self, exp: Any, rounding: Any = None) -> Decimal:
        """Return the number rounded to as many places as another has."""
        found = _rescale(self, _number(exp).e, rounding or ROUND_HALF_EVEN)
        if len(str(abs(found.n))) > _PRECISION:
            raise ArithmeticError("quantize: more than 28 digits")
        return found

    def to_integral_value(self, rounding: Any = None) -> Decimal:
        """Return the nearest whole number."""
        return self if self.e >= 0 else _rescale(self, 0, rounding or ROUND_HALF_EVEN)

    def normalize(self) -> Decimal:
        """Return the number without zeros at its end."""
        short = _fix(self.n, self.e)
        n, e = short.n, short.e
        if n == 0:
            return Decimal(0, 0)
        while n % 10 == 0:
            n //= 10
            e += 1
        return Decimal(n, e)

    def is_zero(self) -> bool:
        """Say whether it is zero."""
        return self.n == 0

    def is_signed(self) -> bool:
        """Say whether it is below zero."""
        return self.n < 0

    def copy_abs(self) -> Decimal:
        """Return the number without its sign."""
        return Decimal(abs(self.n), self.e)

    def sqrt(self) -> Decimal:
        """Return the square root."""
        return _root(self)


def _root(number: Decimal) -> Decimal:
    if number.n < 0:
        raise ArithmeticError("the square root of a negative number")
    if number.n == 0:
        return Decimal(0, number.e // 2)
    ideal = number.e // 2
    n = number.n * 10 if number.e % 2 else number.n
    shift = max(0, _PRECISION + 1 - (len(str(n)) + 1) // 2)
    n = n * 100**shift
    found = 10 ** ((len(str(n)) + 1) // 2)
    while True:
        better = (found + n // found) // 2
        if better >= found:
            break
        found = better
    e = ideal - shift
    if found * found != n:
        return _fix(found + (1 if found % 5 == 0 else 0), e)
    while e < ideal and found % 10 == 0:
        found //= 10
        e += 1
    return _fix(found, e)


def _number(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int):
        return Decimal(value)
    raise TypeError("unsupported operand type(s): 'Decimal' and '" + type(value).__name__ + "'")


def _parse_text(text: str) -> tuple[int, int]:
    """Return the digits and the power of ten that a text spells."""
    plain = text.strip().replace("_", "").lower()
    front, _, power = plain.partition("e")
    sign = -1 if front.startswith("-") else 1
    if front[:1] in ("-", "+"):
        front = front[1:]
    whole, _, part = front.partition(".")
    up = power[1:] if power[:1] in ("-", "+") else power
    if not (whole + part).isdigit() or ("e" in plain and not up.isdigit()):
        raise ArithmeticError("no number: " + repr(text))
    return sign * int(whole + part), (int(power) if power else 0) - len(part)


def _split_float(value: float) -> tuple[int, int]:
    """Return the exact value of a float, as digits and a power of ten."""
    if not float("-inf") < value < float("inf"):
        raise ArithmeticError("no number")
    twos = 0
    while value != int(value):
        value *= 2
        twos += 1
    return int(value) * 5**twos, -twos


def _with_point(digits: str, e: int) -> str:
    if e == 0:
        return digits
    digits = digits.rjust(1 - e, "0")
    return digits[:e] + "." + digits[e:]


def _whole(number: Decimal) -> int:
    """Return the number cut to a whole one."""
    if number.e >= 0:
        return int(number.n * 10**number.e)
    found = int(abs(number.n) // 10**-number.e)
    return -found if number.n < 0 else found


def _fix(n: int, e: int) -> Decimal:
    """Return a number rounded to at most 28 digits."""
    over = len(str(abs(n))) - _PRECISION
    if over <= 0:
        return Decimal(n, e)
    found = _rescale(Decimal(n, e), e + over, ROUND_HALF_EVEN)
    if len(str(abs(found.n))) > _PRECISION:
        return Decimal(found.n // 10, found.e + 1)
    return found


def _rescale(number: Decimal, e: int, rounding: str) -> Decimal:
    """Return the number rounded to this power of ten."""
    if number.e >= e:
        return Decimal(number.n * 10 ** (number.e - e), e)
    unit = 10 ** (e - number.e)
    n, rest = divmod(abs(number.n), unit)
    if rest and _goes_up(number.n < 0, n, 2 * rest - unit, rounding):
        n += 1
    return Decimal(-n if number.n < 0 else n, e)


def _goes_up(below: bool, n: int, half: int, rounding: str) -> bool:
    """Say whether rounding adds one; `half` is twice the part cut off, less the unit: zero exactly half way."""
    if rounding == ROUND_DOWN:
        return False
    if rounding == ROUND_UP:
        return True
    if rounding == ROUND_CEILING:
        return not below
    if rounding == ROUND_FLOOR:
        return below
    if half == 0:
        return rounding == ROUND_HALF_UP or (rounding == ROUND_HALF_EVEN and n % 2 == 1)
    return half > 0


def _quotient(one: Decimal, other: Decimal) -> Decimal:
    if other.n == 0:
        if one.n == 0:
            raise ArithmeticError("0 / 0")
        raise ZeroDivisionError("division by zero")
    if one.n == 0:
        return Decimal(0, one.e - other.e)
    shift = len(str(abs(other.n))) - len(str(abs(one.n))) + _PRECISION + 1
    e = one.e - other.e - shift
    if shift >= 0:
        n, rest = divmod(abs(one.n) * 10**shift, abs(other.n))
    else:
        n, rest = divmod(abs(one.n), abs(other.n) * 10**-shift)
    if rest:
        n += 1 if n % 5 == 0 else 0
    else:
        while e < one.e - other.e and n % 10 == 0:
            n //= 10
            e += 1
    return _fix(-n if (one.n < 0) != (other.n < 0) else n, e)


def _divide(one: Decimal, other: Decimal) -> tuple[Decimal, Decimal]:
    """Return the whole quotient of two numbers, cut toward zero, and the remainder."""
    if other.n == 0:
        raise ZeroDivisionError("division by zero")
    e = min(one.e, other.e)
    n, by = one.n * 10 ** (one.e - e), other.n * 10 ** (other.e - e)
    times = abs(n) // abs(by)
    rest = abs(n) - times * abs(by)
    return (
        Decimal(-times if (n < 0) != (by < 0) else times, 0),
        _fix(-rest if n < 0 else rest, e),
    )


def _difference(one: Any, other: Any) -> int:
    """Return a number above, at or below zero as one number is above, at or below another."""
    one, other = Decimal(one), Decimal(other)
    e = min(one.e, other.e)
    return int(one.n * 10 ** (one.e - e) - other.n * 10 ** (other.e - e))
