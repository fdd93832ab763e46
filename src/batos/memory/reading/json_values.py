"""Yield the JSON values of a file one by one: of each line (JSONL), the elements of a list, or one behind the other."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import IO, Any, Final

from batos.memory.reading.read_text import NotReadable

#: Bytes that are read at once; more for a value that is longer, twice as many each time.
_PIECE: Final = 2**18
#: The longest line.
_LINE: Final = 2**26
_BLANKS: Final = " \t\r\n\ufeff"


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """A line of a file of lines that is no JSON."""

    number: int


def json_values(file: IO[bytes]) -> Iterator[Any]:
    """Yield the values of a file that can be gone back in; where each line has one, a broken line leaves the others.

    Raises: NotReadable: what is there is not JSON.
    """
    first = file.readline(_LINE)
    if _is_a_line(first):
        yield from _lines(chain([first], iter(partial(file.readline, _LINE), b"")))
        return
    file.seek(0)
    window = _Window(file)
    passed, end = _BLANKS, ""
    if window.peek(_BLANKS) == "[":
        window.skip()
        passed, end = _BLANKS + ",", "]"
    while window.peek(passed) not in {"", end}:
        yield window.value()


def _is_a_line(first: bytes) -> bool:
    """Test if a file's first line is an object with others below it."""
    text = first.decode("utf-8", "replace").strip(_BLANKS)
    try:
        return first.endswith(b"\n") and text[:1] == "{" and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _lines(lines: Iterable[bytes]) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if text := line.decode("utf-8", "replace").strip(_BLANKS):
            try:
                yield json.loads(text)
            except (ValueError, RecursionError):
                yield BrokenLine(number)


class _Window:
    """A part of a file's text, read on as far as it is needed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._decoder = json.JSONDecoder()

    def peek(self, passed: str) -> str:
        """Return the next character but those that are passed over; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in passed:
                self._at += 1
            if self._at < len(self._text) or not self._more(_PIECE):
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Pass over a character."""
        self._at += 1

    def value(self) -> Any:
        """Return the value that begins here."""
        size = _PIECE
        while True:
            try:
                found, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._more(size):
                    raise NotReadable("it is not JSON to its end") from None
                size *= 2
                continue
            if end == len(self._text) and self._more(size):
                continue  # a number may go on
            self._at = end
            return found

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        data = self._file.read(size)
        self._ended = not data
        self._text, self._at = self._text[self._at :] + self._decode(data, not data), 0
        return True
