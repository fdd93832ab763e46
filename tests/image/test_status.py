"""A mission's status: short transactions of its own, apart from the thought."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.image.living import answer, brief, living, thought_in

from batos.errors import DiskFull, NotFound, Refused
from batos.events import Events
from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.publisher import Publisher
from batos.image.records import Status


def status_of(image: LivingImage, mission: str) -> dict[str, Any]:
    """A status as plain data."""
    with image.snapshot() as root:
        return dict(image.find(root, mission)[1].__getstate__())


async def test_a_status_says_why_and_since_when(tmp_path: Path) -> None:
    """Word, time, reason and report are there after a move, and every subscriber was told."""
    heard: list[tuple[str, Any]] = []
    async with living(tmp_path, events=Events(lambda *each: heard.append(each), log=False)) as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        reason = DiskFull("no room")
        await image.move(mission, "failed", reason, report={"states": []})
        found = status_of(image, mission)
    assert (found["word"], found["reason"], found["report"]) == ("failed", reason.as_dict(), {"states": []})
    assert heard[-1] == ("mission.status", {"mission": mission, "status": "failed", "reason": reason.as_dict()})


async def test_attempts_are_counted(tmp_path: Path) -> None:
    """Each time a mission begins to run counts, also over a restart; nothing else does."""
    async with living(tmp_path) as image:
        mission = await image.accept(brief())
        assert status_of(image, mission)["attempts"] == 0
        await image.move(mission, "running")
    async with living(tmp_path) as image:
        await image.move(mission, "queued")
        await image.move(mission, "running")
        await image.move(mission, "failed")
        assert status_of(image, mission)["attempts"] == 2


async def test_an_ended_mission_waits_for_nothing_until_it_runs_again(tmp_path: Path) -> None:
    """A failed or cancelled mission is not to be folded in; one that runs again is."""
    async with living(tmp_path) as image:
        for word in ("failed", "cancelled"):
            mission = await image.accept(brief())
            await image.move(mission, "running")
            await image.move(mission, word)
            assert mission not in image.unfolded()
            await image.move(mission, "running")
            assert mission in image.unfolded()


async def test_a_mission_runs_once_at_a_time(tmp_path: Path) -> None:
    """Running what runs already is refused and leaves it running."""
    async with living(tmp_path) as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        with pytest.raises(Refused, match="running already"):
            await image.move(mission, "running")
        assert status_of(image, mission)["attempts"] == 1


async def test_a_published_mission_does_not_change(tmp_path: Path) -> None:
    """What is part of the mind is neither run again nor called failed."""
    async with living(tmp_path) as image:
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
    async with living(tmp_path) as image:
        with pytest.raises(NotFound):
            await image.move("m-0", "running")


def test_a_reason_ends_with_its_status() -> None:
    """A mission that is queued again no longer says why it had failed."""
    status = Status("queued", "then")
    status.become("failed", "now", {"code": "disk_full"})
    status.become("queued", "later")
    assert (status.word, status.at, status.reason, status.attempts) == ("queued", "later", None, 0)
