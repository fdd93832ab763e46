"""Titles of documents: the first heading, else the name of the file."""

from __future__ import annotations

from batos.memory.reading.read_text import TITLE
from batos.server.dispatch.sent_files import title_of


def test_a_title_is_the_first_heading_or_the_name() -> None:
    """A heading that is not the first line is none, and a name that is all ending stays."""
    assert title_of("a/lamp.md", "\n# The lamp\nIt burns.") == "The lamp"
    assert title_of("a/lamp.md", "It burns.\n# The lamp") == "lamp"
    assert title_of("a/lamp.md", "# \x07\nIt burns.") == "lamp"
    assert title_of(".env", "x") == ".env"


def test_a_title_is_short() -> None:
    """A heading of a megabyte would be searched with each part of its document, and cost hours."""
    assert len(title_of("lamp.md", "# " + "(" * 10**6 + "\n\nIt burns.")) == TITLE
