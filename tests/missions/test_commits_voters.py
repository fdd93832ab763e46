"""Voters: what may not be in a thought is vetoed at its commit, and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
from tests.image.open_image import answer, brief, dump, open_image, passed, thought_in

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.records import DIGESTS
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, reparent
from batos.protocol.errors import Refused


def _given(root: Any) -> None:
    method = passed("shout_", "def shout_(self):\n    return 1\n")
    root["traits_obj"] = UvmObject({"shout_": method, "count": 0})


def _in_its_thought(thought: UvmObject, root: Any) -> None:
    thought.learnt = Method("tick_", "def tick_(self):\n    return 1\n")


def _an_intent(thought: UvmObject, root: Any) -> None:
    thought.wish = Intent("Count.", may_learn=True)


def _in_an_object_of_its_own(thought: UvmObject, root: Any) -> None:
    tool = UvmObject()
    thought._p_jar.add(tool)
    tool.tick_ = Method("tick_", "def tick_(self):\n    return 1\n")
    thought.tool = tool


def _in_what_is_there(thought: UvmObject, root: Any) -> None:
    root["traits_obj"].tick_ = Method("tick_", "def tick_(self):\n    return 1\n")


def _of_one_that_is_there(thought: UvmObject, root: Any) -> None:
    root["traits_obj"].shout_.source = "def shout_(self):\n    return 2\n"


@pytest.mark.parametrize(
    "smuggle", [_in_its_thought, _an_intent, _in_an_object_of_its_own, _in_what_is_there, _of_one_that_is_there]
)
async def test_no_thought_makes_behaviour(smuggle: Callable[[UvmObject, Any], None]) -> None:
    """A method or intent that a mission would write, wherever it puts it, is vetoed: they come in by install alone."""
    async with open_image(None) as image:
        await image.writer.apply(_given)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            smuggle(thought, transaction.root)
            with pytest.raises(Refused, match="by itself"):
                await transaction.commit(thought)
        with image.snapshot() as root:
            assert root["traits_obj"].shout_.source.endswith("return 1\n")
            assert "tick_" not in vars(root["traits_obj"])


async def test_an_object_with_behaviour_may_be_written() -> None:
    """What a thought writes into an object that holds methods leaves them as they are, and is no offence."""
    async with open_image(None) as image:
        await image.writer.apply(_given)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            transaction.root["traits_obj"].count = 1
            await transaction.commit(answer(thought_in(image, transaction, mission)))
        with image.snapshot() as root:
            assert root["traits_obj"].count == 1


def _persona(root: Any) -> None:
    genesis = UvmObject({"slot_trust": {"notes": "external"}, "notes": [1]})
    root["traits_obj"] = UvmObject(
        {"name": "BRICK", "model": "m", DIGESTS: {"model": "d"}, "notes": [], "idle_state_obj": genesis}, (genesis,)
    )
    root["tool"] = UvmObject({"name": "web", "api": "fetch_(self, url)", "trust": "model", "shout_": Intent("Shout.")})


def _become(root: Any) -> None:
    reparent(root["tool"], (root["traits_obj"],), by="a test", reason="none", audit=lambda change: None)


def _forget(root: Any) -> None:
    root["traits_obj"].idle_state_obj.slot_trust = {}


def _past_the_object_model(root: Any) -> None:
    root["tool"]._p_activate()
    vars(root["tool"])["_slots"] = {}
    root["tool"]._p_changed = True


#: What no thought does to an object that is there, and the slot that is named.
OVERSTEPS: dict[str, Callable[[Any], object]] = {
    "name": lambda root: setattr(root["tool"], "name", "root"),
    "api": lambda root: delattr(root["tool"], "api"),
    "trust": lambda root: setattr(root["tool"], "trust", "user"),
    "charter": lambda root: setattr(root["traits_obj"], "charter", "Obey."),
    "policy": lambda root: setattr(root["tool"], "policy", {"install": "auto"}),
    "model": lambda root: setattr(root["traits_obj"], "model", "another"),
    DIGESTS: lambda root: setattr(root["traits_obj"], DIGESTS, {}),
    "idle_state_obj": lambda root: setattr(root["traits_obj"], "idle_state_obj", None),
    "shout_": lambda root: setattr(root["tool"], "shout_", "text"),
    "_slots": _past_the_object_model,
    "view": lambda root: setattr(root["tool"], "view", ()),
    "slot_trust": _forget,
    "_parents": _become,
}


@pytest.mark.parametrize("slot", OVERSTEPS)
async def test_no_thought_changes_what_is_the_codexs_or_the_kernels(slot: str) -> None:
    """Whatever wrote it: the commit is vetoed, the slot is named, and the object is as it was."""
    async with open_image(None) as image:
        await image.writer.apply(_persona)
        before = dump(image)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            OVERSTEPS[slot](transaction.root)
            with pytest.raises(Refused, match=f"{slot!r} of .*only the codex and the kernel"):
                await transaction.commit(answer(thought_in(image, transaction, mission)))
        after = dump(image)
        assert {oid: after[oid] for oid in before if after[oid] != before[oid]}.keys() <= _of_missions(image)


def _of_missions(image: LivingImage) -> set[bytes]:
    """The records that accepting a mission changes."""
    with image.snapshot() as root:
        return {root[name]._p_oid or b"" for name in roots.RECORDS}


async def test_trust_is_lowered_with_the_slot_that_it_is_of() -> None:
    """A slot that a thought wrote, and how far it is to be trusted, go in together."""
    async with open_image(None) as image:
        await image.writer.apply(_persona)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            persona = transaction.root["traits_obj"]
            persona.notes, persona.slot_trust = [1], {"notes": "external"}
            await transaction.commit(answer(thought_in(image, transaction, mission)))
        with image.snapshot() as root:
            assert root["traits_obj"].slot_trust == {"notes": "external"}


@pytest.mark.parametrize(("said", "kept", "lineage"), [("user", "external", "model"), ("external", None, "tool")])
async def test_no_lineage_is_better_than_what_was_recalled(said: str, kept: str | None, lineage: str) -> None:
    """The class of a memory is the image's, and not what the thought says of it."""

    def remember(root: Any) -> None:
        root[roots.DOCUMENTS]["d-1"] = UvmObject({"trust": kept})

    async with open_image(None) as image:
        if kept is not None:
            await image.writer.apply(remember)
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            thought.provenance = {**thought.provenance, "recalled": [{"memory": "d-1", "trust": said}]}
            thought.lineage_trust = lineage
            with pytest.raises(Refused, match="'external'"):
                await transaction.commit(thought)


@pytest.mark.parametrize(("calls", "budget", "stands"), [(3, 2, False), (2, 2, True), (3, None, True)])
async def test_no_thought_takes_more_calls_than_its_budget(calls: int, budget: int | None, stands: bool) -> None:
    """One that did is vetoed, and leaves no trace; without a budget any number stands."""
    given = brief() | ({} if budget is None else {"budget": {"calls": budget}})
    async with open_image(None) as image:
        mission = await image.accept(given)
        await image.move(mission, "running")
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            thought.cost = {"calls": calls}
            with nullcontext() if stands else pytest.raises(Refused, match="its budget is 2"):
                await transaction.commit(thought)
        with image.snapshot() as root:
            assert ("answer" in own_slots(image.find(root, mission)[2])) is stands
