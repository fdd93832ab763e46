"""Dreams: a mission in a copy of the mind, what it would change, and its way into the mind or out of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.image.installing import install

from batos.history import dreams, mission_traces, promotion
from batos.image import roots
from batos.image.roots import Root
from batos.image.writer import Publisher
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import NotFound, Refused
from batos.server.dispatch.history_changes import promotion_parts
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

BRICK = "brick_prototype_obj"
FACET = "tamland_facet_"
COUNTS = (
    f"async def {FACET}(self, query):\n"
    "    told = await self.infer_(query)\n"
    "    self.visits = getattr(self, 'visits', 0) + 1\n"
    "    self._p_changed = True\n"
    "    return told\n"
)
BRIEF = {"text": "What holds a pier?", "persona": "BRICK", "effort": "cycle", "user": "tester"}


@asynccontextmanager
async def counting(home: Path, **settings: Any) -> AsyncIterator[tuple[UVM, Door]]:
    """A mind in which a facet of BRICK counts its uses in a slot, and a door to it."""
    async with scripted_uvm(home, ScriptedBridge(), method_control=0, **settings) as uvm:

        def change(root: Root) -> None:
            install(root, root["brick_prototype_obj"], FACET, COUNTS)

        await uvm.image.writer.apply(change)
        yield uvm, Door(uvm)


def visits(uvm: UVM) -> int:
    """What the facet counted."""
    with uvm.image.snapshot() as root:
        return int(own_slots(root["brick_prototype_obj"]).get("visits", 0))


async def test_a_dream_changes_nothing_until_it_is_promoted(tmp_path: Path) -> None:
    """Then its mission, its turn, its slot and its statistics are there, as if it had been asked."""
    async with counting(tmp_path, memory=False) as (uvm, ask):
        size = uvm.image.sizes()["bytes"]
        told = await ask("dream_new", brief={**BRIEF, "conversation": "new"})
        assert (told["status"], told["dream"], uvm.image.sizes()["bytes"]) == ("done", True, size)
        assert told["provenance"]["read_at"] == told["as_of"]["tid"]
        mission = told["id"]
        diff = await ask("dream_diff", dream="last", user="tester")
        assert (diff["dream"], diff["answer"], diff["conflicts"]) == (mission, told["answer"], [])
        assert diff["base"] is None
        (slot,) = diff["slots"]
        assert (slot["object"], slot["slot"], slot["before"], slot["after"]) == (BRICK, "visits", None, 1)
        assert "turn" in diff["contributions"]
        promoted = await ask("dream_promote", dream=mission)
        assert (promoted["status"], promoted["answer"]) == ("done", told["answer"])
        assert (visits(uvm), "as_of" in promoted) == (1, False)
        turns = await ask("turns", conversation="last", user="tester")
        assert [each["mission"] for each in turns["turns"]] == [mission]
        with uvm.image.snapshot() as root:
            assert root[roots.TALLY] == roots.count_by_status(root) | {
                word: 0 for word, count in root[roots.TALLY].items() if not count
            }
            assert not root[roots.UNFOLDED]
            assert root[roots.STATISTICS]["missions"] == {"BRICK": 1}
        await uvm.mission_memory.write()
        assert uvm.readings.memories(9)["documents"] == 1
        with pytest.raises(Refused, match="promoted"):
            await ask("dream_promote", dream=mission)
        with pytest.raises(Refused, match="promoted"):
            await ask("dream_drop", dream=mission)
        assert (await ask("dream_list"))["dreams"][0]["state"] == "promoted"


async def test_a_dream_is_shown_beside_what_the_mind_answered(tmp_path: Path) -> None:
    """The newest answer to the same question of the same user, and neither its own nor another user's."""
    async with counting(tmp_path) as (_, ask):
        asked = [await ask("submit", brief=BRIEF, follow=True) for _ in range(2)]
        await ask("submit", brief={**BRIEF, "user": "somebody"}, follow=True)
        dream = await ask("dream_new", brief=BRIEF)
        expected = {"mission": asked[1]["id"], "answer": asked[1]["answer"]}
        assert (await ask("dream_diff", dream=dream["id"]))["base"] == expected


async def test_a_dream_names_missions_as_any_question_does(tmp_path: Path) -> None:
    """The one that it replies to, and the one whose calls it reuses: `last`, or the beginning of an id."""
    async with counting(tmp_path) as (_, ask):
        first = await ask("submit", brief=BRIEF, follow=True)
        dream = await ask("dream_new", brief={**BRIEF, "ancestor": first["id"][:-1], "in_reply_to": "last"})
        assert (dream["brief"]["ancestor"], dream["brief"]["in_reply_to"]) == (first["id"], first["id"])
        with pytest.raises(NotFound, match="you asked fewer"):
            await ask("dream_new", brief={**BRIEF, "ancestor": "last-1"})


async def test_a_dream_that_meets_a_later_change_is_refused(tmp_path: Path) -> None:
    """Two dreams of one slot: the first is promoted, the second is not, and leaves no trace."""
    async with counting(tmp_path) as (uvm, ask):
        both = [await ask("dream_new", brief=BRIEF) for _ in range(2)]
        await ask("dream_promote", dream=both[0]["id"])
        diff = await ask("dream_diff", dream=both[1]["id"])
        assert diff["conflicts"] == [f"{BRICK}.visits"]
        with pytest.raises(Refused, match="changed since the dream began"):
            await ask("dream_promote", dream=both[1]["id"])
        assert visits(uvm) == 1
        assert [each["id"] for each in (await ask("missions"))["missions"]] == [both[0]["id"]]
        dropped = await ask("dream_drop", dream=both[1]["id"])
        assert dropped["state"] == "dropped"
        with pytest.raises(Refused, match="dropped"):
            await ask("dream_promote", dream=both[1]["id"])
        assert (await ask("show", mission=both[1]["id"]))["answer"] == both[1]["answer"]


