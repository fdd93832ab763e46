"""The texts on folded memories: numbers, the first regions, and no orders for a terminal."""

from __future__ import annotations

from typing import Any

from batos.verbs.correction_verbs import curated_text, unfolded_text

REGION: Any = {
    "summary": "d-9",
    "title": "la\x1b[31mmp",
    "text": "It \x1b[2J burns. " * 60,
    "reason": "cold",
    "written_by": "rule",
    "documents": [{"title": "o\x07il", "chunks": 2}] * 2,
    "chunks": 4,
    "left": 1,
}


def test_regions_are_told_with_their_numbers() -> None:
    """Of many the first are shown; what is left to do is said."""
    told = curated_text({"regions": [REGION] * 12, "dry_run": False, "more": True})
    assert "24 documents folded: 48 parts become 12. There are more regions" in told
    assert "2 more regions; --json lists all" in told
    assert told.count("(d-9)") == 10
    looked = curated_text({"regions": [REGION | {"summary": ""}], "dry_run": True, "more": False})
    assert "2 documents would be folded: 4 parts become 1." in looked
    assert curated_text({"regions": [], "dry_run": False, "more": False}).startswith("Nothing to fold")


def test_no_text_orders_a_terminal() -> None:
    """Titles and summaries are shown without control characters."""
    shown = [
        curated_text({"regions": [REGION], "dry_run": False, "more": False}),
        unfolded_text({"summary": "d-9", "documents": REGION["documents"]}),
    ]
    assert not any(each in text for text in shown for each in "\x1b\x07")
    assert "Back: " in shown[1]
