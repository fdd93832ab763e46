"""Reads the files of a codex as TOML, and keeps each fault with the file, the line and a remedy."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from batos.genesis.codex.key_lines import KeyLines, KeyPath, mask_strings
from batos.protocol.errors import CodexError

#: The most that a file of the codex may have, in bytes: the shipped ones have some thousands.
LARGEST = 2**20
_AT_LINE = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")

#: The most parts of a dotted key: reading takes the square of their number.
_PARTS = 32
_MANY_PARTS = re.compile(rf"(?<![\w\x00-])(?:[\w\x00-]+[ \t]*\.[ \t]*){{{_PARTS}}}")
_BRACKET = re.compile(r"[][{}]")
_MANY_DIGITS = re.compile(r"[\d_]{1000}")

#: The range of TOML's whole numbers.
_WHOLE = range(-(2**63), 2**63)


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
    """Return a text without its strings, the place of an unclosed one, and the line of a key of too many parts."""
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

    def _refuse_numbers(self, values: Mapping[str, object]) -> None:
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
        """Return the line of a key or element, or of the one around it; with `within`, that of this text."""
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

    def refuse_unknown(self, path: KeyPath, what: str, known: Iterable[str]) -> None:
        """Refuse a key that does not belong here: what was meant, or where it belongs, or what may stand here."""
        self.fault(path, *_unknown_fault(str(path[-1]), what, known, self.homes))


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


# -- the files of a codex as bytes


def is_there(path: Path) -> bool:
    """Test if anything has that name, also a broken link or something unreadable: reading it will tell."""
    try:
        path.lstat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def read_texts(folder: Path, names: Sequence[str]) -> tuple[dict[str, str], list[CodexError]]:
    """Return the texts of a codex's files by name, and a fault for each file that is unreadable or out of place."""
    found: dict[str, str] = {}
    faults: list[CodexError] = []
    if not is_there(folder):
        remedy = "Run `batos genesis`: it copies the shipped codex there."
        return found, [CodexError("there is no codex yet", file=str(folder), remedy=remedy)]
    for name in names:
        try:
            found[name] = _text(folder / name)
        except CodexError as fault:
            faults.append(fault)
    for path in sorted(folder.glob("[!.]*.toml")):
        if path.name not in names:
            near = nearest_word(path.name, names)
            hint = f": did you mean {near}?" if near else ""
            remedy = f"Move it away; there are {', '.join(names)} and no other."
            faults.append(CodexError(f"no such part of the codex{hint}", file=str(path), remedy=remedy))
    return found, faults


def _text(path: Path) -> str:
    file = str(path)
    try:
        if path.exists() and not path.is_file():
            raise CodexError("not a file", file=file, remedy="Move it away; `batos genesis` copies the shipped file.")
        with path.open("rb") as opened:
            data = opened.read(LARGEST + 1)
    except FileNotFoundError:
        if path.is_symlink():
            remedy = "Restore its target, or remove it: `batos genesis` then copies the shipped file."
            raise CodexError("a broken link", file=file, remedy=remedy) from None
        remedy = "Run `batos genesis`: it copies the shipped file to where one is missing."
        raise CodexError("the file is missing", file=file, remedy=remedy) from None
    except OSError as error:
        raise CodexError(f"cannot be read: {error.strerror}", file=file, remedy="Make it readable for you.") from error
    if len(data) > LARGEST:
        raise CodexError(f"more than {LARGEST} bytes", file=file, remedy="Shorten it: a codex is some pages of text.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise CodexError(what, file=file, line=line, remedy="Save it as UTF-8.") from error
