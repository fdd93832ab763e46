"""Shows a chunk with what does not hold in it: each marked statement on a line of its own, its mark before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from batos.image.memory_claims import ClaimMark

#: The standing of a question, which claims nothing and is left out.
ASKED: Final = "asked"


def marked_lines(text: str, marks: Sequence[ClaimMark], strict: bool = False) -> list[str]:
    """Return a text as lines: what holds as it is, what does not behind `[superseded]`, `[out of scope]` or the like.

    Questions are left out; `strict`: all that is marked.

    >>> marked_lines("It is in Bremen. It is in Ulm.", [ClaimMark(0, 16, "superseded", "", "d-2")])
    ['[superseded] It is in Bremen.', 'It is in Ulm.']
    """
    return list(_lines(text, marks, strict))


def _lines(text: str, marks: Sequence[ClaimMark], strict: bool) -> Iterator[str]:
    at = 0
    for mark in sorted(marks):
        if mark.start > at:
            yield from _plain(text[at : mark.start])
        said = " ".join(text[max(at, mark.start) : mark.end].split())
        if said and mark.standing != ASKED and not strict:
            yield f"[{mark.standing}] {said}"
        at = max(at, mark.end)
    yield from _plain(text[at:])


def _plain(text: str) -> Iterator[str]:
    if said := text.strip():
        yield said
