"""The mind as it was: what is read of a past moment is what an image says that was stopped there."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from tests.history import lived

from batos.history.as_of import MOST_KEPT, Moment, PastReadings
from batos.image.past import kept_span, newest_commit
from batos.protocol.errors import PackedAway
from batos.testing import ScriptedBridge, scripted_uvm


@pytest.mark.parametrize("seed", [1, 3])
async def test_what_is_read_of_the_past_is_what_a_stopped_image_says(tmp_path: Path, seed: int) -> None:
    """Ten random commits of a run, twice: missions, prompts, objects, turns, methods, memories and recalls."""
    bridge = ScriptedBridge(vectors=lived.meaning)
    async with scripted_uvm(tmp_path / "home", bridge, memory=False, method_control=0) as uvm:
        begun = newest_commit(uvm.image.db)
        await lived.live(uvm, seed)
        made = [tid for tid in lived.commits(tmp_path / "home" / "live_image.fs") if tid >= begun]
        chosen = random.Random(seed).sample(made, 10)
        past = PastReadings(uvm.readings)
        seen, kinds = set(), set[str]()
        for tid in chosen:
            copy = await asyncio.to_thread(lived.stopped, tmp_path / "home", tmp_path / tid.hex(), tid)
            expected = await asyncio.to_thread(lived.said_by_a_copy, uvm, copy)
            found = await asyncio.to_thread(lived.all_that_is_said, past.readings(Moment(tid)))
            assert found.keys() == expected.keys()
            for key, value in expected.items():
                assert found[key] == value, (tid.hex(), key)
            seen.add(len(expected["memories"]["memories"]))
            kinds.update(key for key in ("methods", lived.BY_VECTORS) if lived.is_something(expected[key]))
        assert len(seen) > 2, "the chosen moments are to differ"
        assert kinds == {"methods", lived.BY_VECTORS}, "methods and vectors are to be among what is compared"


async def test_the_indexes_of_few_moments_are_kept(tmp_path: Path) -> None:
    """And moments between which memory did not change share one."""
    async with scripted_uvm(tmp_path) as uvm:
        tids = [newest_commit(uvm.image.db)]
        for step in range(3):
            await uvm.document_store.remember([lived.document(f"{step}.md", f"The pier has {step} posts.")])
            tids.append(newest_commit(uvm.image.db))
        past = PastReadings(uvm.readings)
        kept = [past.readings(Moment(tid)).recollection for tid in tids]
        assert len({id(each) for each in kept}) == len(tids)
        assert past.readings(Moment(tids[-1])).recollection is kept[-1]
        assert len(past._recollections) == MOST_KEPT


async def test_a_moment_that_is_packed_away_names_the_oldest(tmp_path: Path) -> None:
    """Before the first commit too; from the oldest moment on everything can be asked."""
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        past = PastReadings(uvm.readings)
        with pytest.raises(PackedAway, match="nothing before"):
            past.readings(Moment(b"\0" * 7 + b"\1"))
        first = (await uvm.missions.ask({"text": "What holds?", "effort": "reflex"}))["id"]
        moment = past.find(first)
        await uvm.missions.ask({"text": "What else holds?", "effort": "reflex"})
        await uvm.missions.wait_for_end(first)
        uvm.image.db.pack()
        with pytest.raises(PackedAway, match="packed away"):
            past.readings(moment).newest()
        oldest = kept_span(uvm.image.db)
        assert oldest.packed
        assert past.readings(Moment(oldest.oldest)).mission(first)["status"] == "done"
