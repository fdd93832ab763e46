"""Undo and erasure of a mission while an answer that builds on it is committed and not published yet."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.history.test_undoing import asked, mind
from tests.waiting import HANG, a_moment
from transaction import TransactionManager

from batos.history import dreams, promotion
from batos.history.mission_traces import Keeping
from batos.history.undoing import Undoing
from batos.image import roots
from batos.image.writer import Publisher
from batos.objects.prototype import own_slots
from batos.protocol.errors import Busy, Refused
from batos.server.dispatch.history_changes import promotion_parts
from batos.uvm import UVM


class _DyingPublisher(Publisher):
    """A publisher whose process ends before it folds."""

    async def fold(self, mission: str) -> bool:
        """Fail."""
        raise OSError("killed")


async def commit_only(uvm: UVM, ask: Door) -> str:
    """A mission that was shown the last turn, whose answer is committed and waits for its publisher."""
    brief = {"text": "And what did you say just now?", "effort": "reflex", "user": "tester", "conversation": "last"}
    dreamt = await ask("dream_new", brief=brief)
    dream = await asyncio.to_thread(dreams.read, uvm.image, dreamt["id"])
    dying = replace(promotion_parts(uvm), publisher=_DyingPublisher(uvm.image.shared, {}, uvm.clock))
    with pytest.raises(OSError, match="killed"):
        await promotion.promote(dying, dream)
    return str(dreamt["id"])


def undoing(uvm: UVM, patience: float) -> Undoing:
    """What undoes, and waits so long."""
    return Undoing(uvm.image, uvm.document_store, uvm.events, uvm.clock, patience)


async def test_an_answer_that_is_being_published_keeps_what_it_builds_on(tmp_path: Path) -> None:
    """An undo names it and what to do, with a cascade too, and so does an erasure; nothing is changed."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, "What holds a pier?", conversation="new")
        second = await commit_only(uvm, ask)
        for cascade in (False, True):
            with pytest.raises(Busy, match=f"{second} builds on .* just being published") as told:
                await undoing(uvm, 0.0).undo(first["id"], "tester", Keeping(), cascade=cascade)
            assert "Try again" in told.value.remedy
            with pytest.raises(Refused) as refused:
                await ask("erase", target=first["id"], cascade=cascade, user="tester")
            assert second in " ".join(refused.value.also)
        assert uvm.readings.mission(first["id"])["answer"] == first["answer"]
        listed = await ask("undo", mission=first["id"], dry_run=True, user="tester")
        assert [each["mission"] for each in listed["undone"]] == [second, first["id"]]
        await uvm.publisher.fold(second)
        with pytest.raises(Refused, match="a later mission builds on"):
            await ask("undo", mission=first["id"], user="tester")
        undone = await ask("undo", mission=first["id"], cascade=True, user="tester")
        assert [each["mission"] for each in undone["undone"]] == [second, first["id"]]


async def test_an_undo_waits_a_moment_for_what_is_being_published(tmp_path: Path) -> None:
    """Then it takes that along, or is refused by it, as by any that is done."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, "What holds a pier?", conversation="new")
        second = await commit_only(uvm, ask)
        taking = asyncio.create_task(undoing(uvm, HANG).undo(first["id"], "tester", Keeping(), cascade=True))
        await a_moment()
        assert not taking.done()
        await uvm.publisher.fold(second)
        assert [each["mission"] for each in (await taking)["undone"]] == [second, first["id"]]


async def test_a_thought_that_another_node_commits_meanwhile_is_seen(tmp_path: Path) -> None:
    """Between the look of an undo and its commit: the commit meets a conflict, and the undo looks again."""
    async with mind(tmp_path) as (uvm, _):
        first = await asked(uvm, "What holds a pier?")
        brief = {"text": "Why?", "effort": "reflex", "user": "tester", "in_reply_to": first["id"]}
        second = await uvm.missions.submit(brief)
        await uvm.image.move(second, "running", None, {"queued"})
        times = list[int]()

        def clock() -> datetime:
            """Tell the time, and at the first look let the thought be committed."""
            times.append(len(times))
            if len(times) == 1:
                commit(uvm, second)
            return uvm.clock()

        with pytest.raises(Busy, match=second):
            await Undoing(uvm.image, uvm.document_store, uvm.events, clock, 0.0).undo(first["id"], "tester", Keeping())
        assert len(times) == 2
        assert uvm.readings.mission(first["id"])["status"] == "done"
        await uvm.publisher.fold(second)


def commit(uvm: UVM, mission: str) -> None:
    """Commit the thought of a mission, as another node does."""
    manager = TransactionManager(explicit=True)
    manager.begin()
    connection: Any = uvm.image.db.open(manager)
    thought = roots.mission_record(connection.root(), mission).thought
    assert "answer" not in own_slots(thought)
    thought.answer, thought.contributions = "So.", []
    manager.commit()
    connection.close()
