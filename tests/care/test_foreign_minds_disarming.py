"""Disarming: a mind that comes out of a backup or an export acts on nothing until a person grants it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from persistent.mapping import PersistentMapping
from tests.agency.acting import Acting, acting
from tests.care.test_mind_export import exported, imported
from tests.care.test_verification import bridge, lost
from tests.history.test_as_of_past_questions import Door
from tests.image.open_image import uri_of

from batos.agency.records import effect_records
from batos.care import backups
from batos.care.foreign_minds import disarm, disarm_file
from batos.care.verification import find_faults
from batos.image import roots
from batos.image.ids import utc_now
from batos.image.readable import open_read_only
from batos.image.roots import Root
from batos.objects.prototype import reference
from batos.protocol.errors import BriefError, ObjectError
from batos.protocol.server_documents import DisarmingReport
from batos.records import redaction
from batos.records.redaction import Lines
from batos.testing import scripted_uvm

MESSAGE: dict[str, Any] = {"receiver": "notes", "selector": "append_", "arguments": ["log.txt", "A line."]}
BRIEF: dict[str, Any] = {"message": MESSAGE, "user": "tester", "grants": ["notes"]}


async def copied(mind: Acting, place: Path) -> None:
    """A backup and an export of a mind as it is now."""
    await asyncio.to_thread(backups.make_backup, place / "home", place / "backup", full=True, clock=utc_now)
    await asyncio.to_thread(exported, place / "home", place / "export")


async def brought_back(place: Path, how: str) -> dict[str, list[str]]:
    """Bring the copy back into another home, grant the same again, and let it do all that it would do."""
    home = place / "again"
    if how == "backup":
        newest = backups.find_backup(place / "backup", None)
        told = await asyncio.to_thread(backups.restore_backup, place / "backup", home, newest)
        assert told["grants"] == ["notes"]
    else:
        await imported(place / "export", home)
    async with scripted_uvm(home, bridge(), memory=False, method_control=0) as uvm:
        ask = Door(uvm)
        assert not (await ask("heartbeat"))["on"]
        grants = (await ask("grants"))["grants"]
        await ask("grants_add", kind="file", target=str(place / "folder"), name="notes", user="tester")
        for mission in await uvm.missions.recover():
            with suppress(ObjectError):  # it holds no capability
                await uvm.missions.run(mission)
        await uvm.releaser.release_all()
        effects = [each["state"] for each in (await ask("effects"))["effects"]]
        missions = [each["status"] for each in (await ask("missions"))["missions"]]
        return {"grants": grants, "effects": effects, "missions": missions}


@pytest.mark.parametrize("how", ["backup", "export"])
async def test_what_was_staged_when_a_copy_was_made_is_not_done_by_the_copy(tmp_path: Path, how: str) -> None:
    """The mind itself did it since: a person is asked what became of it."""
    async with acting(tmp_path, memory=False) as mind:
        await mind.uvm.heartbeat.turn("tester", on=True)
        async with mind.uvm.releaser._releasing:
            await mind.send("notes", "log.txt", "A line.")
            await copied(mind, tmp_path)
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])
        assert await brought_back(tmp_path, how) == {
            "grants": [], "effects": ["unknown"], "missions": ["done"],
        }  # fmt: skip
        assert mind.lines() == ["A line."]


@pytest.mark.parametrize("how", ["backup", "export"])
async def test_a_mission_that_waited_when_a_copy_was_made_acts_on_nothing_in_the_copy(tmp_path: Path, how: str) -> None:
    """Also where a person granted the same again: the effect would be the second one."""
    async with acting(tmp_path, memory=False) as mind:
        mission = await mind.uvm.missions.submit(BRIEF)
        await copied(mind, tmp_path)
        await mind.uvm.missions.run(mission)
        assert (await mind.states(), mind.lines()) == (["released"], ["A line."])
        assert await brought_back(tmp_path, how) == {"grants": [], "effects": [], "missions": ["failed"]}
        assert mind.lines() == ["A line."]


async def forge(place: Path, forgery: Callable[[Root, dict[str, Any]], None]) -> dict[str, Any]:
    """Put something into an empty mind as a stranger would, disarm it, grant what it names, and let it do all.

    The forgery is given the mind, and an effect on the grant `notes` that is as like a true one as can be guessed.
    """
    async with acting(place, memory=False) as mind:
        with mind.uvm.image.snapshot() as root:
            notes = reference(root[roots.GRANTS]["notes"])
        payload = {"path": "log.txt", "text": "Evil.\n"}
        guess = {
            "grant": "notes", "oid": notes, "operation": "effect.append", "payload": payload, "fingerprint": "0" * 64,
            "number": 0, "effect": "e-A-00", "mission": "m-A", "lineage": "m-A", "key": "0" * 32, "state": "staged",
            "attempts": 0, "before": None, "outcome": None, "staged_at": "", "at": "",
        }  # fmt: skip

        def change(root: Root) -> DisarmingReport:
            forgery(root, guess)
            granted = root[roots.GRANTS]["notes"]
            done = disarm(root, "")
            root[roots.GRANTS]["notes"] = granted  # a person grants it anew, and the number is the one that was guessed
            return done

        told = await mind.uvm.image.shared.apply(change)
        await mind.uvm.releaser.release_all()
        return {**told, "lines": mind.lines()}


async def test_an_effect_that_hides_from_the_outbox_is_disarmed(tmp_path: Path) -> None:
    """By its state alone it would be put on the list again by a repair."""

    def forgery(root: Root, guess: dict[str, Any]) -> None:
        root[roots.EFFECTS]["e-A-00"] = PersistentMapping(guess)

    told = await forge(tmp_path, forgery)
    assert (told["effects"], told["lines"]) == (["e-A-00"], [])


async def test_a_lost_record_of_what_has_ended_is_no_hindrance(tmp_path: Path) -> None:
    """A repair takes it away once the mind is back."""
    async with acting(tmp_path, memory=False) as mind:
        mission = (await mind.send("notes", "log.txt", "A line."))["id"]
        assert await mind.states() == ["released"]
        await mind.uvm.mission_memory.write()
    for find in (
        lambda root: roots.mission_record(root, mission).status,
        lambda root: next(effect_records.list_all_effects(root, mission)),
    ):
        await asyncio.to_thread(lost(find), tmp_path / "home")
    told = await asyncio.to_thread(disarm_file, tmp_path / "home" / "live_image.fs", "")
    assert told == {"grants": ["notes"], "effects": []}


async def test_an_effect_under_another_name_is_refused(tmp_path: Path) -> None:
    """Whoever ends it would end the other one, and it would stay in the outbox."""

    def forgery(root: Root, guess: dict[str, Any]) -> None:
        root[roots.EFFECTS]["e-A-00"] = PersistentMapping(guess, effect="e-B-00")
        root[roots.STAGED].insert("e-A-00")

    with pytest.raises(BriefError, match="e-A-00 has another name"):
        await forge(tmp_path, forgery)


async def test_a_capability_is_not_reached_by_its_name_and_number(tmp_path: Path) -> None:
    """Both can be guessed before it is granted, its nonce cannot."""
    async with acting(tmp_path, memory=False) as mind:
        with mind.uvm.image.snapshot() as root:
            made = root[roots.GRANTS]["notes"]
            known = {"grant": "notes", "oid": reference(made)}
            assert effect_records.find_capability_of(root, known) is None
            assert effect_records.find_capability_of(root, {**known, "nonce": effect_records.nonce_of(made)}) is made


async def test_a_mission_that_is_on_no_list_loses_its_grants_too(tmp_path: Path) -> None:
    """A repair, a resume or an answer would let it run, and the name would be enough."""
    async with acting(tmp_path, memory=False) as mind:
        mission = await mind.uvm.missions.submit(BRIEF)

        def change(root: Root) -> Any:
            root[roots.UNFOLDED].discard(mission)
            disarm(root, "")
            return roots.mission_record(root, mission).brief.value.get("grants")

        assert await mind.uvm.image.shared.apply(change) is None


async def test_no_object_of_a_grant_that_was_taken_back_is_left_in_an_imported_mind(tmp_path: Path) -> None:
    """Nothing leads to it: it would be a fault of an image that was just made."""
    async with acting(tmp_path, memory=False) as mind:
        await mind.send("notes", "log.txt", "A line.")
        await copied(mind, tmp_path)
    await imported(tmp_path / "export", tmp_path / "again")
    with open_read_only(uri_of(tmp_path / "again"), "") as pair:
        assert find_faults(pair.image) == []


async def test_a_mind_without_grants_is_not_written_to(tmp_path: Path) -> None:
    """Nothing is left beside its file either."""
    async with scripted_uvm(tmp_path / "home", bridge(), memory=False):
        pass
    made = await asyncio.to_thread(
        backups.make_backup, tmp_path / "home", tmp_path / "backup", full=True, clock=utc_now
    )
    told = await asyncio.to_thread(backups.restore_backup, tmp_path / "backup", tmp_path / "again", made)
    assert told == {"grants": [], "effects": [], "aside": [], "unused": []}
    names = sorted(each.name for each in (tmp_path / "again").iterdir() if each.is_file())
    assert [each for each in names if each.startswith("live_image")] == ["live_image.fs"]
    one, other = (tmp_path / name / "live_image.fs" for name in ("home", "again"))
    assert one.read_bytes() == other.read_bytes()


async def test_an_erasure_that_another_mind_had_begun_is_not_carried_out_by_the_mind_that_it_is_imported_to(
    tmp_path: Path,
) -> None:
    """An export may be a stranger's, and its note could name anything."""
    async with scripted_uvm(tmp_path / "home", bridge(), memory=False) as uvm:
        asked = await uvm.missions.ask({"text": "Who winds the lamp?", "user": "tester"})
        request = {"target": asked["id"], "user": None, "by": "tester", "cascade": True}
        await uvm.image.writer.apply(
            lambda root: redaction.begin_erasure(root, request, Lines(("lamp",), ()), asked["accepted_at"])
        )
    await asyncio.to_thread(exported, tmp_path / "home", tmp_path / "export")
    await imported(tmp_path / "export", tmp_path / "again")
    async with scripted_uvm(tmp_path / "again", bridge(), memory=False) as uvm:
        with uvm.image.snapshot() as root:
            assert redaction.describe_erasure(root) is None
        assert await asyncio.to_thread(find_faults, uvm.image.db) == []
        assert uvm.readings.mission(asked["id"])["answer"] == asked["answer"]
