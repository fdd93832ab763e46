"""A codex file read key by key, each fault kept with the file, the line and what to do."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from batos.errors import CodexError

#: Where a value stands in a file: table names, indices of arrays of tables, the key last.
KeyPath: TypeAlias = tuple[str | int, ...]

_STRING_OR_COMMENT = re.compile(
    r"""
    \"\"\" (?: \\. | [^\\] )*? "{3,5}  # a text of several lines
    | ''' .*? '{3,5}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | \# [^\n]*
    """,
    re.DOTALL | re.VERBOSE,
)
_KEY = r"(?:[A-Za-z0-9_-]+|\x00+)"
_DOTTED = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_LINE = re.compile(
    rf"^[ \t]*(?:(?P<open>\[\[?)[ \t]*(?P<header>{_DOTTED})[ \t]*\]\]?|(?P<key>{_DOTTED})[ \t]*=)", re.MULTILINE
)
_AT_LINE = re.compile(r"at line (\d+)")

#: The most parts of a dotted key: reading takes the square of their number.
_PARTS = 32
_MANY_PARTS = re.compile(rf"(?<![\w\x00-])(?:[\w\x00-]+[ \t]*\.[ \t]*){{{_PARTS}}}")
_BRACKET = re.compile(r"[][{}]")
_MANY_DIGITS = re.compile(r"[\d_]{1000}")

#: What a whole number of TOML may be.
_WHOLE = range(-(2**63), 2**63)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line (from 1) on which every table and key of a TOML text is written.

    >>> key_lines('a = 1\\n[[b]]\\nc = \"\"\"\\nd = 2\\n\"\"\"\\n')
    {('a',): 1, ('b', 0): 2, ('b', 0, 'c'): 3}
    """
    return _key_lines(text, _masked(text))


def _key_lines(text: str, masked: str) -> dict[KeyPath, int]:
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    line, counted = 1, 0
    for found in _LINE.finditer(masked):
        group = "header" if found["header"] else "key"
        begin, end = found.span(group)
        line, counted = line + masked.count("\n", counted, begin), begin
        names = tuple(part.strip().strip("\"'") for part in text[begin:end].split(".", _PARTS))
        if group == "header":
            table = _with_indices(names, counts, is_array=found["open"] == "[[")
            path = table
        else:
            path = table + names
        lines.setdefault(path, line)
    return lines


def _masked(text: str) -> str:
    """The text with each character of its strings and comments made NUL; lines stay lines."""
    return _STRING_OR_COMMENT.sub(lambda found: "\n".join("\x00" * len(line) for line in found[0].split("\n")), text)


def _line_of_many_parts(masked: str) -> int | None:
    """The line of a dotted key of more parts than there may be, None if there is none."""
    for number, line in enumerate(masked.split("\n"), 1):
        if line.count(".") >= _PARTS and _MANY_PARTS.search(line):
            return number
    return None


def _deepest_line(masked: str) -> int:
    """The line on which the most brackets are open."""
    depth, deepest, at = 0, 0, 0
    for found in _BRACKET.finditer(masked):
        depth += 1 if found[0] in "[{" else -1
        if depth > deepest:
            deepest, at = depth, found.start()
    return masked.count("\n", 0, at) + 1


def _with_indices(names: tuple[str, ...], counts: dict[KeyPath, int], *, is_array: bool) -> KeyPath:
    path: KeyPath = ()
    for depth, name in enumerate(names):
        path += (name,)
        if is_array and depth == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path += (counts[path],)
    return path


class Source:
    """One TOML file: its values, where they are written, and the faults found so far."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.faults: list[CodexError] = []
        self._text = text
        masked = _masked(text)
        self._lines = _key_lines(text, masked)
        self.values = self._parse(masked)
        self.top = Table(self, self.values, ())

    def _parse(self, masked: str) -> dict[str, Any]:
        line = _line_of_many_parts(masked)
        if line is not None:
            return self._unread(line, f"a key has more than {_PARTS} parts", "Write shorter keys: see docs/codex.md.")
        try:
            values = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            at = _AT_LINE.search(str(error))
            line = int(at[1]) if at else max(1, self._text.count("\n"))
            remedy = "Mend the TOML at that line; a text with line breaks stands between three double quotes."
            return self._unread(line, f"not TOML: {error}", remedy)
        except RecursionError:
            remedy = "Close the brackets at that line; no value of a codex is nested so deep."
            return self._unread(_deepest_line(masked), "brackets are nested too deep", remedy)
        except ValueError:  # what Python says of whole numbers of thousands of digits
            digits = _MANY_DIGITS.search(masked)
            line = masked.count("\n", 0, digits.start() if digits else 0) + 1
            return self._unread(line, "a number has too many digits", "Write a number that fits 64 bits.")
        self._refuse_numbers(values)
        return values

    def _unread(self, line: int, message: str, remedy: str) -> dict[str, Any]:
        self.faults.append(CodexError(message, file=self.file, line=line, remedy=remedy))
        return {}

    def _refuse_numbers(self, values: Mapping[str, Any]) -> None:
        """No number that JSON and the daemon could not take: beyond 64 bits, infinite, or none at all."""
        pending: list[tuple[KeyPath, Any]] = [((), values)]
        while pending:
            path, value = pending.pop()
            if isinstance(value, dict):
                pending.extend(((*path, key), each) for key, each in value.items())
            elif isinstance(value, list):
                pending.extend(((*path, number), each) for number, each in enumerate(value))
            elif isinstance(value, int) and value not in _WHOLE:
                self.fault(path, f"`{path[-1]}` does not fit 64 bits", "Write a smaller number.")
            elif isinstance(value, float) and not math.isfinite(value):
                self.fault(path, f"`{path[-1]}` is {value}", "Write a finite number.")

    def line(self, path: KeyPath, value: str | None = None) -> int | None:
        """The line of a key, or of the table around it; with `value`, of that element of its list."""
        while path and path not in self._lines:
            path = path[:-1]
        line = self._lines.get(path)
        if line is not None and value is not None:
            for number, written in enumerate(self._text.splitlines()[line - 1 :], start=line):
                if value in written:
                    return number
        return line

    def fault(self, path: KeyPath, message: str, remedy: str, value: str | None = None) -> None:
        """Keep a fault; reading goes on, so that one look shows them all."""
        field = ".".join(str(part) for part in path) or None
        line = self.line(path, value)
        self.faults.append(CodexError(message, file=self.file, line=line, remedy=remedy, field=field))


class Table:
    """The keys of one table, taken one by one; what is left when it is closed is unknown."""

    def __init__(self, source: Source, values: Mapping[str, Any], path: KeyPath) -> None:
        self.source = source
        self.path = path
        self._values = values
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def names(self) -> tuple[str, ...]:
        """The keys that are written, in order."""
        return tuple(self._values)

    def fault(self, key: str, message: str, remedy: str, value: str | None = None) -> None:
        """Keep a fault at one of this table's keys."""
        self.source.fault((*self.path, key), message, remedy, value)

    def raw(self, key: str) -> Any:
        """The value as TOML gives it, or None."""
        self._known.append(key)
        return self._values.get(key)

    def text(self, key: str, *, default: str | None = None) -> str:
        """A text that is not blank, stripped; without a default it must be there."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and (value.strip() or default is not None):
            return value.strip()
        self._refuse(key, value, "a text")
        return ""

    def flag(self, key: str, *, default: bool) -> bool:
        """true or false."""
        value = self.raw(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._refuse(key, value, "true or false")
        return default

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        """A list of texts, none blank."""
        value = self.raw(key)
        if value is None and not required:
            return ()
        are_texts = isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)
        if are_texts and (value or not required):
            return tuple(item.strip() for item in value)
        self._refuse(key, value, "a list of texts, none of them blank")
        return ()

    def table(self, key: str) -> Table:
        """The table under a key; an empty one if it is absent."""
        value = self.raw(key)
        if value is not None and not isinstance(value, dict):
            self._refuse(key, value, "a table")
            value = None
        return Table(self.source, value or {}, (*self.path, key))

    def tables(self, key: str) -> tuple[Table, ...]:
        """The array of tables under a key; an empty one if it is absent."""
        value = self.raw(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self._refuse(key, value, "an array of tables")
            return ()
        return tuple(Table(self.source, item, (*self.path, key, number)) for number, item in enumerate(value))

    def close(self) -> None:
        """Refuse every key that nothing asked for."""
        for key in self._values:
            if key not in self._known:
                self.fault(key, f"unknown key `{key}`", f"Remove it{suggestion(key, self._known)}.")

    def _refuse(self, key: str, value: object, wanted: str) -> None:
        if value is None:
            self.fault(key, f"`{key}` is missing", f"Write `{key}`: it must be {wanted}.")
        else:
            self.fault(key, f"`{key}` must be {wanted}", f"Write `{key}` as {wanted}; see docs/codex.md.")


def suggestion(word: str, known: Iterable[str]) -> str:
    """How an error names what may have been meant: `, or write ...`; else the permitted words."""
    known = sorted(set(known))
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f", or write `{close[0]}`"
    return f"; what may stand here: {', '.join(known)}" if known else ""
