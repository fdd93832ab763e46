"""A mission's status: short transactions of its own, apart from the thought."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.open_image import answer, brief, open_image, thought_in
from ZODB.POSException import ConflictError

from batos.events import Events
from batos.image import roots
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.records import Status, StatusWord
from batos.image.writer import Publisher
from batos.protocol.errors import Busy, DiskFull, NotFound, Refused


def status_of(image: LivingImage, mission: str) -> dict[str, Any]:
    """A status as plain data."""
    with image.snapshot() as root:
        return dict(image.find(root, mission)[1].__getstate__())


async def test_a_status_says_why_and_since_when(tmp_path: Path) -> None:
    """Word, time, reason and report are there after a move, and every subscriber was told."""
    heard: list[tuple[str, Any]] = []
    async with open_image(tmp_path, events=Events(lambda *each: heard.append(each), log=False)) as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        reason = DiskFull("no room")
        await image.move(mission, "failed", reason, report={"states": []})
        found = status_of(image, mission)
    assert (found["word"], found["reason"], found["report"]) == ("failed", reason.as_dict(), {"states": []})
    assert heard[-1] == ("mission.status", {"mission": mission, "status": "failed", "reason": reason.as_dict()})


async def test_attempts_are_counted(tmp_path: Path) -> None:
    """Each time a mission begins to run counts, also over a restart; nothing else does."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
        assert status_of(image, mission)["attempts"] == 0
        await image.move(mission, "running")
    async with open_image(tmp_path) as image:
        await image.move(mission, "queued")
        await image.move(mission, "running")
        await image.move(mission, "failed")
        assert status_of(image, mission)["attempts"] == 2


async def test_an_ended_mission_waits_for_nothing_until_it_runs_again(tmp_path: Path) -> None:
    """A failed or cancelled mission is not to be folded in; one that runs again is."""
    async with open_image(tmp_path) as image:
        for word in ("failed", "cancelled"):
            mission = await image.accept(brief())
            await image.move(mission, "running")
            await image.move(mission, word)
            assert mission not in image.unfolded_missions()
            await image.move(mission, "running")
            assert mission in image.unfolded_missions()


async def test_a_mission_runs_once_at_a_time(tmp_path: Path) -> None:
    """Running what runs already is refused and leaves it running."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with pytest.raises(Refused, match="running already"):
            await image.move(mission, "running")
        assert status_of(image, mission)["attempts"] == 1


async def test_a_published_mission_does_not_change(tmp_path: Path) -> None:
    """What is part of the mind is neither run again nor called failed."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
        with image.transaction(mission) as transaction:
            await transaction.commit(answer(thought_in(image, transaction, mission)))
        await Publisher(image.writer, {}, utc_now).fold(mission)
        for word in ("running", "failed", "cancelled", "queued"):
            with pytest.raises(Refused, match="done"):
                await image.move(mission, word)
        assert status_of(image, mission)["word"] == "done"


async def test_moving_what_is_not_there(tmp_path: Path) -> None:
    """An unknown mission has no status."""
    async with open_image(tmp_path) as image:
        with pytest.raises(NotFound):
            await image.move("m-0", "running")


def test_a_reason_ends_with_its_status() -> None:
    """A mission that is queued again no longer says why it had failed."""
    status = Status("queued", "then")
    status.become("failed", "now", DiskFull("It is full.").as_dict())
    status.become("queued", "later")
    assert (status.word, status.at, status.reason, status.attempts) == ("queued", "later", None, 0)


WORDS = ("queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone")


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(WORDS)), max_size=12))
async def test_the_tally_is_what_a_scan_finds(moves: list[tuple[int, StatusWord]]) -> None:
    """However missions are accepted, moved, refused and folded in, each status is counted as often as there is one."""
    async with open_image(None) as image:
        missions = list(await asyncio.gather(*(image.accept(brief(), limit=5) for _ in range(5))))
        with pytest.raises(Busy):
            await image.accept(brief(), limit=5)
        for number, word in moves:
            with suppress(Refused):
                await image.move(missions[number], word)
        with suppress(ConflictError), image.transaction(missions[0]) as transaction:
            await transaction.commit(answer(thought_in(image, transaction, missions[0])))
        await asyncio.gather(*(Publisher(image.writer, {}, utc_now).fold(missions[0]) for _ in range(2)))
        with image.snapshot() as root:
            assert {word: count for word, count in root[roots.TALLY].items() if count} == roots.count_by_status(root)
            assert roots.waiting_count(root) == sum(
                roots.count_by_status(root).get(word, 0) for word in ("queued", "waiting")
            )


async def test_an_older_image_is_tallied_when_it_is_opened(tmp_path: Path) -> None:
    """One that was written before there was a tally is counted once, and goes on from there."""
    async with open_image(tmp_path) as image:
        first = await image.accept(brief())
        await image.move(first, "paused")
        await image.accept(brief())
        await image.writer.apply(lambda root: root.pop(roots.TALLY))
    async with open_image(tmp_path) as image:
        with image.snapshot() as root:
            assert dict(root[roots.TALLY]) == {"paused": 1, "queued": 1}


async def test_a_move_from_elsewhere_is_refused(tmp_path: Path) -> None:
    """Who names the statuses that a mission may come from changes nothing of one that has another."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
        with pytest.raises(Refused, match="is queued"):
            await image.move(mission, "queued", None, {"waiting"})
        assert status_of(image, mission)["word"] == "queued"


async def test_the_attempt_is_told(tmp_path: Path) -> None:
    """Each time a mission begins to run it is told which attempt this is."""
    heard: list[Any] = []
    async with open_image(tmp_path, events=Events(lambda event, keys: heard.append(keys.get("attempt")))) as image:
        mission = await image.accept(brief())
        for word in ("running", "queued", "running"):
            await image.move(mission, word)
    assert [each for each in heard if each is not None] == [1, 2]
