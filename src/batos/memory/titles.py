"""Gives documents their titles."""

from __future__ import annotations

import re
from pathlib import PurePath

from batos.memory.reading.read_text import one_line

_HEADING = re.compile(r"\A\s*#[^\S\n]+([^\n]+)")


def title_of(name: str, text: str) -> str:
    r"""Return a document's title: its first line where that is a heading, else its file's name without the ending.

    A title is short, since it is searched with each part of its document.

    >>> title_of("lamp.md", "# The lamp\n\nIt burns.")
    'The lamp'
    >>> title_of("notes/lamp.txt", "It burns.")
    'lamp'
    """
    heading = _HEADING.match(text)
    return (one_line(heading[1]) if heading else "") or PurePath(name).stem or name
