"""Shows a text with what does not hold in it: each marked statement on a line of its own, behind its mark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from batos.memory.records.memory_claims import ASKED, ClaimMark

#: The ways to show a text: with marks, with the questions in it too, or without all that is marked.
View: TypeAlias = Literal["marked", "history", "strict"]


def marked_text(text: str, marks: Sequence[ClaimMark], view: View = "marked") -> str:
    """Return a text with its marks; a text without any as it is. Questions are left out but for who wants history.

    >>> print(marked_text("Maro is here. Anna is.", [ClaimMark(0, 13, "superseded", "", "d-2", "2026-11-02")]))
    [superseded since 2026-11-02] Maro is here.
    Anna is.
    """
    return "\n".join(_lines(text, marks, view)) if marks else text


def mark_text(mark: ClaimMark) -> str:
    """Return a mark as it stands before a statement.

    >>> mark_text(ClaimMark(0, 9, "out of scope", "only supposed"))
    '[out of scope: only supposed]'
    """
    since = f" since {mark.since[:10]}" if mark.since and mark.standing == "superseded" else ""
    return f"[{mark.standing}{since}{f': {mark.reason}' if mark.reason else ''}]"


def marked_spans(text: str, marks: Sequence[ClaimMark]) -> Iterator[tuple[int, str, str]]:
    """Yield the spans of a text in order, without questions: where each begins, its words, and its mark or "".

    >>> list(marked_spans("Maro is here. Anna is.", [ClaimMark(0, 13, "superseded")]))
    [(0, 'Maro is here.', '[superseded]'), (14, 'Anna is.', '')]
    """
    if not marks:
        yield 0, text, ""
        return
    at = 0
    for mark in (*sorted(marks), ClaimMark(len(text), len(text), ASKED)):
        for start, end, told in ((at, mark.start, ""), (max(at, mark.start), mark.end, mark_text(mark))):
            said = text[start:end]
            if said.strip() and not (told and mark.standing == ASKED):
                yield start + len(said) - len(said.lstrip()), said.strip(), told
        at = max(at, mark.end)


def _lines(text: str, marks: Sequence[ClaimMark], view: View) -> Iterator[str]:
    at = 0
    for mark in sorted(marks):
        if mark.start > at:
            yield from _plain(text[at : mark.start])
        said = " ".join(text[max(at, mark.start) : mark.end].split())
        if said and (view == "history" or (view == "marked" and mark.standing != ASKED)):
            yield f"{mark_text(mark)} {said}"
        at = max(at, mark.end)
    yield from _plain(text[at:])


def _plain(text: str) -> Iterator[str]:
    if said := text.strip():
        yield said
