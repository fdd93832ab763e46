"""Cut answers into the pieces that are streamed: up to eight letters with a blank before them, or one other sign."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[ \t]?[^\W_]{1,8}|[ \t]?[^\w\s]|\s|_")


def pieces(text: str) -> list[str]:
    """Cut a text into pieces, which joined are the text again."""
    return _PIECE.findall(text)
