"""The part of `textwrap` that methods use: `wrap`, `fill`, `shorten`, `indent`, `dedent` with their usual options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _words(text: str, break_on_hyphens: bool) -> list[str]:
    """Split a text into words, also after a hyphen between letters if `break_on_hyphens`."""
    found: list[str] = []
    for word in text.split():
        start = 0
        for at in range(1, len(word) - 1):
            if break_on_hyphens and word[at] == "-" and word[at - 1].isalpha() and word[at + 1].isalpha():
                found.append(word[start : at + 1])
                start = at + 1
        found.append(word[start:] + " ")
    return found


def wrap(
    text: str,
    width: int = 70,
    *,
    initial_indent: str = "",
    subsequent_indent: str = "",
    break_long_words: bool = True,
    break_on_hyphens: bool = True,
) -> list[str]:
    """Split a text into lines of at most `width` characters; longer words only if `break_long_words`."""
    if width <= 0:
        raise ValueError(f"invalid width {width!r} (must be > 0)")
    lines: list[str] = []
    line, indent = "", initial_indent
    todo = _words(text, break_on_hyphens)
    todo.reverse()
    while todo:
        word = todo.pop()
        room = width - len(indent)
        if len(line) + len(word.rstrip()) <= room:
            line += word
        elif break_long_words and len(word.rstrip()) > room:
            cut = max(room - len(line), 0 if line else 1)
            todo.append(word[cut:])
            full = line + word[:cut]
            # As in CPython, a line that a blank fills to its end keeps that blank.
            lines.append(indent + (full if len(full) == room else full.rstrip()))
            line, indent = "", subsequent_indent
        elif line:
            lines.append(indent + line.rstrip())
            line, indent = "", subsequent_indent
            todo.append(word)
        else:
            lines.append(indent + word.rstrip())
            indent = subsequent_indent
    if line.rstrip():
        lines.append(indent + line.rstrip())
    return lines


def fill(text: str, width: int = 70, **options: Any) -> str:
    """Wrap a text and return the lines as one text."""
    return "\n".join(wrap(text, width, **options))


def shorten(text: str, width: int, *, placeholder: str = " [...]") -> str:
    """Put a text on one line of at most `width` characters, cut after a word."""
    words = text.split()
    line = " ".join(words)
    if len(line) <= width:
        return line
    if len(placeholder.strip()) > width:
        raise ValueError("placeholder too large for max width")
    while words and len(" ".join(words) + placeholder) > width:
        words.pop()
    return " ".join(words) + placeholder if words else placeholder.strip()


def indent(text: str, prefix: str, predicate: Callable[[str], object] | None = None) -> str:
    """Put a prefix before each line that is not blank, or that the predicate chooses."""
    lines: list[str] = []
    for line in text.splitlines(True):
        chosen = line.strip() if predicate is None else predicate(line)
        lines.append(prefix + line if chosen else line)
    return "".join(lines)


def dedent(text: str) -> str:
    """Remove the white space with which all lines begin; blank lines become empty."""
    lines = text.split("\n")
    margin: str | None = None
    for line in lines:
        if line.strip():
            lead = line[: len(line) - len(line.lstrip())]
            if margin is None:
                margin = lead
            while not lead.startswith(margin):
                margin = margin[:-1]
    cut = len(margin or "")
    return "\n".join([line[cut:] if line.strip() else "" for line in lines])
