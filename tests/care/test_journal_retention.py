"""Retention of the journal: words of old calls go, digests stay, and nothing goes that an open mission may need."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from tests.care.test_packing import Clock, packed
from tests.history.test_undoing import asked

from batos.care import verification
from batos.care.packing import Packer, erase_old_words, list_due
from batos.cli.render.mission_record import prompts_text
from batos.history import copies, record_chain
from batos.image import roots
from batos.image.transactions import snapshot
from batos.inference.journal import MISSIONS
from batos.protocol.mission_documents import MissionDocument
from batos.server.dispatch.reads import explain
from batos.uvm import UVM
from batos.verbs.history_verbs import replay_text
from batos.verbs.server_verbs import packed_text

DAY = timedelta(days=1)


@asynccontextmanager
async def kept(home: Path, **parts: Any) -> AsyncIterator[tuple[UVM, Packer, Clock]]:
    """A mind whose journal keeps words for ten days."""
    async with packed(home, journal_days=10.0, **parts) as found:
        yield found


def words_of(uvm: UVM, mission: str) -> list[bytes]:
    """The bodies of a mission's calls, as they are stored."""
    with snapshot(uvm.image.journal_db) as root:
        return [each.bodies for each in root[MISSIONS][mission].entries]


def chain_of(uvm: UVM) -> tuple[str, list[Any]]:
    """The digest of the journal's chain, and its faults."""
    with snapshot(uvm.image.journal_db) as root:
        chain = record_chain.read_calls(root)
        return chain.head, chain.find_faults()


async def test_words_go_with_their_days_and_digests_stay(tmp_path: Path) -> None:
    """The chain is the same; the record says that words are gone, and so does the reason of the answer."""
    async with kept(tmp_path) as (uvm, packer, clock):
        mission = (await asked(uvm, "Who winds the lamp of Orm?"))["id"]
        before, said = chain_of(uvm), uvm.readings.mission(mission)
        clock.ahead = 9 * DAY
        assert (await packer.pack())["erased"] == 0
        assert all(words_of(uvm, mission))
        clock.ahead = 11 * DAY
        told = await packer.pack()
        assert told["erased"] == len(words_of(uvm, mission)) > 0
        assert set(words_of(uvm, mission)) == {b""}
        assert f"The words of {told['erased']} call" in packed_text(told)
        assert (chain_of(uvm), before[1]) == (before, [])
        assert uvm.readings.mission(mission)["answer"] == said["answer"]
        prompts = uvm.readings.prompts(mission)
        assert [each["erased"] for each in prompts] == [True] * len(prompts)
        assert prompts_text(prompts).count("the words of this call are erased") == len(prompts)
        why = await asyncio.to_thread(explain, uvm.readings, mission)
        assert f"{len(prompts)} of its calls, whose words are erased" in str(why)
        assert (await packer.pack())["erased"] == 0
        assert verification.find_faults(uvm.image.db) == []


async def test_a_pack_behind_it_leaves_no_word_in_the_file(tmp_path: Path) -> None:
    """Once no kept state of the journal has them."""
    async with kept(tmp_path) as (uvm, packer, clock):
        mission = (await asked(uvm, "Who winds the lamp of Orm?"))["id"]
        (deflated, *_) = words_of(uvm, mission)
        assert b"lamp of Orm" in zlib.decompress(deflated)
        clock.ahead = 11 * DAY
        await packer.pack()
        assert deflated not in await asyncio.to_thread((tmp_path / "journal.fs").read_bytes)


async def test_an_open_mission_keeps_its_words_and_those_that_it_may_be_served_from(tmp_path: Path) -> None:
    """A retry that waits pays for nothing twice."""
    async with kept(tmp_path) as (uvm, packer, clock):
        first = (await asked(uvm, "Who winds the lamp?"))["id"]
        other = (await asked(uvm, "Who mended the pier?"))["id"]
        again = {"text": "Who winds the lamp?", "user": "tester", "effort": "reflex", "ancestor": first}
        waits = await uvm.image.accept({**again, "attachments": []})
        clock.ahead = 11 * DAY
        assert (await packer.pack())["erased"] == len(words_of(uvm, other))
        assert all(words_of(uvm, first))
        await uvm.missions.begin(waits)
        await uvm.missions.wait_for_end(waits)
        assert uvm.readings.mission(waits)["cost"]["from_journal"] > 0


