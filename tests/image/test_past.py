"""The image as it was: a root of the past takes no change, and tells how far back it goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from batos.image import roots
from batos.image.past import PastImage, kept_span, moment_of, newest_commit, published_at, tid_of
from batos.protocol.errors import PackedAway
from batos.testing import scripted_uvm


def test_a_moment_and_its_commit_are_one() -> None:
    """To the microsecond; in any time zone."""
    moment = datetime(2026, 11, 26, 12, 30, 15, 250_000, tzinfo=UTC)
    assert abs(moment_of(tid_of(moment)) - moment) < timedelta(microseconds=5)
    assert tid_of(moment.astimezone()) == tid_of(moment)


async def test_a_past_root_stays_as_it_was_and_takes_no_change(tmp_path: Path) -> None:
    """What is changed in it is gone with it; the status says when a mission was published."""
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        mission = (await uvm.missions.ask({"text": "What holds?", "effort": "reflex"}))["id"]
        with uvm.image.snapshot() as root:
            published = published_at(root, roots.mission_record(root, mission).status)
        assert published is not None
        past = PastImage(uvm.image, published)
        await uvm.image.writer.apply(lambda root: roots.mission_record(root, mission).status.become("undone", ""))
        with past.snapshot() as root:
            assert roots.mission_record(root, mission).status.word == "done"
            del root[roots.MISSIONS]
        with past.snapshot() as root:
            assert mission in root[roots.MISSIONS]
        with uvm.image.snapshot() as root:
            assert roots.mission_record(root, mission).status.word == "undone"
            assert published_at(root, roots.mission_record(root, mission).status) == published
        assert past.sizes()["bytes"] > 0
        assert past.unfolded_missions() == []


async def test_the_first_commits_have_no_records_yet(tmp_path: Path) -> None:
    """They are read as an empty mind; before them there is nothing."""
    async with scripted_uvm(tmp_path) as uvm:
        reach = kept_span(uvm.image.db)
        assert (reach.packed, reach.oldest < newest_commit(uvm.image.db)) == (False, True)
        with PastImage(uvm.image, reach.oldest).snapshot() as root:
            assert not root[roots.MISSIONS]
        before = (int.from_bytes(reach.oldest, "big") - 1).to_bytes(8, "big")
        with pytest.raises(PackedAway), PastImage(uvm.image, before).snapshot():
            pass
