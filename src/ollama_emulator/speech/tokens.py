"""Answers in the pieces that they are streamed in: up to eight letters with a blank before them, or one other sign."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[ \t]?[^\W_]{1,8}|[ \t]?[^\w\s]|\s|_")


def pieces(text: str) -> list[str]:
    """Return the text cut into pieces; joined they are the text."""
    return _PIECE.findall(text)