@pytest.mark.parametrize("others", [0, 1])
async def test_a_pack_ends_though_missions_come_from_each_other_in_a_circle(tmp_path: Path, others: int) -> None:
    """As they may in a hostile export; each keeps its words. One that goes around it for ever fails as a hang."""
    async with kept(tmp_path) as (uvm, _, clock):
        brief = {"text": "Who winds the lamp?", "user": "tester", "effort": "reflex", "attachments": []}
        waiting = [await uvm.image.accept(dict(brief)) for _ in range(1 + others)]

        def close_circle(root: Any) -> None:
            for mission, ancestor in zip(waiting, waiting[1:] + waiting[:1], strict=True):
                value = roots.mission_record(root, mission).brief.value
                value["ancestor"] = ancestor
                roots.mission_record(root, mission).brief.value = value

        await uvm.image.writer.apply(close_circle)
        assert await asyncio.to_thread(list_due, uvm.image, clock()) == []


async def test_a_retry_of_a_mission_without_words_asks_the_model_again(tmp_path: Path) -> None:
    """And a replay says how many calls could not be served."""
    async with kept(tmp_path) as (uvm, packer, clock):
        first = await asked(uvm, "Who winds the lamp?")
        clock.ahead = 11 * DAY
        await packer.pack()
        again = await asked(uvm, "Who winds the lamp?", ancestor=first["id"])
        assert (again["status"], again["cost"]["from_journal"]) == ("done", 0)
        told = copies.compare(cast("MissionDocument", first), cast("MissionDocument", again), uvm.journal)
        assert told["erased"] == len(words_of(uvm, first["id"]))
        assert f"the words of {told['erased']} call" in replay_text(told, answered=True)


async def test_a_log_of_no_mission_ends_with_its_last_call(tmp_path: Path) -> None:
    """A dream's, for one: the image does not know its mission."""
    async with kept(tmp_path) as (uvm, _, clock):
        mission = (await asked(uvm, "Who winds the lamp?"))["id"]
        await uvm.image.journal_writer.apply(lambda root: root[MISSIONS].update({"m-0": root[MISSIONS][mission]}))
        now = clock()
        assert await asyncio.to_thread(list_due, uvm.image, now - DAY) == []
        assert await asyncio.to_thread(list_due, uvm.image, now + DAY) == ["m-0", mission]


async def test_words_are_erased_by_themselves_once_a_day(tmp_path: Path) -> None:
    """A damaged call stays as it is, and the rest goes."""
    async with kept(tmp_path) as (uvm, packer, clock):
        mission = (await asked(uvm, "Who winds the lamp?"))["id"]

        def damage(root: Any) -> None:
            root[MISSIONS][mission].entries[0].bodies = b"no deflated bytes"

        await uvm.image.journal_writer.apply(damage)
        clock.ahead = 11 * DAY
        assert await packer.erase_if_due()
        assert [each for each in words_of(uvm, mission) if each] == [b"no deflated bytes"]
        assert not await packer.erase_if_due()
        clock.ahead = 13 * DAY
        assert await packer.erase_if_due()


async def test_words_stay_unless_a_number_of_days_is_set(tmp_path: Path) -> None:
    """Whatever is packed."""
    async with packed(tmp_path) as (uvm, packer, clock):
        mission = (await asked(uvm, "Who winds the lamp?"))["id"]
        clock.ahead = 40_000 * DAY
        assert (await packer.pack())["erased"] == 0
        assert all(words_of(uvm, mission))
        assert await erase_old_words(uvm.image, clock()) == len(words_of(uvm, mission))
