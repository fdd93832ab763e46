"""The parents of an object, which a person gives it at a door: kept, shown, taken back, refused where they may not."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.history.test_as_of_past_questions import Door

from batos.genesis.codex.declarations import state_slot
from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, delegation, own_slots, parents_of, reference
from batos.protocol.errors import BatosError, BriefError, NotFound, Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

HELPERS = 4


def make_helpers(root: Root) -> list[str]:
    """Objects of nobody's words, each a child of `traits_obj`, in the order of their names."""
    found = [UvmObject({f"word{number}": f"word {number}"}, (root["traits_obj"],)) for number in range(HELPERS)]
    for number, each in enumerate(found):
        setattr(root[roots.TOOLS], f"helper{number}", each)
        root[roots.TOOLS]._p_jar.add(each)
    return [reference(each) for each in found]


@asynccontextmanager
async def helpers(home: Path) -> AsyncIterator[tuple[UVM, Door, list[str]]]:
    """A mind with a few objects that a person may reparent, and a door to it."""
    async with scripted_uvm(home, ScriptedBridge(), memory=False) as uvm:
        yield uvm, Door(uvm), await uvm.image.shared.apply(make_helpers)


def find(root: Root, name: str) -> UvmObject:
    """An object by its reference."""
    found: Any = roots.connection_of(root).get(int(name.removeprefix("oid:"), 16).to_bytes(8, "big"))
    assert isinstance(found, UvmObject)
    return found


def parents(uvm: UVM, name: str) -> list[str]:
    """The names of an object's parents."""
    with uvm.image.snapshot() as root:
        return [roots.name_of_object(root, each) for each in parents_of(find(root, name))]


async def test_an_object_gets_other_parents_and_its_former_ones_back(tmp_path: Path) -> None:
    """They answer what it has not; the lineage tells by whom and why, `why` and `slot` show it, an undo ends it."""
    async with helpers(tmp_path) as (uvm, ask, (one, two, *_)):
        told = await ask("method_reparent", object=one, parents=[two, "traits_obj"], why="it has the words", user="ada")
        assert (told["slot"], told["value"]) == (f"{one}.parents", [two, "traits_obj"])
        assert parents(uvm, one) == [two, "traits_obj"]
        message = {"receiver": one, "selector": "word1"}
        assert (await uvm.missions.ask({"message": message, "user": "ada"}))["answer"] == "word 1"
        shown = await ask("slot_show", slot=f"{one}.parents")
        assert [(each["number"], each["value"], each["by"], each["why"]) for each in shown["values"]] == [
            (0, ["traits_obj"], "the image", ""), (1, [two, "traits_obj"], "ada", "it has the words"),
        ]  # fmt: skip
        assert f"{one}.parents" in [each["slot"] for each in (await ask("slots"))["slots"]]
        why = await ask("why", what=f"{one}.parents")
        assert "by ada: it has the words" in why["because"][0]["text"]
        planned = await ask("undo", mission=f"{one}.parents", dry_run=True)
        assert (planned["slot"]["value"], parents(uvm, one)) == ([two, "traits_obj"], [two, "traits_obj"])
        undone = await ask("undo", mission=f"{one}.parents", user="ada")
        assert (undone["slot"]["value"], parents(uvm, one)) == (["traits_obj"], ["traits_obj"])
        await ask("slot_rollback", slot=f"{one}.parents", revision=1)
        assert parents(uvm, one) == [two, "traits_obj"]
        await uvm.reconciler.run()
        assert parents(uvm, one) == [two, "traits_obj"]


async def test_what_may_not_be_is_refused(tmp_path: Path) -> None:
    """A cycle, an unknown parent, the same twice, objects of the organisation and of the codex, records, guests."""
    async with helpers(tmp_path) as (uvm, ask, (one, two, *_)):
        await ask("method_reparent", object=two, parents=[one])
        mission = (await uvm.missions.ask({"text": "Why?", "effort": "reflex", "user": "ada"}))["id"]
        with uvm.image.snapshot() as root:
            slots = own_slots(root["orchestrator_obj"])
            state = reference(slots[state_slot("IDLE")])
        before = parents(uvm, one)
        refusals: list[tuple[dict[str, Any], type[BatosError], str]] = [
            ({"object": one, "parents": [two]}, BriefError, "would delegate to itself"),
            ({"object": one, "parents": [one]}, BriefError, "would delegate to itself"),
            ({"object": one, "parents": ["nobody_obj"]}, NotFound, "no object"),
            ({"object": "nobody_obj", "parents": [one]}, NotFound, "no object"),
            ({"object": one, "parents": ["traits_obj", "traits_obj"]}, BriefError, "each once"),
            ({"object": "robin_prototype_obj", "parents": [one]}, Refused, "other parents than genesis gave"),
            ({"object": "tools_obj", "parents": ["pLLM_obj"]}, Refused, "other parents than genesis gave"),
            ({"object": state, "parents": [one]}, Refused, "declared by the codex"),
            ({"object": mission, "parents": [one]}, NotFound, "no object"),
            ({"object": one, "parents": [mission]}, NotFound, "no object"),
        ]
        for args, kind, words in refusals:
            with pytest.raises(kind, match=words) as refused:
                await ask("method_reparent", **args)
            assert refused.value.remedy
        with pytest.raises(Refused, match="home alone"):
            await ask("undo", mission=f"{two}.parents", user="key laptop")
        assert parents(uvm, one) == before
        assert parents(uvm, two) == [one]


CHANGES = st.lists(
    st.tuples(st.integers(0, HELPERS - 1), st.lists(st.integers(0, HELPERS - 1), min_size=1, max_size=3)), max_size=8
)


@settings(max_examples=5, deadline=None)
@given(CHANGES)
def test_no_row_of_changes_makes_an_object_its_own_ancestor(changes: list[tuple[int, list[int]]]) -> None:
    """Whatever is asked for in which order: what is refused changes nothing, and the first parents can come back."""

    async def run(home: Path) -> None:
        async with helpers(home) as (uvm, ask, names):
            for number, wanted in changes:
                before = [parents(uvm, each) for each in names]
                try:
                    await ask("method_reparent", object=names[number], parents=[names[each] for each in wanted])
                except BriefError:
                    assert [parents(uvm, each) for each in names] == before
                with uvm.image.snapshot() as root:
                    for each in (find(root, name) for name in names):
                        assert all(each not in delegation(one) for one in parents_of(each))
            for name in {names[number] for number, _ in changes}:
                if (await ask("slot_show", slot=f"{name}.parents"))["values"]:
                    await ask("slot_rollback", slot=f"{name}.parents", revision=0)
            assert [parents(uvm, each) for each in names] == [["traits_obj"]] * HELPERS

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(run(Path(home)))
