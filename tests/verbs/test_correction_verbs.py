"""Texts on corrections: a line for each memory, counts of the rest, and nothing that a terminal would obey."""

from __future__ import annotations

from typing import Any

from batos.protocol.memory_documents import RetractedPage
from batos.verbs.correction_verbs import edited_text, pinned_text, restored_text, retracted_text

LINE: Any = {"title": "lamp\x1b[2J", "document": "d-1"}


def test_an_edit_names_both_texts() -> None:
    """The new one, and the older one that is history."""
    assert edited_text({"edited": LINE, "before": "d-0"}).endswith("(d-1). The older text is history: d-0.")


def test_a_retraction_tells_all_that_went() -> None:
    """Memories and methods by name, answers and pins by number; or that there was nothing."""
    empty: RetractedPage = {"retracted": [], "pins": 0, "answers": 0, "methods": [], "tools": []}
    assert retracted_text(empty) == "Nothing was to be retracted."
    told = retracted_text({"retracted": [LINE], "pins": 1, "answers": 2, "methods": ["brick.say_"], "tools": ["dig_"]})
    assert told.splitlines()[1:] == [
        "Out of use: brick.say_.",
        "Out of use: tools.dig_.",
        "Also out of recall: 2 answers, 1 pin.",
    ]
    assert "\x1b" not in told


def test_what_comes_back_is_named() -> None:
    """Memories, methods and tools."""
    told = restored_text({"restored": [LINE], "methods": ["brick.say_"], "tools": []})
    assert told.startswith("Recalled again: lamp")
    assert told.endswith("In use again: brick.say_.")


def test_pins_are_set_or_taken_away() -> None:
    """A line for each memory."""
    assert pinned_text({"memories": [LINE], "pinned": True}).startswith("Pinned: lamp")
    assert pinned_text({"memories": [LINE], "pinned": False}).startswith("No longer pinned: lamp")
