"""The text of one field of a reply that is still streaming, so that people see the answer and not its JSON."""

from __future__ import annotations

import json
import re
from enum import Enum, auto

_PLAIN = re.compile(r'[^"\\]+')
_MARK = re.compile(r'["{}\[\],:]')
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _In(Enum):
    STRUCTURE = auto()
    KEY = auto()
    WANTED = auto()
    OTHER = auto()


class AnswerStream:
    r"""Takes the pieces of a JSON object as they arrive and returns the decoded text of one string at its top level.

    `AnswerStream("answer")` fed `{"answer": "No\\` and `u0061 way"}` returns "No" and then "a way". Nothing is checked
    here: the whole reply is parsed at its end.
    """

    __slots__ = ("_depth", "_high", "_in", "_key", "_name", "_rest", "_value", "ended", "key")

    def __init__(self, key: str) -> None:
        self.key = key
        self.ended = False
        self._in = _In.STRUCTURE
        self._depth = 0
        self._name: list[str] = []  # the raw text of the key being read
        self._key: str | None = None  # the key whose value is being read
        self._value = False  # behind the colon
        self._rest = ""  # an escape that the next piece completes
        self._high = ""  # the first half of a surrogate pair

    def feed(self, piece: str) -> str:
        """Return the text that a piece adds to the field, "" if none."""
        if self.ended:
            return ""
        text, self._rest = self._rest + piece, ""
        out: list[str] = []
        at = 0
        while at < len(text) and not self.ended:
            at = self._structure(text, at) if self._in is _In.STRUCTURE else self._string(text, at, out)
        return "".join(out)

    def _structure(self, text: str, at: int) -> int:
        found = _MARK.search(text, at)
        if found is None:
            return len(text)
        mark = found.group()
        if mark in "{[":
            self._depth += 1
        elif mark in "}]":
            self._depth -= 1
        elif self._depth == 1 and mark == ":":
            self._value = True
        elif self._depth == 1 and mark == ",":
            self._value, self._key = False, None
        elif mark == '"':
            self._open()
        return found.end()

    def _open(self) -> None:
        if self._depth != 1:
            self._in = _In.OTHER
        elif not self._value:
            self._in = _In.KEY
            self._name = []
        else:
            self._in = _In.WANTED if self._key == self.key else _In.OTHER

    def _string(self, text: str, at: int, out: list[str]) -> int:
        plain = _PLAIN.match(text, at)
        if plain is not None:
            self._add(plain.group(), out)
            return plain.end()
        if text[at] == '"':
            self._close(out)
            return at + 1
        need = 2 if len(text) - at < 2 or text[at + 1] != "u" else 6
        if len(text) - at < need:
            self._rest = text[at:]
            return len(text)
        self._escape(text[at : at + need], out)
        return at + need

    def _add(self, plain: str, out: list[str]) -> None:
        if self._in is _In.KEY:
            self._name.append(plain)
        elif self._in is _In.WANTED:
            self._flush(out)
            out.append(plain)

    def _escape(self, escape: str, out: list[str]) -> None:
        if self._in is _In.KEY:
            self._name.append(escape)
        elif self._in is _In.WANTED:
            self._decode(escape, out)

    def _decode(self, escape: str, out: list[str]) -> None:
        kind, digits = escape[1], escape[2:]
        if kind != "u":
            self._flush(out)
            out.append(_SHORT.get(kind, ""))
            return
        try:
            unit = int(digits, 16)
        except ValueError:
            return
        if self._high and 0xDC00 <= unit < 0xE000:
            out.append(chr(0x10000 + ((ord(self._high) - 0xD800) << 10) + unit - 0xDC00))
            self._high = ""
            return
        self._flush(out)
        if 0xD800 <= unit < 0xDC00:
            self._high = chr(unit)
        else:
            out.append(chr(unit))

    def _flush(self, out: list[str]) -> None:
        """Output the first half of a surrogate pair whose second half did not come, as json.loads does."""
        if self._high:
            out.append(self._high)
            self._high = ""

    def _close(self, out: list[str]) -> None:
        if self._in is _In.KEY:
            self._key = _decode_string("".join(self._name))
        elif self._in is _In.WANTED:
            self._flush(out)
            self.ended = True
        self._in = _In.STRUCTURE


def _decode_string(raw: str) -> str:
    try:
        return str(json.loads(f'"{raw}"', strict=False))
    except ValueError:
        return raw
