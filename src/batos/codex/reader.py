"""Reads a codex file key by key, and keeps each fault with the file, the line and a remedy."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property, lru_cache
from typing import Any

from batos.codex.key_lines import KeyLines, KeyPath, mask_strings
from batos.protocol.errors import CodexError

_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")

#: The most parts of a dotted key: reading takes the square of their number.
_PARTS = 32
_MANY_PARTS = re.compile(rf"(?<![\w\x00-])(?:[\w\x00-]+[ \t]*\.[ \t]*){{{_PARTS}}}")
_BRACKET = re.compile(r"[][{}]")
_MANY_DIGITS = re.compile(r"[\d_]{1000}")

#: Characters that steer a terminal or end a text for programs: none belongs in a prompt.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: The range of TOML's whole numbers.
_WHOLE = range(-(2**63), 2**63)

_KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (str, "a text"),
    (int, "a whole number"),
    (float, "a number with a point"),
    (list, "a list"),
    (dict, "a table"),
)


def _line_of_many_parts(hidden: str) -> int | None:
    """Return the line of a dotted key with too many parts, or None."""
    for number, line in enumerate(hidden.split("\n"), 1):
        if line.count(".") >= _PARTS and _MANY_PARTS.search(line):
            return number
    return None


def _deepest_line(hidden: str) -> int:
    """Return the line on which the most brackets are open."""
    depth, deepest, at = 0, 0, 0
    for found in _BRACKET.finditer(hidden):
        depth += 1 if found[0] in "[{" else -1
        if depth > deepest:
            deepest, at = depth, found.start()
    return hidden.count("\n", 0, at) + 1


@lru_cache(maxsize=16)
def _scan(text: str) -> tuple[str, int | None, int | None]:
    """Return a text with its strings hidden, the position of an unclosed one, and the line of a key with too many
    parts.
    """
    hidden, unclosed = mask_strings(text)
    return hidden, unclosed, _line_of_many_parts(hidden)


@lru_cache(maxsize=16)
def _parse_text(text: str) -> dict[str, Any]:
    """Parse a TOML text. Cached, since of the five files of a codex mostly none or one changes."""
    return tomllib.loads(text)


class TomlSource:
    """A TOML file: its values, the lines on which they are written, and the faults found so far.

    `homes` gives the right place of words that are keys elsewhere, for the remedy of a misplaced key.
    """

    def __init__(self, file: str, text: str, homes: Mapping[str, str] | None = None) -> None:
        self.file = file
        self.homes = homes or {}
        self.faults: list[CodexError] = []
        self.text = text
        #: True if the file is TOML: only then can its keys be checked.
        self.sound = True
        self.values = self._parse()
        self.top = TomlTable(self, self.values, ())

    @cached_property
    def _lines(self) -> KeyLines:
        """Return where each key stands, which only a fault needs to know: the scan takes longer than the parser."""
        return KeyLines(self.text)

    def faulty(self, key: str) -> bool:
        """Test if a fault was found at a top-level key or below it."""
        return any((fault.field or "").partition(".")[0] == key for fault in self.faults)

    def _parse(self) -> dict[str, Any]:
        hidden, unclosed, line = _scan(self.text)
        if line is not None:
            return self._reject(
                line, f"a key has more than {_PARTS} parts", "Write shorter keys: see `batos help codex`."
            )
        try:
            read = _parse_text(self.text)
        except tomllib.TOMLDecodeError as error:
            return self._not_toml(str(error), unclosed)
        except RecursionError:
            remedy = "Close the brackets at that line; no value of a codex is nested so deep."
            return self._reject(_deepest_line(hidden), "brackets are nested too deep", remedy)
        except ValueError:  # what Python says of whole numbers of thousands of digits
            digits = _MANY_DIGITS.search(hidden)
            line = hidden.count("\n", 0, digits.start() if digits else 0) + 1
            return self._reject(line, "a number has too many digits", "Write a number that fits 64 bits.")
        values = deepcopy(read)
        self._refuse_numbers(values)
        return values

    def _not_toml(self, said: str, unclosed: int | None) -> dict[str, Any]:
        """Add a fault of syntax at its line; for an unclosed text that is the line on which it begins."""
        at = _AT_LINE.search(said)
        what = _AT_LINE.sub("", said)
        last = max(1, self.text.count("\n") + (not self.text.endswith("\n")))
        if at is not None and at[1] is not None:
            line, what = int(at[1]), f"{what} (column {at[2]})"
        else:
            line = last
        if unclosed is not None:
            opened = self.text.count("\n", 0, unclosed) + 1
            if line in (opened, last):
                remedy = "Close it with the three quotes that it begins with."
                return self._reject(opened, "not TOML: this text is never closed", remedy)
        remedy = "Correct the TOML there or just above: write a text of several lines between three double quotes."
        return self._reject(line, f"not TOML: {what}", remedy)

    def _reject(self, line: int, message: str, remedy: str) -> dict[str, Any]:
        self.sound = False
        self.faults.append(CodexError(message, file=self.file, line=line, remedy=remedy))
        return {}

    def _refuse_numbers(self, values: Mapping[str, Any]) -> None:
        """Refuse numbers that JSON or the daemon cannot take: beyond 64 bits, infinite, or NaN."""
        pending: list[tuple[KeyPath, Any]] = [((), values)]
        while pending:
            path, value = pending.pop()
            if isinstance(value, dict):
                pending.extend(((*path, key), each) for key, each in value.items())
            elif isinstance(value, list):
                pending.extend(((*path, number), each) for number, each in enumerate(value))
            elif isinstance(value, int) and value not in _WHOLE:
                self.fault(path, f"{_path_name(path)} does not fit 64 bits", "Write a smaller number.")
            elif isinstance(value, float) and not math.isfinite(value):
                self.fault(path, f"{_path_name(path)} is {value}", "Write a finite number.")

    def line(self, path: KeyPath, within: str | None = None) -> int | None:
        """Return the line of a key or element, or of the one around it; with `within`, the line that contains this
        text.
        """
        line = self._lines.line_of(path) if self.sound else None
        if line is not None and within is not None:
            for number, written in enumerate(self.text.splitlines()[line - 1 :], start=line):
                if within in written:
                    return number
        return line

    def fault(self, path: KeyPath, message: str, remedy: str, within: str | None = None) -> None:
        """Keep a fault; reading goes on, so that one look shows them all."""
        field = ".".join(str(part) for part in path) or None
        line = self.line(path, within) or 1
        self.faults.append(CodexError(message, file=self.file, line=line, remedy=remedy, field=field))


class TomlTable:
    """The keys of one table, taken one by one; what is left when it is closed is unknown."""

    def __init__(self, source: TomlSource, values: Mapping[str, Any], path: KeyPath) -> None:
        self.source = source
        self.path = path
        self._values = values
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def names(self) -> tuple[str, ...]:
        """Return the written keys, in order."""
        return tuple(self._values)

    def fault(self, key: str, message: str, remedy: str, within: str | int | None = None) -> None:
        """Keep a fault at one of this table's keys; `within` is the place in its list, or a part of its text."""
        place = (within,) if isinstance(within, int) else ()
        part = within if isinstance(within, str) else None
        self.source.fault((*self.path, key, *place), message, remedy, part)

    def refuse_unknown(self, key: str, what: str, known: Iterable[str]) -> None:
        """Refuse a key that does not belong here: what was meant, or where it belongs, or what may stand here."""
        self.fault(key, *_unknown_fault(key, what, known, self.source.homes))

    def raw(self, key: str) -> Any:
        """Return the value as TOML gives it, or None."""
        self._known.append(key)
        return self._values.get(key)

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return a text, stripped. Without a default it must be there and not blank."""
        value = self.raw(key)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and (value.strip() or default is not None):
            self._refuse_control(key, value)
            return value.strip()
        self._refuse(key, value, "a text")
        return ""

    def flag(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.raw(key)
        if value is None or isinstance(value, bool):
            return default if value is None else value
        self._refuse(key, value, "true or false")
        return default

    def texts(self, key: str, *, required: bool = True) -> tuple[str, ...]:
        """Return a list of texts, none blank."""
        value = self.raw(key)
        if value is None and not required:
            return ()
        if not isinstance(value, list) or (required and not value):
            self._refuse(key, value, "a list of texts")
            return ()
        for place, item in enumerate(value):
            if not isinstance(item, str) or not item.strip():
                said = _kind(item) if not isinstance(item, str) else "blank"
                message = f"`{key}` must be a list of texts, none of them blank: one is {said}"
                self.fault(key, message, "Write a text there, or remove it.", place)
            else:
                self._refuse_control(key, item, place)
        return tuple(item.strip() for item in value if isinstance(item, str))

    def table(self, key: str) -> TomlTable:
        """Return the table under a key; an empty one if it is absent."""
        value = self.raw(key)
        if value is not None and not isinstance(value, dict):
            self._refuse(key, value, "a table")
            value = None
        return TomlTable(self.source, value or {}, (*self.path, key))

    def tables(self, key: str) -> tuple[TomlTable, ...]:
        """Return the array of tables under a key; an empty one if it is absent."""
        value = self.raw(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self._refuse(key, value, f"an array of tables (each begins with [[{key}]])")
            return ()
        return tuple(TomlTable(self.source, item, (*self.path, key, number)) for number, item in enumerate(value))

    def close(self) -> None:
        """Refuse every key that nothing asked for."""
        for key in self._values:
            if key not in self._known:
                self.refuse_unknown(key, "key", self._known)
                self._forget_missing(nearest_word(key, self._known))

    def _forget_missing(self, key: str | None) -> None:
        """Forget that a key is missing: it is there, misspelt, and that is said."""
        if key is not None and key not in self._values:
            field = ".".join(map(str, (*self.path, key)))
            gone = (field, _missing(key))
            self.source.faults[:] = [each for each in self.source.faults if (each.field, each.what) != gone]

    def _refuse(self, key: str, value: object, wanted: str) -> None:
        if value is None:
            self.fault(key, _missing(key), f"Write `{key}`: it must be {wanted}.")
        elif value in ("", []) or (isinstance(value, str) and not value.strip()):
            self.fault(key, f"`{key}` is empty: it must be {wanted}", f"Write what `{key}` is; see `batos help codex`.")
        else:
            remedy = f"Write `{key}` as {wanted}; see `batos help codex`."
            self.fault(key, f"`{key}` must be {wanted}, and is {_kind(value)}", remedy)

    def _refuse_control(self, key: str, value: str, place: int | None = None) -> None:
        found = _CONTROL.search(value)
        if found is not None:
            message = f"`{key}` holds the control character U+{ord(found[0]):04X}"
            remedy = "Remove it: a text may hold line breaks and tabs, no other control character."
            self.fault(key, message, remedy, place)


def _missing(key: str) -> str:
    return f"`{key}` is missing"


def _kind(value: object) -> str:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "a date or time")


def _path_name(path: KeyPath) -> str:
    """Return the name of a path for a message: its last key, also for an element of a list."""
    return next((f"`{part}`" for part in reversed(path) if isinstance(part, str)), "the value")


def _unknown_fault(word: str, what: str, known: Iterable[str], homes: Mapping[str, str]) -> tuple[str, str]:
    if word in homes:
        return f"unknown {what} `{word}` here", f"Write it {homes[word]}."
    near = nearest_word(word, known)
    if near is None:
        permitted = ", ".join(sorted(set(known)))
        return f"unknown {what} `{word}`", f"Remove it; permitted here: {permitted}."
    return f"unknown {what} `{word}`: did you mean `{near}`?", f"Write `{near}`, or remove it."


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """Return the permitted word that is nearest to a mistyped one, None if none is near."""
    close = difflib.get_close_matches(word, sorted(set(known)), n=1)
    return close[0] if close else None