async def test_dreams_are_promoted_while_the_mind_is_under_load(tmp_path: Path) -> None:
    """Several dreams at once, and missions that count in the same slot meanwhile: no count is lost.

    Dreams that changed no slot are all promoted.
    """
    async with counting(tmp_path) as (uvm, ask):
        reflex = {"text": "What holds a beam?", "effort": "reflex"}
        several = await asyncio.gather(*(ask("dream_new", brief=BRIEF) for _ in range(3)))
        apart = await asyncio.gather(*(ask("dream_new", brief=reflex) for _ in range(3)))
        loaded = asyncio.gather(
            *(ask("submit", brief=reflex, follow=True) for _ in range(10)),
            *(ask("submit", brief=BRIEF, follow=True) for _ in range(4)),
        )
        promoted = await asyncio.gather(
            *(ask("dream_promote", dream=each["id"]) for each in (*apart, *several)), return_exceptions=True
        )
        await loaded
        came = [each for each in promoted if isinstance(each, dict)]
        assert all(isinstance(each, dict) for each in promoted[:3])
        assert all(isinstance(each, dict | Refused) for each in promoted[3:])
        assert visits(uvm) == 4 + len(came) - len(apart)
        with uvm.image.snapshot() as root:
            counted = roots.count_by_status(root)
            assert {word: count for word, count in root[roots.TALLY].items() if count} == counted
            assert counted == {"done": 14 + len(came)}


async def test_a_promotion_that_dies_before_it_is_published_is_finished(tmp_path: Path) -> None:
    """By the recovery of missions: the answer is committed, and its contributions are folded in once."""

    class DyingPublisher(Publisher):
        async def fold(self, mission: str) -> bool:
            raise OSError("the process died")

    async with counting(tmp_path, memory=False) as (uvm, ask):
        told = await ask("dream_new", brief={**BRIEF, "conversation": "new"})
        dying = replace(promotion_parts(uvm), publisher=DyingPublisher(uvm.image.writer, {}, uvm.clock))
        with pytest.raises(OSError, match="died"):
            await promotion.promote(dying, dreams.read(uvm.image, told["id"]))
    async with counting(tmp_path, memory=False) as (uvm, ask):
        await uvm.missions.recover()
        assert (await ask("wait", mission=told["id"]))["status"] == "done"
        turns = await ask("turns", conversation="last", user="tester")
        assert [each["mission"] for each in turns["turns"]] == [told["id"]]
        assert (visits(uvm), (await ask("dream_list"))["dreams"][0]["state"]) == (1, "promoted")
        with pytest.raises(Refused, match="promoted"):
            await ask("dream_promote", dream=told["id"])


async def test_a_dream_keeps_its_files_and_its_user(tmp_path: Path) -> None:
    """They come into the image with it; nobody else sees, promotes or drops it."""
    async with counting(tmp_path) as (uvm, ask):
        file = as_file("lamp.txt", b"Maro winds the clockwork.", 1_000)
        await ask.dispatcher.uploads.add(file.ref.sha256, 0, "TWFybyB3aW5kcyB0aGUgY2xvY2t3b3JrLg==", "")
        told = await ask("dream_new", brief={**BRIEF, "attachments": [file.ref.model_dump()]})
        for verb in ("dream_diff", "dream_promote", "dream_drop"):
            with pytest.raises(NotFound):
                await ask(verb, dream=told["id"], user="somebody")
        assert (await ask("dream_list", user="somebody"))["dreams"] == []
        with uvm.image.snapshot() as root:
            assert file.ref.sha256 not in root[roots.ATTACHMENTS]
        await ask("dream_promote", dream=told["id"][:-1])
        with uvm.image.snapshot() as root:
            assert root[roots.ATTACHMENTS][file.ref.sha256].read() == b"Maro winds the clockwork."


#: What no thought may be, and what is said of it.
UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "better trusted than a thought can be": ({"trust": "user"}, "not one that it can have"),
    "without a provenance": ({"provenance": {"methods": [], "written": []}}, "provenance lacks"),
    "beyond its budget": ({"cost": {"calls": 99}}, "its budget is 9"),
}


@pytest.mark.parametrize("name", UNFIT)
async def test_a_promotion_passes_the_checks_of_every_thought(tmp_path: Path, name: str) -> None:
    """Whatever the journal says of it: the voters look at it as at any mission's, and nothing of it is written."""
    changed, what = UNFIT[name]
    async with counting(tmp_path) as (uvm, ask):
        told = await ask("dream_new", brief={**BRIEF, "budget": {"calls": 9}})

        def alter(root: Any) -> None:
            kept = root[dreams.DREAMS][told["id"]]
            kept["thought"] = {**kept["thought"], **changed}

        await uvm.image.journal_writer.apply(alter)
        with pytest.raises(Refused, match=what):
            await ask("dream_promote", dream=told["id"])
        assert (visits(uvm), (await ask("missions"))["missions"]) == (0, [])


async def test_values_and_references_are_plain_and_back() -> None:
    """Lists and numbers stay; of an object its reference is kept."""
    assert mission_traces.plain_value([1, {"a": "b"}]) == [1, {"a": "b"}]
