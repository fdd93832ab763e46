"""Read JSON as Go's decoder does: accept the same texts, and refuse the others in its words."""

from __future__ import annotations

import codecs
import json
import re
from math import copysign, isinf
from sys import float_info
from typing import Any

NESTED = 10_000  # nested containers at most, as for Go's scanner
EMPTY = "EOF"
_CUT = "unexpected EOF"
_SAFE = 2**53  # integers up to this one are exact as float64
_DIGITS = 308  # of the largest number that float64 holds
_BLANKS = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(rb"[0-9]*")
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))")
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS = {b"t": (b"true", True), b"f": (b"false", False), b"n": (b"null", None)}


class GoError(Exception):
    """An error of Go's JSON decoder, in its words; the message of a text without a value is `EMPTY`."""


class Literal(str):
    """A number, kept as the digits that were sent."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object, kept as its keys and values in the order sent, with repeated keys."""

    __slots__ = ()


def _replace_bytes(fault: UnicodeError) -> tuple[str, int]:
    """Handle a decoding error: put one replacement character for every byte that is no UTF-8."""
    if not isinstance(fault, UnicodeDecodeError):
        raise fault
    return "\ufffd" * (fault.end - fault.start), fault.end


codecs.register_error("go-replacement", _replace_bytes)


class _Unusual(Exception):
    """Raised by `quick` for JSON that Python's decoder may read otherwise than Go's."""


def _integer(digits: str) -> int | float:
    """Return a whole number; beyond 2**53 it becomes a float. Raises: _Unusual: it has too many digits."""
    if len(digits) > _DIGITS:
        raise _Unusual
    value = int(digits)
    return value if -_SAFE <= value <= _SAFE else float(value)


def _float(digits: str) -> float:
    """Return a number with a point or an exponent. Raises: _Unusual: it overflows."""
    value = float(digits)
    if isinf(value):
        raise _Unusual
    return value


def _constant(name: str) -> Any:
    raise _Unusual


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its pairs. Raises: _Unusual: a key stands twice."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Unusual
    return found


_DECODER = json.JSONDecoder(
    parse_constant=_constant, parse_int=_integer, parse_float=_float, object_pairs_hook=_object, strict=True
)


def quick(body: bytes) -> Any:
    """Decode the first JSON value of a body with Python's fast decoder.

    Raises: GoError: the body is malformed, or Go may read it otherwise; the caller then asks `exact`.
    """
    try:
        text = body.decode("utf-8")
        if _SURROGATE.search(text):
            raise _Unusual
        return _DECODER.raw_decode(text, len(text) - len(text.lstrip(" \t\r\n")))[0]
    except (_Unusual, ValueError, RecursionError):
        raise GoError(_CUT) from None


def exact(body: bytes) -> Any:
    """Decode the first JSON value of a body, numbers as Literal and objects as Pairs. Slower than `quick`.

    Raises: GoError: the body is malformed; the message is Go's.
    """
    return _Scanner(body).value()


def plain(node: Any) -> tuple[Any, str]:
    """Convert a value of `quick` or `exact` to what Go decodes into an `any`: dicts, lists and float64 numbers.

    The second item is the first number too large for a float64, as sent, or "".
    """
    if isinstance(node, Literal):
        return number(node)
    if isinstance(node, Pairs):
        fields = [(key, *plain(value)) for key, value in node]
        return {key: value for key, value, _ in fields}, next((huge for _, _, huge in fields if huge), "")
    if isinstance(node, list):
        items = [plain(item) for item in node]
        return [value for value, _ in items], next((huge for _, huge in items if huge), "")
    return node, ""


def number(digits: Literal) -> tuple[int | float, str]:
    """Return the float64 of a number's digits, as an int if exact. The second item is "".

    For a number too large for a float64, return the largest float64 and the digits.
    """
    value = float(digits)
    if isinf(value):
        return copysign(float_info.max, value), digits
    return (int(digits) if digits.lstrip("-").isdigit() and abs(value) <= _SAFE else value), ""


def quote_byte(byte: int) -> str:
    """Return a byte as Go's message of a syntax error shows it, in single quotes."""
    character = chr(byte)
    if character == "'":
        return "'\\''"
    named = {"\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    if character in named:
        return f"'{named[character]}'"
    if byte < 0x20 or byte == 0x7F:
        return f"'\\x{byte:02x}'"
    return f"'{character}'" if byte < 0x7F or (byte > 0xA0 and byte != 0xAD) else f"'\\u00{byte:02x}'"


def _unescape(found: re.Match[str]) -> str:
    """Return the character that an escape stands for; half of a surrogate pair becomes U+FFFD."""
    high, low, code, other = found.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF))
    if code:
        point = int(code, 16)
        return "\ufffd" if 0xD800 <= point <= 0xDFFF else chr(point)
    return _NAMED.get(other, other)


