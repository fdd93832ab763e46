"""The law of methods: whatever one does, nothing but its receiver's own free slots changes, and all of it or none.

The cell here lies: it sends, reads, writes and returns anything. The image holds all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.image.open_image import passed
from tests.methods.execution.method_mind import BRICK, MethodMind, open_method_mind
from tests.methods.execution.scenes import FakeCell, errands, program, with_cell
from tests.minds.scripted import change, submit
from tests.missions.test_nothing_remains import nothing_but_the_failure

from batos.cell.values import Ref, Writes
from batos.genesis.codex.codex import PILLARS
from batos.methods.execution import method_run, receiver_view
from batos.methods.execution.write_buffer import DELETED
from batos.objects.method import Behaviour
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import MethodFailed, StreamCut

#: What the kernel writes beside the slots that a method wrote.
KERNELS = {"slot_trust", "slot_users"}
FREE = ("total", "heard", "friend", "spare")
KEPT = (
    "name", "core_identity", "model", "facets", "prompts", "codex_digests", "guide_facet_", "add_", "infer_", "log_",
    "slot_trust", "lineage_trust", "trust", "parent*", "_parents", "_p_changed", "__class__", "_doesNotUnderstand_",
    "install_method_", "guardian", "ａdd", "", "a b",
)  # fmt: skip
slots = st.sampled_from([*FREE * 30, *KEPT])
refs = st.builds(Ref, st.integers(-1, 4))
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | refs,
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=2),
    max_leaves=5,
)
writes = st.builds(
    Writes,
    st.dictionaries(slots, values, max_size=3),
    st.frozensets(slots, max_size=2),
    st.sampled_from([True, True, False]),
)
selectors = st.sampled_from(["add_", "spoil_", "name", "log_", "turns_", "start_cognitive_cycle_for_", *KEPT, *PILLARS])
sends = st.tuples(st.none() | refs, selectors, st.lists(values, max_size=2), writes)
reads = st.tuples(refs, slots)
scripts = st.tuples(st.lists(sends | reads, max_size=5), values, writes)


class World(NamedTuple):
    """A mind that is open for all examples, on a loop of its own."""

    runner: asyncio.Runner
    mind: MethodMind
    mission: str

    def __repr__(self) -> str:
        return "a world"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One mind, with a mission that is begun anew for each example and never committed."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        mind = runner.run(stack.enter_async_context(open_method_mind(tmp_path_factory.mktemp("law") / "home")))
        runner.run(_furnish(mind))
        yield World(runner, mind, runner.run(submit(mind.uvm)))
        runner.run(stack.aclose())


async def _furnish(mind: MethodMind) -> None:
    def work(root: Any) -> None:
        brick = root[BRICK]
        brick.total, brick.heard = 1, ["a"]
        brick.friend = UvmObject({"name": "friend", "total": 5})
        brick.add_ = passed("add_", "def add_(self, amount=1):\n    return amount\n")
        brick.spoil_ = passed("spoil_", "def spoil_(self):\n    return 1\n")

    await change(mind.uvm, work)


class Liar:
    """A cell that does what the script says; methods that it is asked to run within write and fail as they like."""

    def __init__(self, script: tuple[list[Any], Any, Writes], nested: Writes) -> None:
        self.script, self.nested = script, nested
        self.depth = 0

    async def __call__(self, call: Any, host: Any) -> tuple[Any, Writes]:
        """One run."""
        self.depth += 1
        if self.depth > 1:
            if self.depth % 3 == 0:
                raise MethodFailed("the nested one raised")
            return None, self.nested
        asked, result, written = self.script
        for each in asked:
            if len(each) == 2:
                await host.read(*each)
            else:
                to, selector, args, pending = each
                await host.send(to, selector, args, {}, pending)
        return result, written


@given(script=scripts, nested=writes)
def test_nothing_but_the_receivers_own_data_changes(
    world: World, script: tuple[list[Any], Any, Writes], nested: Writes
) -> None:
    """Behaviour, what the codex declares, trust, every other object are as before; a run that fails changes nothing."""
    world.runner.run(_hold(world, script, nested))


async def _hold(world: World, script: tuple[list[Any], Any, Writes], nested: Writes) -> None:
    cell = FakeCell(Liar(script, nested))
    async with errands(world.mind.uvm, world.mission) as (opened, sent):
        brick = opened.context.mind.persona
        sent = with_cell(sent, cell)
        before = dict(own_slots(brick))
        friend = dict(own_slots(before["friend"]))
        dirty = set(map(id, opened.transaction._connection._registered_objects))
        try:
            await method_run.run_until_unchanged(sent, cell, program(*FREE, *KEPT))
            failed = False
        except MethodFailed:
            failed = True
        after = dict(own_slots(brick))
        changed = {
            each for each in before.keys() | after.keys() if before.get(each, DELETED) is not after.get(each, DELETED)
        }
        objects = [each for each in opened.transaction._connection._registered_objects if id(each) not in dirty]
        assert not failed or (changed, objects) == (set(), [])
        assert [each for each in objects if each is not brick] == []
        assert changed <= {*FREE, *KERNELS}
        assert dict(own_slots(before["friend"])) == friend
        assert all(not isinstance(after[each], Behaviour) for each in changed & after.keys())
        event("failed" if failed else f"{len(changed)} slots changed")
        assert {each["slot"] for each in opened.context.trace.written} == changed - KERNELS
        assert all(receiver_view.check_selector(each) for each in changed if each not in KERNELS)


@pytest.mark.parametrize("slot", PILLARS["BRICK"])
async def test_a_failed_mission_leaves_the_image_as_it_was(mind: MethodMind, slot: str) -> None:
    """Its methods wrote, to BRICK and within one another, before the weave was cut: no record of any of it is there."""
    source = f"""
    async def {slot}(self, query):
        self.total = self.total + 1
        self._p_changed = True
        self.note_(query)
        return await self.infer_(query)
    """
    note = "def note_(self, text):\n    self.heard.append(text)\n    self._p_changed = True\n"
    await mind.learn(**{slot: source}, note_=note)
    await mind.write(total=0, heard=[])
    await mind.uvm.readiness.check()  # the router learns the codex: that is written aside from every mission
    mind.script.woven = StreamCut("cut")
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        mission = await submit(mind.uvm)
        ran(mission)
        with pytest.raises(StreamCut):
            await mind.uvm.missions.run(mission)
    assert (mind.slots()["total"], mind.slots()["heard"]) == (0, [])
