"""The description of a wanted method, the method written for it, and text as literals of its source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ollama_emulator.speech.language import NOTICE

_LINE: Final = 88  # characters of a literal's line
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class MethodWish:
    """A method as the prompt asks for it: `parameters` are names alone, `signature` what stands in its brackets.

    `slots` are the receiver's, by name, with what their values are; `declared` is its kind where that is said, `told`
    as much of the intent as there is room for.
    """

    selector: str
    parameters: tuple[str, ...]
    intent: str
    title: str = ""
    inspiration: str = ""
    slots: tuple[tuple[str, str], ...] = ()
    signature: str = ""
    declared: str = ""
    told: str = ""

    @property
    def kind(self) -> str:
        """Return `facet`, `protocol`, `tool` or `method`: as declared, else by the end of the selector."""
        if self.declared:
            return self.declared
        for kind in ("facet", "protocol"):
            if self.selector.endswith(f"_{kind}_"):
                return kind
        return "method"

    @property
    def speaks(self) -> bool:
        """Return whether the method is the voice of a persona, which thinks and does not compute."""
        return self.kind in ("facet", "protocol")

    @property
    def words(self) -> frozenset[str]:
        """Return the words of selector and intent, in small letters."""
        return frozenset(_WORD.findall(f"{self.selector} {self.intent}".replace("_", " ").lower()))

    def slot(self, *kinds: str) -> str:
        """Return the first slot whose value is of one of the kinds, "" if there is none."""
        return next((name for name, kind in self.slots if kind.startswith(kinds)), "")


@dataclass(frozen=True, slots=True)
class MethodCheck:
    """A call that checks the method: its arguments, the replies to its thoughts, and the expected result."""

    arguments: tuple[Any, ...] = ()
    infer: tuple[str, ...] = ()
    result: Any = None
    slots: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrittenMethod:
    """A method and its checks."""

    source: str
    checks: tuple[MethodCheck, ...]


def method(wish: MethodWish, body: Sequence[str], about: str, *, thinks: bool = False, imports: str = "") -> str:
    """Return the source: a signature, a docstring that names no model as its author, and a body."""
    called = wish.signature or ", ".join(("self", *wish.parameters))
    head = f"{'async ' if thinks else ''}def {wish.selector}({called}):"
    lines = [head, f'    """{NOTICE} {about}"""', *(f"    {line}" for line in body)]
    return f"{imports}\n\n\n" * bool(imports) + "\n".join(lines) + "\n"


def literal(text: str) -> list[str]:
    """Return a text as lines that stand in brackets: literals beside each other, none longer than a line."""
    clean = text.encode("utf-8", "replace").decode()
    return [repr(piece) for line in clean.splitlines(keepends=True) for piece in _cut(line)] or ["''"]


def _cut(line: str) -> list[str]:
    """Return a line in pieces that end at blanks where there are any."""
    pieces: list[str] = []
    while len(line) > _LINE:
        at = line.rfind(" ", 0, _LINE) + 1 or _LINE
        pieces.append(line[:at])
        line = line[at:]
    return [*pieces, line]
