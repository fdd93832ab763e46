"""The verbs about methods through a door: a model writes them, a person looks at them and has the last word."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.methods.lifecycle.brick import seeded

from batos.image.roots import named_objects
from batos.protocol.errors import ApprovalNeeded, CovenantViolation, GenerationFailed, NotFound, ProtocolError, Refused
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, author, scripted_uvm

BRICK = "brick_prototype_obj"
NAME = f"{BRICK}.tamland_facet_"
#: A facet that says what it was asked, and checks that tell it from one that does nothing.
ECHO = "async def SELECTOR(self, query):\n    return 'There is ' + query\n"
CHECKS: list[dict[str, Any]] = [
    {"arguments": ["a nail"], "result": "There is a nail"},
    {"arguments": ["a plank"], "result": "There is a plank"},
]
OWN = "async def tamland_facet_(self, query):\n    return 'Here is ' + query\n"
OWN_CHECKS = [{**each, "result": each["result"].replace("There", "Here")} for each in CHECKS]


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Dispatcher]:
    """A door over a mind whose coder writes the same method for whatever it is asked."""
    bridge = ScriptedBridge(author(ECHO, CHECKS))
    async with scripted_uvm(folder, bridge, **{"install": "now", "method_control": 0, **settings}) as uvm:
        yield Dispatcher(uvm, Uploads(folder / "uploads", 2**20))


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Dispatcher]:
    """One that installs by itself."""
    async with opened(tmp_path) as found:
        yield found


async def ask(door: Dispatcher, verb: str, **args: Any) -> dict[str, Any]:
    """One request."""
    return await door.handle(verb, args, lambda event, keys: None, lambda keys: None)


async def said(door: Dispatcher) -> tuple[str, str]:
    """What the facet answers a message now, and how it was run."""
    found = await ask(door, "send", receiver=BRICK, selector="tamland_facet_", arguments=["a nail"], follow=True)
    (ran,) = [each for each in found["provenance"]["methods"] if each["selector"] == "tamland_facet_"]
    return str(found["answer"]), str(ran["revision"])


async def test_nothing_was_learnt_yet(door: Dispatcher) -> None:
    """The lists are empty; of one intent it is said what would make it a method."""
    assert await ask(door, "method_list") == {"methods": [], "waiting": 0}
    assert await ask(door, "tools") == {"tools": [], "written": []}
    with pytest.raises(NotFound, match="nothing was ever made") as raised:
        await ask(door, "method_show", method=NAME)
    assert "redefine" in raised.value.remedy


async def test_from_a_wish_to_the_next_mission_and_back(door: Dispatcher) -> None:
    """A redefinition acts from the next mission on, a rollback too; nothing is restarted and nothing lost."""
    made = await ask(door, "method_redefine", method=NAME, wish="Say that it is there.", user="ada")
    assert (made["active"], made["intent"], made["provenance"]["by"]) == (1, "Say that it is there.", "ada")
    assert made["verdict"]["accepted"]
    assert len(made["checks"]) == 2
    assert await said(door) == ("There is a nail", "1")

    own = await ask(door, "method_redefine", method=NAME, source=OWN, checks=OWN_CHECKS)
    assert (own["active"], own["source"], own["provenance"]["trust"]) == (2, OWN, "user")
    assert await said(door) == ("Here is a nail", "2")

    back = await ask(door, "method_rollback", method=NAME, user="ada")
    assert (back["active"], back["revisions"]) == (1, 2)
    assert await said(door) == ("There is a nail", "1")

    history = await ask(door, "method_history", method=NAME)
    assert [(each["event"], each["by"]) for each in history["changes"]][::2] == [
        ("installed", "ada"),
        ("restored", "ada"),
    ]
    assert [each["calls"] for each in history["revisions"]] == [2, 1]
    (line,) = (await ask(door, "method_list", object=BRICK))["methods"]
    assert (line["method"], line["state"], line["chosen"]) == (NAME, "active", 2)
    assert await ask(door, "method_list", object="robin_prototype_obj") == {"methods": [], "waiting": 0}
    assert (await ask(door, "method_show", method=NAME, revision=2))["source"] == OWN


async def test_who_looks_already_sees_what_was_there(door: Dispatcher) -> None:
    """Old receivers see the new one from the next view of the image on: a clone of a persona too, and nobody before."""
    await ask(door, "method_redefine", method=NAME, wish="Say that it is there.")

    with door.uvm.image.snapshot() as before:
        await door.uvm.lifecycle.install(seeded(door.uvm, BRICK, "tamland_facet_", OWN))
        assert named_objects(before)[BRICK].tamland_facet_.revision == 1
        clone = named_objects(before)[BRICK].clone()
        assert clone.tamland_facet_.revision == 1
    with door.uvm.image.snapshot() as after:
        assert named_objects(after)[BRICK].clone().tamland_facet_.revision == 2
    assert await said(door) == ("Here is a nail", "2")


async def test_the_intent_put_back_is_interpreted(door: Dispatcher) -> None:
    """It is not made a method again until somebody redefines it."""
    await ask(door, "method_redefine", method=NAME, wish="Say that it is there.")
    shown = await ask(door, "method_rollback", method=NAME, revision=0)
    assert (shown["state"], shown["active"], shown["revision"]) == ("intent", 0, 1)
    assert "put the intent back" in shown["barred"]
    found = await ask(door, "send", receiver=BRICK, selector="tamland_facet_", arguments=["a nail"], follow=True)
    (ran,) = found["provenance"]["methods"]
    assert "intent" in ran["as"]
    assert (await ask(door, "method_list"))["methods"][0]["active"] == 0
    assert (await ask(door, "method_redefine", method=NAME, wish="Say it."))["active"] == 2


@pytest.mark.parametrize(
    ("args", "error", "why"),
    [
        ({}, ProtocolError, "both left out"),
        ({"wish": "x", "checks": CHECKS}, ProtocolError, "go with a source"),
        ({"source": "import os\n", "checks": CHECKS}, CovenantViolation, "refuses"),
        ({"source": OWN, "checks": CHECKS}, GenerationFailed, "does not pass"),
        ({"method": f"{BRICK}.prompts", "wish": "x"}, NotFound, "no declared intent"),
        ({"method": f"{BRICK}.tamlnd_facet_", "wish": "x"}, NotFound, "did you mean tamland_facet_"),
        ({"method": "tamland_facet_", "wish": "x"}, NotFound, "names no method"),
    ],
)
async def test_what_cannot_be_redefined(
    door: Dispatcher, args: dict[str, Any], error: type[Exception], why: str
) -> None:
    """Nothing is changed, and what is wrong is said."""
    with pytest.raises(error, match=why):
        await ask(door, "method_redefine", **{"method": NAME, **args})
    assert await ask(door, "method_list") == {"methods": [], "waiting": 0}


async def test_under_ask_a_wish_waits_for_a_person(tmp_path: Path) -> None:
    """What a model wrote is asked about, also when a person wished for it; what the person wrote is not."""
    async with opened(tmp_path, install="ask") as door:
        with pytest.raises(ApprovalNeeded) as needed:
            await ask(door, "method_redefine", method=NAME, wish="Say that it is there.")
        assert await ask(door, "method_list") == {"methods": [], "waiting": 0}
        approved = await ask(door, "approve", approvals=[needed.value.approval])
        assert approved["approved"][0]["revision"] == 1
        assert (await ask(door, "method_redefine", method=NAME, source=OWN, checks=OWN_CHECKS))["active"] == 2


async def test_under_never_no_model_writes_any(tmp_path: Path) -> None:
    """A person's own source is installed all the same."""
    async with opened(tmp_path, install="never") as door:
        with pytest.raises(Refused, match="`install` is never"):
            await ask(door, "method_redefine", method=NAME, wish="Say that it is there.")
        assert (await ask(door, "method_redefine", method=NAME, source=OWN, checks=OWN_CHECKS))["active"] == 1
