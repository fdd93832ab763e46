"""Edits: what a person can give another text."""

from __future__ import annotations

import hashlib

import pytest

from batos.memory.document_store import check_editable
from batos.protocol.errors import BriefError


@pytest.mark.parametrize(
    ("kind", "standing", "text", "why"),
    [
        ("fact", "current", "Other.", "a fact"),
        ("document", "retracted", "Other.", "history"),
        ("document", "edited", " ", "history"),
        ("document", "current", " ", "without a word"),
        ("turn", "summarised", "Oil.", "as it was"),
    ],
)
def test_facts_history_and_the_same_text_are_not_edited(kind: str, standing: str, text: str, why: str) -> None:
    """Nor does an edit leave a memory without a word. What a summary stands for is edited like any other."""
    before = {"kind": kind, "standing": standing, "title": "Oil", "sha256": hashlib.sha256(b"Oil.").hexdigest()}
    with pytest.raises(BriefError, match=why):
        check_editable(before, text)
    check_editable({**before, "kind": "turn", "standing": "summarised"}, "Gas.")


def test_a_summary_is_not_edited() -> None:
    """The remedy brings back the memories that the summary stands for; one that was edited once stands for none."""
    before = {"kind": "summary", "standing": "current", "title": "Oil", "name": "d-1", "sha256": ""}
    for slots, remedy in (({"of": ("d-0",)}, "`batos curate --undo d-1`"), ({}, "`batos memories delete d-1`")):
        with pytest.raises(BriefError, match="is a summary") as refused:
            check_editable({**before, **slots}, "Gas.")
        assert remedy in refused.value.remedy