class _Scanner:
    """A decoder of one JSON text, in steps of its grammar."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._open: list[tuple[list[Any], str]] = []  # containers, each with the key it stands under

    def value(self) -> Any:
        """Return the next value.

        Open containers are kept on a list and not on Python's stack: depth costs only memory.
        """
        self._blank()
        if self._at == len(self._data):
            raise GoError(EMPTY)
        key = ""
        while True:
            opened = self._container(key)
            if opened is not None:
                if not self._closes(opened):
                    self._open.append((opened, key))
                    key = self._key() if isinstance(opened, Pairs) else ""
                    continue
                node: Any = opened
            else:
                node = self._scalar()
            while self._open:
                container, above = self._open[-1]
                container.append((key, node) if isinstance(container, Pairs) else node)
                if self._goes_on(container):
                    key = self._key() if isinstance(container, Pairs) else ""
                    break
                self._open.pop()
                node, key = container, above
            else:
                return node

    def _blank(self) -> None:
        found = _BLANKS.match(self._data, self._at)
        self._at = found.end() if found else self._at

    def _next(self) -> int:
        """Return the next byte and leave it unread. Raises: GoError: the text ends here."""
        if self._at >= len(self._data):
            raise GoError(_CUT)
        return self._data[self._at]

    def _wrong(self, context: str) -> GoError:
        return GoError(f"invalid character {quote_byte(self._next())} {context}")

    def _container(self, key: str) -> list[Any] | None:
        """Return a new, empty container if one begins here, else None."""
        self._blank()
        byte = self._next()
        if byte not in b"{[":
            return None
        if len(self._open) >= NESTED:
            raise self._wrong("exceeded max depth")
        self._at += 1
        return Pairs() if byte == ord("{") else []

    def _closes(self, container: list[Any]) -> bool:
        """Return whether the container just opened ends here, and if so go past its end."""
        self._blank()
        closing = ord("}") if isinstance(container, Pairs) else ord("]")
        if self._next() != closing:
            return False
        self._at += 1
        return True

    def _goes_on(self, container: list[Any]) -> bool:
        """Go past a comma and return True, or past the container's end and return False."""
        self._blank()
        byte = self._next()
        keyed = isinstance(container, Pairs)
        if byte == ord(",") or byte == ord("}" if keyed else "]"):
            self._at += 1
            return byte == ord(",")
        raise self._wrong("after object key:value pair" if keyed else "after array element")

    def _key(self) -> str:
        """Return a key, and go past its colon."""
        self._blank()
        if self._next() != ord('"'):
            raise self._wrong("looking for beginning of object key string")
        key = self._string()
        self._blank()
        if self._next() != ord(":"):
            raise self._wrong("after object key")
        self._at += 1
        return key

    def _scalar(self) -> Any:
        """Return the value that begins here and is no container."""
        byte = self._data[self._at : self._at + 1]
        if byte == b'"':
            return self._string()
        if byte == b"-" or byte.isdigit():
            return self._number()
        if byte not in _WORDS:
            raise self._wrong("looking for beginning of value")
        word, value = _WORDS[byte]
        for expected in word:
            if self._next() != expected:
                raise self._wrong(f"in literal {word.decode()} (expecting {quote_byte(expected)})")
            self._at += 1
        return value

    def _number(self) -> Literal:
        """Return the digits of the number that begins here. Raises: GoError: it is malformed."""
        start = self._at
        if self._next() == ord("-"):
            self._at += 1
            self._digit("in numeric literal")
        if self._next() == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._follows(b"."):
            self._digit("after decimal point in numeric literal")
            self._digits()
        if self._follows(b"eE"):
            self._follows(b"+-")
            self._digit("in exponent of numeric literal")
            self._digits()
        return Literal(self._data[start : self._at].decode())

    def _follows(self, any_of: bytes) -> bool:
        """Go past the next byte if it is one of `any_of`; return whether it was."""
        found = self._at < len(self._data) and self._data[self._at] in any_of
        self._at += found
        return found

    def _digit(self, context: str) -> None:
        if not 0x30 <= self._next() <= 0x39:
            raise self._wrong(context)

    def _digits(self) -> None:
        found = _NUMBER.match(self._data, self._at)
        self._at = found.end() if found else self._at

    def _string(self) -> str:
        """Return the string that begins here; bytes that are no UTF-8 become replacement characters."""
        self._at += 1
        start = self._at
        while True:
            found = _PLAIN.match(self._data, self._at)
            self._at = found.end() if found else self._at
            byte = self._next()
            if byte == ord('"'):
                break
            if byte != ord("\\"):
                raise self._wrong("in string literal")
            self._escape()
        text = self._data[start : self._at].decode("utf-8", "go-replacement")
        self._at += 1
        return _ESCAPE.sub(_unescape, text) if "\\" in text else text

    def _escape(self) -> None:
        """Go past an escape of a string, which is replaced later. Raises: GoError: it is malformed."""
        self._at += 1
        byte = self._next()
        if byte not in b'bfnrtu\\/"':
            raise self._wrong("in string escape code")
        self._at += 1
        if byte == ord("u"):
            for _ in range(4):
                if self._next() not in _HEXADECIMAL:
                    raise self._wrong("in \\u hexadecimal character escape")
                self._at += 1
