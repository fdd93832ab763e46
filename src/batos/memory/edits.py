"""Says which memories a person can give another text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from batos.memory.records.memory_folding import STANDS_FOR
from batos.memory.records.memory_standings import RECALLED
from batos.protocol.errors import BriefError


def check_editable(before: Mapping[str, Any], text: str) -> None:
    """Check that a memory can be given this text. Raises: BriefError: it cannot."""
    if before["kind"] == "summary":  # what a person wrote over it would quote memories that are forgotten later
        undo = f"`batos curate --undo {before['name']}` brings back what it stands for: edit the memory itself."
        remedy = undo if before.get(STANDS_FOR) else f"`batos memories delete {before['name']}`, then remember it."
        raise BriefError(f"{before['title']!r} is a summary: it is not edited", field="args.document", remedy=remedy)
    is_recalled = before["standing"] in RECALLED
    if before["kind"] == "fact" or not is_recalled or not text.strip():
        why = "a fact" if before["kind"] == "fact" else "left without a word" if is_recalled else "history"
        remedy = "Remember the fact again by its key; `batos memories restore` brings history back."
        raise BriefError(f"{before['title']!r} is {why}: it is not edited", field="args.document", remedy=remedy)
    if hashlib.sha256(text.encode()).hexdigest() == before["sha256"]:
        raise BriefError("the text is as it was", field="args.text", remedy="Give another text.")
