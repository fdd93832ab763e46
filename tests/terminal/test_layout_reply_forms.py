"""A table of things that are alike, and a card of one."""

from __future__ import annotations

from typing import Any

from batos.terminal.layout import card, listing

LINES: Any = [{"name": "notes", "uses": 2}, {"name": "inbox", "uses": 0}]


def test_a_column_is_a_key_or_made() -> None:
    """The head names it, and a value that is no text is written as one."""
    text = listing(LINES, {"grant": "name", "used": "uses", "often": lambda each: "yes" if each["uses"] > 1 else ""})
    assert text == "grant  used  often\nnotes  2     yes\ninbox  0"
    assert listing([], {"grant": "name"}, "Nothing is granted.") == "Nothing is granted."


def test_a_card_keeps_the_lines_of_a_value_together() -> None:
    """Labels stand in a column of their own, whatever is said beside them."""
    assert card([("dream", "m-1"), ("answer", "yes\nand no")]) == "dream    m-1\nanswer   yes\n         and no"
    assert card([]) == ""
