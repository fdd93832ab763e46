"""The publisher: missions at once never conflict, nothing is folded twice, and the statistics add up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.image.counting import CountingStorage
from tests.image.missions import thinking
from tests.image.open_image import answer, brief, dump, open_image, thought_in

from batos.image import roots
from batos.image.ids import tid_text, utc_now
from batos.image.image import LivingImage
from batos.image.writer import Publisher
from batos.protocol.errors import InternalError

MISSIONS, AT_ONCE = 80, 16


def counted(home: Path, made: list[CountingStorage]) -> Callable[[], CountingStorage]:
    """A factory that keeps what it made."""

    def factory() -> CountingStorage:
        made.append(CountingStorage(str(home / "live_image.fs"), blob_dir=str(home / "blobs")))
        return made[-1]

    return factory


async def test_missions_at_once_never_conflict(tmp_path: Path) -> None:
    """80 whole missions, sixteen at a time, eighteen of them turns: no conflict and none resolved, by the storage."""
    made: list[CountingStorage] = []
    async with thinking(tmp_path, image_factory=counted(tmp_path, made)) as uvm:
        begun = [await uvm.missions.ask({"text": "begin", "effort": "cycle", "conversation": "new"}) for _ in range(2)]
        names = [each["brief"]["conversation"] for each in begun]
        # Every fifth is a turn of one of two conversations.
        asked = [
            {"text": f"question {number}", "effort": "cycle", "conversation": None if number % 5 else names[number % 2]}
            for number in range(MISSIONS - len(begun))
        ]
        done = [*begun, *await asyncio.gather(*(uvm.missions.ask(each) for each in asked))]
        storage = made[0]
        assert (storage.conflicts, storage.resolved) == (0, 0)
        assert storage.stored > 3 * MISSIONS
        assert {each["status"] for each in done} == {"done"}
        assert uvm.image.unfolded_missions() == []
        with uvm.image.snapshot() as root:
            statistics = root[roots.STATISTICS]
            assert sum(statistics["missions"].values()) == MISSIONS
            assert statistics["calls"] == sum(each["cost"]["calls"] for each in done)
            conversations = root[roots.CONVERSATIONS]
            turns = {name: list(conversations[name].turns.items()) for name in conversations}
        assert set(turns) == set(names)
        assert all([place for place, _ in each] == list(range(1, MISSIONS // 10 + 2)) for each in turns.values())
        spoken = sorted(each["id"] for each in done if each["brief"].get("conversation"))
        assert sorted(mission for each in turns.values() for _, mission in each) == spoken


async def committed(image: LivingImage, contributions: list[tuple[str, Any]]) -> str:
    """A mission with a committed thought, not folded in."""
    mission = await image.accept(brief())
    await image.move(mission, "running")
    with image.transaction(mission) as transaction:
        thought = answer(thought_in(image, transaction, mission))
        thought.contributions = contributions
        await transaction.commit(thought)
    return mission


def add(root: Any, mission: str, payload: Any) -> None:
    """Count up."""
    root[roots.STATISTICS]["sum"] = root[roots.STATISTICS].get("sum", 0) + payload


async def test_folding_twice_changes_nothing(tmp_path: Path) -> None:
    """The second time, also at the same moment, no record of the image is written."""
    async with open_image(tmp_path) as image:
        publisher = Publisher(image.writer, {"add": add}, utc_now)
        mission = await committed(image, [("add", 3), ("add", 4)])
        await asyncio.gather(publisher.fold(mission), publisher.fold(mission))
        before = dump(image)
        await publisher.fold(mission)
        assert dump(image) == before
        with image.snapshot() as root:
            _, status, thought = image.find(root, mission)
            assert root[roots.STATISTICS]["sum"] == 7
            assert (status.word, status.published) == ("done", True)
            thought._p_activate()
            assert status.tid == tid_text(thought._p_serial)


async def test_missions_that_end_together_are_folded_together(tmp_path: Path) -> None:
    """Fifty committed missions are published in one or two commits."""
    async with open_image(tmp_path) as image:
        publisher = Publisher(image.writer, {"add": add}, utc_now)
        missions = [await committed(image, [("add", 1)]) for _ in range(50)]
        before = image.writer.commits
        await asyncio.gather(*(publisher.fold(mission) for mission in missions))
        assert image.writer.commits - before <= 2
        with image.snapshot() as root:
            assert root[roots.STATISTICS]["sum"] == 50


async def test_what_did_not_commit_is_not_published(tmp_path: Path) -> None:
    """A mission without a committed thought cannot be folded in."""
    async with open_image(tmp_path) as image:
        mission = await image.accept(brief())
        with pytest.raises(InternalError, match="no committed thought"):
            await Publisher(image.writer, {}, utc_now).fold(mission)


async def test_a_contribution_that_nobody_folds_harms_no_other(tmp_path: Path) -> None:
    """It is an error that names its kind; the missions of the same batch are published."""
    async with open_image(tmp_path) as image:
        publisher = Publisher(image.writer, {"add": add}, utc_now)
        strange = await committed(image, [("add", 100), ("dance", None)])
        plain = await committed(image, [("add", 1)])
        results = await asyncio.gather(publisher.fold(strange), publisher.fold(plain), return_exceptions=True)
        assert isinstance(results[0], InternalError)
        assert "'dance'" in str(results[0])
        assert results[1] is True
        with image.snapshot() as root:
            assert root[roots.STATISTICS]["sum"] == 1
            assert not image.find(root, strange)[1].published


async def test_what_a_fold_has_to_tell_is_told_once_after_its_commit(tmp_path: Path) -> None:
    """Also where its batch is taken apart and folded again; of what could not be committed nothing is told."""
    async with open_image(tmp_path) as image:
        told: list[tuple[str, int]] = []

        def telling(root: Any, mission: str, payload: Any) -> list[Callable[[], None]]:
            def tell() -> None:
                with image.snapshot() as seen:
                    told.append((payload, seen[roots.STATISTICS]["sum"]))

            add(root, mission, 1)
            return [tell]

        publisher = Publisher(image.writer, {"add": add, "tell": telling}, utc_now)
        strange = await committed(image, [("tell", "never"), ("dance", None)])
        plain = await committed(image, [("tell", "first"), ("tell", "second")])
        results = await asyncio.gather(publisher.fold(strange), publisher.fold(plain), return_exceptions=True)
        assert isinstance(results[0], InternalError)
        assert await publisher.fold(plain) is False
        assert told == [("first", 2), ("second", 2)]
