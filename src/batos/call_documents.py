"""The documents of single calls of a mission: the evidence that one was shown, a slot that was read, a rule."""

from __future__ import annotations

from typing import TypedDict


class FocusSpan(TypedDict):
    """A span of a document that a call was shown, its place in characters."""

    document: int
    start: int
    length: int


class FocusDocument(TypedDict):
    """The spans that a call in lean form was shown of the evidence; `omitted` counts the other sentences."""

    path: str
    shown: list[FocusSpan]
    omitted: int


class RuleDocument(TypedDict):
    """A decision that a rule made in place of a model: `division`, `choice`, `weave`, `answer`, `reply`, `result`."""

    path: str
    decision: str
    why: str


class SlotDocument(TypedDict):
    """A slot of a shared object that a method read."""

    oid: str
    slot: str
