"""Where tools are kept: declared objects until they are made, and what becomes of them when the codex changes."""

from __future__ import annotations

from typing import Any

import pytest
from persistent.mapping import PersistentMapping

from batos.image import roots
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, parents_of
from batos.records import tools

API = "search_(query) answers what was found."


@pytest.fixture
def root() -> Root:
    """As much of a root as tools need."""
    traits = UvmObject()
    model = UvmObject(parents=(traits,))
    return {
        "traits_obj": traits,
        "pLLM_obj": model,
        roots.TOOLS: UvmObject(parents=(traits,)),
        roots.GENESIS: PersistentMapping[str, Any](),
    }


def never(holder: UvmObject, slot: str, intent: Intent | None) -> int:
    """Nobody is to be told anything."""
    raise AssertionError(slot)


class IntentListener:
    """Hears of intents that go, and answers that a method went with each."""

    def __init__(self) -> None:
        self.all: list[tuple[UvmObject, str, Intent | None]] = []

    def __call__(self, holder: UvmObject, slot: str, intent: Intent | None) -> int:
        """One is told."""
        self.all.append((holder, slot, intent))
        return 1


def made(root: Root, name: str = "agent") -> UvmObject:
    """An object in the place of its declaration, with one method."""
    return tools.make(root, name, API, {"search_": Intent("search", may_learn=True, kind="tool")})


def test_what_is_declared_is_absent_until_it_is_made(root: Root) -> None:
    """It is an intent that holds the API, then an object that thinks and recalls as every other."""
    assert tools.declare(root, {"agent": API}, never) == ["tools_obj.agent made"]
    intent = tools.absent(root, "agent")
    assert intent is not None
    assert (intent.kind, intent.text, intent.may_learn) == ("prototype", API, True)
    assert (tools.find_tool(root, "agent"), tools.names(root)) == (None, {"agent": None})
    obj = made(root)
    assert (tools.find_tool(root, "agent"), tools.absent(root, "agent")) == (obj, None)
    assert (obj.name, obj.api) == ("agent", API)
    assert parents_of(obj) == (root["pLLM_obj"], root["traits_obj"])
    assert tools.names(root) == {"agent": obj}
    assert roots.name_of_object(root, obj) == "agent"
    assert tools.declare(root, {"agent": API}, never) == []


def test_a_changed_api_is_declared_anew(root: Root) -> None:
    """The methods of the old object are retired; the name stands for what is wished for now."""
    tools.declare(root, {"agent": API}, never)
    obj, gone = made(root), IntentListener()
    obj.search_ = Method("search_", "...")
    changes = tools.declare(root, {"agent": API + " Quickly."}, gone)
    assert changes == ["tools_obj.agent changed"]
    assert gone.all == [(obj, "search_", None)]
    assert tools.find_tool(root, "agent") is None
    assert tools.declare(root, {}, never) == ["tools_obj.agent removed"]
    assert "agent" not in own_slots(root[roots.TOOLS])
    assert tools.declare(root, {}, never) == []


def test_only_what_is_declared_goes(root: Root) -> None:
    """Tools by selector and other slots stay, whatever the codex says of objects."""
    holder = root[roots.TOOLS]
    holder.double_ = Intent("double it", kind="tool")
    holder.count = 3
    holder.other = UvmObject({"name": "another"})
    tools.declare(root, {"agent": API}, never)
    made(root)
    told = IntentListener()
    assert tools.declare(root, {}, told) == ["tools_obj.agent removed"]
    assert [slot for _, slot, _ in told.all] == ["search_"]
    assert set(own_slots(holder)) == {"double_", "count", "other"}


def test_an_image_without_tools_has_none() -> None:
    """One that an earlier version made is looked at as it is."""
    assert (tools.absent({}, "agent"), tools.find_tool({}, "agent"), tools.names({})) == (None, None, {})
    assert roots.name_of_object({}, UvmObject({"name": "agent"})) == "oid:new"
