"""The releaser: each effect happens once, whatever ends the process, and what nobody can know a person is asked."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import BRIEF, FACET, acting
from tests.agency.http_target import Target, listening
from tests.image.installing import install
from tests.image.open_image import child
from tests.waiting import HANG

from batos.agency.records import effect_records
from batos.agency.releaser import MOST_ATTEMPTS
from batos.image.roots import Root
from batos.protocol.errors import NotFound, Refused


@pytest.fixture
def target() -> Iterator[Target]:
    """A program that listens."""
    with listening() as found:
        yield found


async def killed(*arguments: object) -> None:
    """Run the script until it is killed at its point."""
    with child(Path(__file__).with_name("script_effects.py"), *arguments) as process:
        assert await asyncio.to_thread(process.wait, HANG) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("point", "grant", "state", "asked"),
    [
        ("staged", "notes", "released", 1),
        ("begun", "notes", "released", 1),
        ("done", "notes", "released", 1),
        ("begun", "new", "released", 1),
        ("done", "new", "released", 1),
        ("done", "inbox", "released", 2),
        ("begun", "dark", "unknown", 0),
        ("done", "dark", "unknown", 1),
        ("recorded", "inbox", "released", 1),
    ],
)
async def test_a_killed_process_leaves_no_effect_out_and_doubles_none(
    tmp_path: Path, target: Target, point: str, grant: str, state: str, asked: int
) -> None:
    """At each point of an effect's life, by each class of sink; two recoverers change nothing of it."""
    await killed(tmp_path, target.url, point, grant)
    async with acting(tmp_path, memory=False) as mind:
        for mission in await mind.uvm.missions.recover():
            await mind.uvm.missions.run(mission)
        for _ in range(2):
            await asyncio.gather(mind.uvm.releaser.release_all(), mind.uvm.releaser.release_all())
        assert await mind.states() == [state]
        if grant in ("notes", "new"):
            assert mind.lines() == ["A line."]
        else:
            assert (len(target.asked), len(target.done)) == (asked, min(asked, 1))


async def test_a_program_that_is_away_is_tried_again_with_the_same_key(tmp_path: Path, target: Target) -> None:
    """And an answer that was lost is asked for again: what was done under the key is not done twice."""
    async with acting(tmp_path, url=target.url) as mind:
        target.answers = [503, 0, 200]
        assert (await mind.send("inbox", {"text": "Hello."}))["status"] == "done"
        for _ in range(3):
            await mind.uvm.releaser.release_all()
        assert await mind.states() == ["released"]
        assert len({key for key, _ in target.asked}) == len(target.done) == 1
        assert len(target.asked) == 3


async def test_a_program_that_stays_away_is_given_up(tmp_path: Path, target: Target) -> None:
    """The effect did not happen: another mission of the lineage may stage it anew."""
    async with acting(tmp_path, url=target.url) as mind:
        target.answers = [503] * MOST_ATTEMPTS
        told = await mind.send("inbox", {"text": "Hello."})
        for _ in range(MOST_ATTEMPTS):
            await mind.uvm.releaser.release_all()
        assert (await mind.states(), len(target.asked)) == (["failed"], MOST_ATTEMPTS)
        assert (await mind.send("inbox", {"text": "Hello."}, ancestor=told["id"]))["answer"] == "staged"
        assert await mind.states() == ["failed", "released"]


async def test_what_is_unknown_is_settled_by_a_person(tmp_path: Path, target: Target) -> None:
    """Once, for good; only of an effect that is unknown, and only for whose mission it is."""
    told: list[dict[str, Any]] = []
    async with acting(tmp_path, url=target.url) as mind:
        mind.uvm.events.subscribe(lambda event, keys: told.append(dict(keys)) if event == "effect.unknown" else None)
        target.answers = [500, 500]
        first, second = await mind.send("dark", {"n": 1}), await mind.send("dark", {"n": 2})
        assert await mind.states() == ["unknown", "unknown"]
        names = [each["effect"] for each in told]
        assert names == [f"e-{each['id'][2:]}-01" for each in (first, second)]
        with pytest.raises(NotFound):
            await mind.ask("effects_settle", effect=names[0], outcome="done", user="somebody")
        await mind.ask("effects_settle", effect=names[0], outcome="done", user="tester")
        settled = await mind.ask("effects_settle", effect=names[1], outcome="undone", user="tester")
        assert settled["outcome"]["settled_by"] == "tester"
        assert await mind.states() == ["released", "not_done"]
        with pytest.raises(Refused, match="nothing is to be settled"):
            await mind.ask("effects_settle", effect=names[0], outcome="undone", user="tester")
        assert (await mind.send("dark", {"n": 1}, ancestor=first["id"]))["answer"] == "repeated"
        assert (await mind.send("dark", {"n": 2}, ancestor=second["id"]))["answer"] == "staged"


async def test_what_is_staged_under_a_revoked_grant_fails(tmp_path: Path) -> None:
    """A new grant of the same name is another capability."""
    other = tmp_path / "other"
    other.mkdir()
    async with acting(tmp_path) as mind:
        async with mind.uvm.releaser._releasing:
            await mind.send("notes", "log.txt", "A line.")
            await mind.ask("grants_revoke", name="notes", user="tester")
            await mind.ask("grants_add", kind="file", target=str(other), name="notes", user="tester")
        assert await mind.states() == ["failed"]
        assert (mind.lines(), list(other.iterdir())) == ([], [])
        assert "revoked" in (await mind.ask("effects"))["effects"][0]["outcome"]["error"]["message"]


async def test_effects_happen_in_the_order_of_their_missions(tmp_path: Path) -> None:
    """Those of one mission in the order in which it staged them."""
    async with acting(tmp_path) as mind:
        for number in range(5):
            await mind.send("notes", "log.txt", f"Line {number}.")
        assert await mind.states() == ["released"] * 5
        assert mind.lines() == [f"Line {number}." for number in range(5)]
        with mind.uvm.image.snapshot() as root:
            assert effect_records.list_waiting(root) == []


async def test_twelve_effects_of_a_mission_happen_in_their_order(tmp_path: Path) -> None:
    """And are listed so: the tenth does not come behind the first."""
    source = (
        f"async def {FACET}(self, query):\n"
        "    notes = await self.capability_('notes')\n"
        "    for number in range(12):\n"
        "        await notes.append_('log.txt', f'Line {number}.')\n"
        "    return await self.infer_(query)\n"
    )
    async with acting(tmp_path) as mind:

        def learn(root: Root) -> None:
            install(root, root["brick_prototype_obj"], FACET, source)

        await mind.uvm.image.writer.apply(learn)
        assert (await mind.uvm.missions.ask(BRIEF))["status"] == "done"
        assert await mind.states() == ["released"] * 12
        assert mind.lines() == [f"Line {number}." for number in range(12)]
        listed = [each["effect"].rpartition("-")[2] for each in reversed((await mind.ask("effects"))["effects"])]
        assert listed == [f"{number:02}" for number in range(1, 13)]
