"""Finds the line of every key, table and list element of a TOML text, which the library's parser does not tell."""

from __future__ import annotations

import re
import tomllib
from typing import TypeAlias

from batos.protocol.errors import InternalError

#: Where a value stands in a file: table names, keys, and the places in lists, from 0.
KeyPath: TypeAlias = tuple[str | int, ...]

#: Texts and comments; a text that is never closed goes to the end of its line, one of several lines to the end of all.
_STRING_OR_COMMENT = re.compile(
    r"""
    \"\"\" (?: \\. | [^\\] )*? "{3,5}
    | ''' .*? '{3,5}
    | (?P<unclosed> \"\"\" | ''' )
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | ["'] [^\n]*
    | \# [^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
_BLANKS = re.compile(r"(?:[ \t\r\n,]+|#[^\n]*)*")
_SPACES = re.compile(r"[ \t]*")
_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def mask_strings(text: str) -> tuple[str, int | None]:
    """Replace the strings and comments of a text by NUL characters, and find a string that is never closed.

    Returns the masked text with its lines kept, and the offset at which the unclosed string begins, or None. The text
    need not be valid TOML.
    """
    parts: list[str] = []
    done = 0
    for found in _STRING_OR_COMMENT.finditer(text):
        end = len(text) if found["unclosed"] else found.end()
        hidden = re.sub(r"[^\n]", "\x00", text[found.start() : end])
        parts += [text[done : found.start()], hidden]
        done = end
        if found["unclosed"]:
            return "".join(parts), found.start()
    return "".join([*parts, text[done:]]), None


class KeyLines:
    """The lines (from 1) of a text that is sound TOML.

    >>> lines = KeyLines('a = [\\n1,\\n2]\\n[[b]]\\nc.d = { e = 1 }')
    >>> lines.line_of(("a", 1)), lines.line_of(("b", 0, "c", "d", "e")), lines.line_of(("b", 0, "x"))
    (3, 5, 4)
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line, self._counted = 1, 0
        self.keys: dict[KeyPath, int] = {}
        self._above: dict[KeyPath, int] = {}
        self._elements: dict[KeyPath, list[int]] = {}
        self._counts: dict[KeyPath, int] = {}
        self._read()

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, table or element, or of the nearest one around it; None if there is none."""
        while path:
            line = self.keys.get(path) or self._above.get(path) or self._element(path)
            if line is not None:
                return line
            path = path[:-1]
        return None

    def _element(self, path: KeyPath) -> int | None:
        lines, place = self._elements.get(path[:-1], []), path[-1]
        return lines[place] if isinstance(place, int) and 0 <= place < len(lines) else None

    def _read(self) -> None:
        table: KeyPath = ()
        while self._skip_blanks():
            if self._text[self._at] != "[":
                self._pair(table)
                continue
            is_array = self._text.startswith("[[", self._at)
            self._at += 1 + is_array
            line = self._here()
            table = self._with_indices(self._names(), is_array=is_array)
            self._note(table, line)
            self._at = self._text.index("]", self._at) + 1 + is_array

    def _skip_blanks(self) -> bool:
        """Go to what comes next; whether anything does."""
        found = _BLANKS.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at < len(self._text)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _note(self, path: KeyPath, line: int) -> None:
        self.keys.setdefault(path, line)
        for depth in range(1, len(path)):
            self._above.setdefault(path[:depth], line)

    def _take(self, pattern: re.Pattern[str]) -> str:
        """Return what stands here and go on after it. Raises: InternalError: it is something else."""
        found = pattern.match(self._text, self._at)
        if found is None:
            raise InternalError(f"line {self._here()} was read as TOML, and the places of its keys cannot be found")
        self._at = found.end()
        return found[0]

    def _names(self) -> tuple[str, ...]:
        """Read the parts of a dotted key and go on after it."""
        names: list[str] = []
        while True:
            self._spaces()
            names.append(_plain(self._take(_STRING_OR_COMMENT if self._text[self._at] in "\"'" else _KEY)))
            self._spaces()
            if self._text[self._at] != ".":
                return tuple(names)
            self._at += 1

    def _spaces(self) -> None:
        found = _SPACES.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _with_indices(self, names: tuple[str, ...], *, is_array: bool) -> KeyPath:
        path: KeyPath = ()
        for depth, name in enumerate(names):
            path += (name,)
            if is_array and depth == len(names) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path += (self._counts[path],)
        return path

    def _pair(self, table: KeyPath) -> None:
        """Read a key and its value, however deep its lists and inline tables are."""
        open_: list[KeyPath] = []
        self._key(table, open_)
        while open_:
            self._skip_blanks()
            path = open_[-1]
            if self._text[self._at] in "]}":
                self._at += 1
                open_.pop()
            elif path in self._elements:
                elements = self._elements[path]
                elements.append(self._here())
                self._value((*path, len(elements) - 1), open_)
            else:
                self._key(path, open_)

    def _key(self, table: KeyPath, open_: list[KeyPath]) -> None:
        line = self._here()
        path = table + self._names()
        self._note(path, line)
        self._at += 1  # the equals sign
        self._value(path, open_)

    def _value(self, path: KeyPath, open_: list[KeyPath]) -> None:
        self._spaces()
        begins = self._text[self._at]
        if begins in "[{":
            self._at += 1
            open_.append(path)
            if begins == "[":
                self._elements[path] = []
            return
        self._take(_STRING_OR_COMMENT if begins in "\"'" else _SCALAR)


def _plain(written: str) -> str:
    """Return a part of a key without its quotes."""
    if written[0] not in "\"'":
        return written
    if "\\" not in written or written[0] == "'":
        return written[1:-1]
    return next(iter(tomllib.loads(f"{written} = 0")))
