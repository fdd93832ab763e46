"""Approvals as doors show them: what waits first, one whole, and which a pattern means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.questions import AFTER, AT, LATER, UNTIL, asking
from tests.records.test_approvals import candidate, opened
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.approvals import documents
from batos.image import roots
from batos.image.classes import class_factory
from batos.image.roots import root_of
from batos.objects.method import Intent
from batos.objects.prototype import reference
from batos.protocol.errors import BriefError, NotFound
from batos.protocol.method_documents import ApprovalList
from batos.records import approvals


@pytest.fixture
def root() -> Iterator[Any]:
    """A root in which three sources for `say_` were asked about and one for `ask_`: one is approved, one rejected."""
    database = DB(MappingStorage(), class_factory=class_factory)
    connection = opened(database)
    found = root_of(connection)
    for number in range(3):
        approvals.ask(found, asking(candidate(f"def say_(self):\n    return {number}\n"), f"m-{number}", f"a-{number}"))
    approvals.ask(found, asking(candidate("def ask_(self):\n    return 'why'\n", "ask_"), None, "a-3"))
    approvals.approve(found, "a-1", "ada", LATER)
    approvals.reject(found, "a-2", "ada", "too loud", (LATER, UNTIL))
    yield found
    connection.transaction_manager.abort()
    connection.close()
    database.close()


def names(found: ApprovalList) -> list[str]:
    """The ids of a list, in its order."""
    return [each["id"] for each in found["approvals"]]


def test_what_waits_comes_first(root: Any) -> None:
    """The oldest of it, then what was answered, the newest first; no more than were asked for."""
    found = documents.list_approvals(root, LATER, 9)
    assert (names(found), found["waiting"]) == (["a-0", "a-3", "a-2", "a-1"], 2)
    assert names(documents.list_approvals(root, LATER, 3)) == ["a-0", "a-3", "a-2"]


@pytest.mark.parametrize(
    ("at", "status", "meant"),
    [
        (LATER, "asked", ["a-0", "a-3"]),
        (LATER, "approved", ["a-1"]),
        (LATER, "rejected", ["a-2"]),
        (LATER, "expired", []),
        (AFTER, "asked", []),
        (AFTER, "expired", ["a-0", "a-3"]),
    ],
)
def test_only_those_of_a_status(root: Any, at: str, status: str, meant: list[str]) -> None:
    """As it is at that moment: what is over is shown so before anybody wrote it down, and waits no more."""
    found = documents.list_approvals(root, at, 9, status)
    assert names(found) == meant
    assert found["waiting"] == (2 if at == LATER else 0)


def test_a_line_has_what_is_known(root: Any) -> None:
    """Who answered what, when and with which revision; nothing of that while it is asked."""
    approved = documents.line(root[roots.APPROVALS]["a-1"], LATER)
    assert (approved["by"], approved["answered_at"], approved["revision"]) == ("ada", LATER, 1)
    assert documents.line(root[roots.APPROVALS]["a-2"], LATER)["why"] == "too loud"
    assert not {"by", "why", "answered_at", "revision"} & documents.line(root[roots.APPROVALS]["a-0"], AT).keys()


def test_which_is_meant(root: Any) -> None:
    """Ids, beginnings that are one's alone, and those counted back from the newest, answered or not."""
    assert documents.resolve_ids(root, ["a-1", "last", "LAST-3", "a-9"], None) == ["a-1", "a-3", "a-0", "a-9"]
    root[roots.APPROVALS]["a-4Z"] = root[roots.APPROVALS]["a-0"]
    assert documents.resolve_ids(root, ["a-4"], None) == ["a-4Z"]
    root[roots.APPROVALS]["a-4Y"] = root[roots.APPROVALS]["a-1"]
    with pytest.raises(BriefError, match="the beginning of 2 approvals: a-4Z, a-4Y"):
        documents.resolve_ids(root, ["a-4"], None)
    with pytest.raises(NotFound, match="no approval 'last-6'"):
        documents.resolve_ids(root, ["last-6"], None)
    with pytest.raises(NotFound, match="no approval 'last'"):
        documents.resolve_ids(root, ["last"], "nobody of whom a mission waits")


def test_one_whole_has_its_intent_while_that_stands(root: Any) -> None:
    """What was wished for is told as it was declared; where it is declared otherwise by now, it is not made up."""
    for name, text in (("a-0", "say hello"), ("a-3", "ask why")):
        intent = documents.whole(root, name, LATER)["intent"]
        assert intent is not None
        assert intent["text"] == text
    root["traits_obj"].ask_ = Intent("ask how")
    assert documents.whole(root, "a-3", LATER)["intent"] is None
    root[roots.APPROVALS]["a-3"].candidate["holder"] = "oid:0xffff"
    assert documents.whole(root, "a-3", LATER)["intent"] is None
    with pytest.raises(NotFound, match="a-none"):
        documents.whole(root, "a-none", LATER)


def test_a_change_is_told_by_line(root: Any) -> None:
    """Against the source that was active when it was asked."""
    former = {"revision": 1, "source": "def say_(self):\n    return 1\n"}
    changed = replace(candidate("def say_(self):\n    return 4\n"), former=former)
    approvals.ask(root, asking(changed, None, "a-4", LATER))
    told = documents.whole(root, "a-4", LATER)
    assert told["former"] == 1
    assert told["diff"] is not None
    assert told["diff"][:2] == ["--- revision 1", "+++ asked"]
    assert told["diff"][3:] == [" def say_(self):", "-    return 1", "+    return 4", " "]
    assert documents.whole(root, "a-0", LATER)["diff"] is None


@pytest.mark.parametrize(
    "pattern", ["traits_obj.say_", "TRAITS.say_", "traits*.*", "*.s?y_", "*", "*.[s]ay_", "number.say_"]
)
def test_a_pattern_means_what_waits(root: Any, pattern: str) -> None:
    """By any of the names of the object, in any case; what was answered is meant by none."""
    pattern = pattern.replace("number", reference(root["traits_obj"]))
    found = documents.find_matching(root, pattern, LATER)
    assert found == (["a-0", "a-3"] if pattern in ("*", "traits*.*") else ["a-0"])
    assert documents.find_matching(root, pattern, AFTER) == []


@given(pattern=st.text(st.characters(codec="utf-8"), max_size=20))
def test_any_text_is_a_pattern(pattern: str) -> None:
    """Whatever somebody types means some of what waits, or nothing, and never raises."""
    database = DB(MappingStorage(), class_factory=class_factory)
    connection = opened(database)
    approvals.ask(root_of(connection), asking(candidate(), None, "a-0"))
    assert set(documents.find_matching(root_of(connection), pattern, AT)) <= {"a-0"}
    connection.transaction_manager.abort()
    connection.close()
    database.close()
