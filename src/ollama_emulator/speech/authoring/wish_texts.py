"""Descriptions of wanted methods, the methods written for them, and the source text that both share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ollama_emulator.speech.language import NOTICE

_LINE: Final = 88  # longest literal, in characters
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class MethodWish:
    """The description of a method that a prompt asks for.

    `parameters` are names only, `signature` is the text between the brackets. `slots` are the receiver's slots with the
    kinds of their values. `declared` is the method's kind if the prompt gives one, and `told` the part of the intent
    that fits into the source.
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
        """Return `facet`, `protocol` or `method` by the end of the selector, or the kind that was declared."""
        if self.declared:
            return self.declared
        for kind in ("facet", "protocol"):
            if self.selector.endswith(f"_{kind}_"):
                return kind
        return "method"

    @property
    def speaks(self) -> bool:
        """Return whether the method speaks for a persona, and so always asks the model."""
        return self.kind in ("facet", "protocol")

    @property
    def words(self) -> frozenset[str]:
        """Return the words of the selector and the intent, in small letters."""
        return frozenset(_WORD.findall(f"{self.selector} {self.intent}".replace("_", " ").lower()))

    def slot(self, *kinds: str) -> str:
        """Return the name of the first slot whose kind begins with one of these words, or ""."""
        return next((name for name, kind in self.slots if kind.startswith(kinds)), "")


@dataclass(frozen=True, slots=True)
class MethodCheck:
    """A call that checks a method: its arguments, the model's replies, the slots before and after, and the result."""

    arguments: tuple[Any, ...] = ()
    infer: tuple[str, ...] = ()
    result: Any = None
    slots: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WrittenMethod:
    """The source of a method, with its checks."""

    source: str
    checks: tuple[MethodCheck, ...]


def method(wish: MethodWish, body: Sequence[str], about: str, *, thinks: bool = False, imports: str = "") -> str:
    """Return the source of a method: its signature, a docstring saying that no model wrote it, and its body."""
    called = wish.signature or ", ".join(("self", *wish.parameters))
    head = f"{'async ' if thinks else ''}def {wish.selector}({called}):"
    lines = [head, f'    """{NOTICE} {about}"""', *(f"    {line}" for line in body)]
    return f"{imports}\n\n\n" * bool(imports) + "\n".join(lines) + "\n"


def literal(text: str) -> list[str]:
    """Return a text as Python string literals, one for each line of source, to be put between brackets."""
    clean = text.encode("utf-8", "replace").decode()
    return [repr(piece) for line in clean.splitlines(keepends=True) for piece in _cut(line)] or ["''"]


def _cut(line: str) -> list[str]:
    """Split a line into pieces of at most `_LINE` characters, after blanks if possible."""
    pieces: list[str] = []
    while len(line) > _LINE:
        at = line.rfind(" ", 0, _LINE) + 1 or _LINE
        pieces.append(line[:at])
        line = line[at:]
    return [*pieces, line]
