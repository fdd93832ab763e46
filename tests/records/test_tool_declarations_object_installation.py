"""A whole object: all its methods are installed in one commit, or nothing is, whoever installs it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import transaction
from tests.image.installing import AT, candidate, provenance
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.image import roots
from batos.image.classes import class_factory
from batos.image.roots import root_of
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import Refused
from batos.records import approvals, methods, tool_declarations, tools
from batos.records.approval_subjects import Candidate

NAME = "agent"
API = "add_(a, b) adds.\nhalve_(a) halves."
WISHES = {
    "add_": Intent("adds", "add_(self, a, b)", may_learn=True, kind="tool"),
    "halve_": Intent("halves", "halve_(self, a)", may_learn=True, kind="tool"),
}
SOURCES = {selector: f"def {wish.signature}:\n    return a\n" for selector, wish in WISHES.items()}


@pytest.fixture
def root() -> Iterator[Any]:
    """A root in which the agent is declared and absent."""
    database = DB(MappingStorage(), class_factory=class_factory)
    connection = database.open(transaction.TransactionManager())
    found = root_of(connection)
    roots.prepare(found)
    traits = found["traits_obj"] = UvmObject()
    found["pLLM_obj"], found[roots.TOOLS] = UvmObject(parents=(traits,)), UvmObject(parents=(traits,))
    tools.declare(found, {NAME: API}, lambda holder, slot, intent: 0)
    connection.transaction_manager.commit()
    yield found
    connection.transaction_manager.abort()
    connection.close()
    database.close()


def part(selector: str, **also: Any) -> Candidate:
    """One method of the agent."""
    wish = WISHES[selector]
    return candidate(NAME, selector, wish, SOURCES[selector], wish=wish.as_dict(), **also)


def whole(root: Any, *parts: Candidate, **also: Any) -> Candidate:
    """All of them, under the intent that is declared."""
    intent = own_slots(root[roots.TOOLS])[NAME]
    source = "\n".join(each.source for each in parts)
    return candidate(roots.TOOLS, NAME, intent, source, methods=parts, **also)


def both(root: Any) -> Candidate:
    """A candidate that is accepted."""
    return whole(root, part("add_"), part("halve_"))


def untouched(root: Any) -> bool:
    """Whether nothing was made."""
    return tools.absent(root, NAME) is not None and not root[roots.METHODS]


def test_the_object_takes_its_declarations_place(root: Any) -> None:
    """It has every method as its first revision, and each can be looked up as that of any object."""
    made = tool_declarations.install_object(root, both(root), AT)
    obj = tools.find_tool(root, NAME)
    assert obj is not None
    assert [(each.selector, each.revision) for each in made] == [("add_", 1), ("halve_", 1)]
    assert {name: value for name, value in own_slots(obj).items() if isinstance(value, Method)} == {
        "add_": made[0],
        "halve_": made[1],
    }
    lineage = methods.lineage_of(root, methods.find_holder(root, NAME), "halve_")
    assert lineage is not None
    assert lineage.intent is not None
    assert (lineage.kind, lineage.intent.text) == ("tool", "halves")


def test_one_method_that_may_be_none_leaves_nothing(root: Any) -> None:
    """Whichever of them it is, and whatever is wrong with it."""
    wrong: list[dict[str, Any]] = [
        {"verdict": {"accepted": True, "digest": "0" * 64}},
        {"verdict": {}},
        {"provenance": {}},
        {"provenance": provenance(trust="external")},
        {"intent": "0" * 64},
    ]
    for fields in wrong:
        for selector in WISHES:
            parts = [part(each, **(fields if each == selector else {})) for each in WISHES]
            with pytest.raises(Refused):
                tool_declarations.install_object(root, whole(root, *parts), AT)
            assert untouched(root)
    with pytest.raises(Refused, match="has no methods"):
        tool_declarations.install_object(root, whole(root), AT)
    assert untouched(root)


def test_what_is_declared_otherwise_is_not_made(root: Any) -> None:
    """Nor what exists already: it is made once."""
    made = both(root)
    with pytest.raises(Refused, match="declared otherwise"):
        tool_declarations.install_object(root, replace(made, intent="0" * 64), AT)
    assert untouched(root)
    tool_declarations.install_object(root, made, AT)
    with pytest.raises(Refused, match="exists already"):
        tool_declarations.install_object(root, made, AT)


def test_one_yes_is_for_all(root: Any) -> None:
    """A person is asked once; who approved it stands in the provenance of each method."""
    made = both(root)
    external = tuple(replace(each, provenance=provenance(trust="external")) for each in made.methods)
    asked = approvals.ask(root, approvals.ApprovalQuestion("a-1", replace(made, methods=external), AT, "2027", "m-1"))
    assert (asked.word, asked.object, asked.selector) == ("asked", roots.TOOLS, NAME)
    assert untouched(root)
    answer = approvals.approve(root, "a-1", "ada", AT)
    assert answer is not None
    assert (answer.word, answer.revision) == ("approved", 1)
    obj = tools.find_tool(root, NAME)
    assert obj is not None
    assert [getattr(obj, each).provenance["approved_by"] for each in WISHES] == ["ada", "ada"]


def test_a_yes_that_comes_too_late_makes_nothing(root: Any) -> None:
    """The API is another by now: what was asked about is outdated."""
    approvals.ask(root, approvals.ApprovalQuestion("a-1", both(root), AT, "2027"))
    tools.declare(root, {NAME: f"{API}\nBoth are quick."}, lambda holder, slot, intent: 0)
    answer = approvals.approve(root, "a-1", "ada", AT)
    assert answer is not None
    assert answer.word == "outdated"
    assert untouched(root)
