"""Reads requests and tools for `bench/tools.py`, and compares the arguments of a call with those that are right."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

#: The day on which all requests are made.
DAY: Final = "2026-11-30"
#: Arguments of which the words count, and not the form.
_WORDS: Final = frozenset({"query", "text", "title", "article", "name", "sender"})


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A request with the tool that it needs, None for none, and the arguments: a list is of those that are right."""

    id: str
    language: str
    text: str
    tool: str | None
    arguments: Mapping[str, Any]


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON lines."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def read_requests(file: Path) -> list[ToolRequest]:
    """Return the requests of a file."""
    return [ToolRequest(**row) for row in read_lines(file)]


def family_of(tools: Sequence[Mapping[str, Any]], request: ToolRequest, number: int) -> list[Mapping[str, Any]]:
    """Return the tools of the right family; of a request that needs none, those of one family after another."""
    families = sorted({str(each["family"]) for each in tools})
    right = next((str(each["family"]) for each in tools if each["name"] == request.tool), None)
    wanted = right or families[number % len(families)]
    return [each for each in tools if each["family"] == wanted]


def is_right(request: ToolRequest, tool: str | None, arguments: Mapping[str, Any]) -> bool:
    """Test if a call is the one that a request needs: the same tool, and each argument right in its own way."""
    if tool != request.tool:
        return False
    return all(_is_equal(name, wanted, arguments.get(name)) for name, wanted in request.arguments.items())


def _is_equal(name: str, wanted: Any, given: Any) -> bool:
    if isinstance(wanted, list):
        return any(_is_equal(name, each, given) for each in wanted)
    if isinstance(wanted, (int, float)):
        try:
            return float(str(given).replace(",", ".")) == float(wanted)
        except ValueError:
            return False
    said, asked = _fold(str(given)), _fold(str(wanted))
    if name in _WORDS:  # every word that is needed, and not the whole request around them
        return set(asked) <= set(said) and len(said) <= len(asked) + 3
    return said == asked


def _fold(text: str) -> list[str]:
    """Return the words of a text in small letters, without articles and accents."""
    bare = "".join(each for each in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(each))
    found = re.findall(r"[\w:/.@-]*\w", bare)
    return [each for each in found if each not in {"the", "a", "der", "die", "das", "le", "la", "les", "el", "los"}]
