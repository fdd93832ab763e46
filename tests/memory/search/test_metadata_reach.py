"""A reach holds what has all that it names."""

from __future__ import annotations

import pytest

from batos.memory.records.memory_records import ChunkRange, MemoryKind
from batos.memory.search.metadata import MemoryReach

SAID = ChunkRange(
    4, "d-1", "ann", "work", "mission", "current", "model", "2026-11-24T10:00:00Z", "/a.md", "m-1", "babs", "c-1"
)


@pytest.mark.parametrize(
    ("reach", "is_within"),
    [
        (MemoryReach("ann"), True),
        (MemoryReach("bob"), False),
        (MemoryReach(None, scopes=frozenset({"default"})), False),
        (MemoryReach(None, kinds=frozenset({"mission", "turn"})), True),
        (MemoryReach(None, kinds=frozenset({"document"})), False),
        (MemoryReach(None, standings=frozenset({"superseded"})), False),
        (MemoryReach(None, standings=None), True),
        (MemoryReach(None, sources=frozenset({"/a.md"}), missions=frozenset({"m-1"})), True),
        (MemoryReach(None, personas=frozenset({"robin"})), False),
        (MemoryReach(None, since="2026-11-24", until="2026-11-25"), True),
        (MemoryReach(None, until="2026-11-24"), False),
        (MemoryReach(None, since="2026-11-24T10:00:01Z"), False),
    ],
)
def test_a_reach_holds_what_has_all_that_it_names(reach: MemoryReach, is_within: bool) -> None:
    """Of a user, in scopes, of kinds and standings, from sources, missions and personas, and of a time."""
    assert reach.holds(SAID) is is_within


@pytest.mark.parametrize(
    ("source", "kind", "is_within"),
    [
        ("/box", "turn", True),
        ("/box#<1@x>", "turn", True),
        ("/box#<1@x>", "document", False),
        ("/box2#<1@x>", "turn", False),
    ],
)
def test_a_file_of_messages_stands_for_them(source: str, kind: MemoryKind, is_within: bool) -> None:
    """The mails of a mailbox are found by its path; a file whose name goes on alike is another one."""
    found = SAID._replace(source=source, kind=kind)
    assert MemoryReach("ann", sources=frozenset({"/box"})).holds(found) is is_within
