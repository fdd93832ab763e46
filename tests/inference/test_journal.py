"""The journal: equal keys for what is equal, records that come back as they were put, and an unbroken chain."""

from __future__ import annotations

import asyncio
import pickle
import threading
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.inference.counting_bridge import Desk, desk
from tests.inference.test_canonical import shuffled
from transaction import TransactionManager
from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.history import record_chain
from batos.image.transactions import snapshot
from batos.inference.journal import (
    HEAD,
    MISSIONS,
    MissionLog,
    Record,
    State,
    chain_digest,
)
from batos.inference.journaled_requests import RUNNER_OPTIONS, journal_key
from batos.protocol.errors import ImageDamaged

REQUEST: dict[str, Any] = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
    "format": {"type": "object", "properties": {"a": {"type": "string"}}},
    "think": False,
    "options": {"num_ctx": 512, "num_predict": 64, "temperature": 0.7, "seed": 3},
}


def test_the_key_is_the_same_for_equal_requests() -> None:
    """However its mappings are ordered, and whether a number is written 1 or 1.0."""
    assert journal_key("d", REQUEST, "p") == journal_key("d", shuffled(REQUEST), "p")
    one, other = ({**REQUEST, "options": {"temperature": number}} for number in (1, 1.0))
    assert journal_key("d", one, "p") == journal_key("d", other, "p")


@pytest.mark.parametrize(
    "changed",
    [
        ("e", REQUEST, "p"),
        ("d", REQUEST, "p/repair1"),
        ("d", {**REQUEST, "messages": REQUEST["messages"][:1]}, "p"),
        ("d", {**REQUEST, "messages": REQUEST["messages"][::-1]}, "p"),
        ("d", {**REQUEST, "format": None}, "p"),
        ("d", {**REQUEST, "think": True}, "p"),
        ("d", {**REQUEST, "think": None}, "p"),
        *(("d", {**REQUEST, "options": {**REQUEST["options"], **each}}, "p") for each in (
            {"temperature": 0.8}, {"seed": 4}, {"top_k": 40}, {"num_predict": 65}, {"stop": ["."]}
        )),
    ],
)  # fmt: skip
def test_the_key_differs_with_each_of_its_parts(changed: tuple[str, dict[str, Any], str]) -> None:
    """Model digest, messages, format, think, sampling options and path each make another key."""
    assert journal_key(*changed) != journal_key("d", REQUEST, "p")


@pytest.mark.parametrize("name", sorted(RUNNER_OPTIONS))
def test_the_key_does_not_depend_on_the_runner(name: str) -> None:
    """How a runner is started does not change what was paid for."""
    other = {**REQUEST, "options": {**REQUEST["options"], name: 7}}
    assert journal_key("d", other, "p") == journal_key("d", REQUEST, "p")


@pytest.mark.parametrize("name", ["keep_alive", "stream", "truncate", "shift", "model"])
def test_the_key_does_not_depend_on_transport(name: str) -> None:
    """How a request is sent is not part of it."""
    assert journal_key("d", {**REQUEST, name: "5m"}, "p") == journal_key("d", REQUEST, "p")


texts = some.text(max_size=5) | some.sampled_from(["a", "b", "c"]).map(lambda letter: letter * 300)
messages = some.lists(some.fixed_dictionaries({"role": some.sampled_from(["user", "system"]), "content": texts}))
puts = some.lists(some.tuples(messages, some.sampled_from(["open", "done", "cut", "failed"])), max_size=8)


def record(number: int, request: dict[str, Any], state: State = "done", **changes: Any) -> Record:
    """A record of a mission."""
    return Record(
        key=changes.pop("key", f"k{number}"),
        mission=changes.pop("mission", "m-1"),
        path=f"p#{number}",
        model="robin",
        digest="d",
        request=request,
        state=state,
        started=f"t{number}",
        **changes,
    )


def reloaded(log: MissionLog) -> MissionLog:
    """The log as another connection reads it."""
    db = DB(MappingStorage())
    manager = TransactionManager()
    connection = db.open(manager)
    connection.root()["log"] = log
    manager.commit()
    connection.cacheMinimize()
    found: MissionLog = db.open(TransactionManager()).root()["log"]
    return found


@settings(max_examples=60)
@given(puts)
def test_a_log_answers_what_was_put(put: list[tuple[list[dict[str, str]], State]]) -> None:
    """What is stored deflated comes back whole, in the order of the entries."""
    log = MissionLog()
    records = [record(number, {**REQUEST, "messages": said}, state) for number, (said, state) in enumerate(put)]
    for each in records:
        log.put(each)
    assert [each.record() for each in reloaded(log).entries] == records


@settings(max_examples=60)
@given(messages, messages)
def test_an_open_entry_is_moved_on(first: list[dict[str, str]], second: list[dict[str, str]]) -> None:
    """Saved twice and then done it is one entry, in its place; others that share its messages stay whole."""
    log = MissionLog()
    one = record(1, {**REQUEST, "messages": first}, "open", partial="half")
    two = record(2, {**REQUEST, "messages": [*first, *second]})
    done = replace(one, state="done", partial=None, response={"text": "whole"}, ended="t9")
    for each in (one, replace(one, partial="half and more"), two, done):
        log.put(each)
    assert [each.record() for each in reloaded(log).entries] == [done, two]


def test_long_prompts_are_deflated() -> None:
    """Twelve calls with a long, repetitive prompt take less room than two such prompts as they are."""
    log = MissionLog()
    prompt = {"role": "system", "content": "The sea is salt. " * 3_000}
    for number in range(12):
        log.put(record(number, {**REQUEST, "messages": [prompt, {"role": "user", "content": str(number)}]}))
    stored = sum(len(pickle.dumps(entry.__getstate__())) for entry in log.entries)
    assert stored < 60_000


async def several(at: Desk) -> None:
    """Records of three missions, written at once, some first open, some cut."""
    states: list[State] = ["done", "cut", "failed"]

    async def one(mission: str, number: int) -> None:
        opened = record(number, REQUEST, "open", mission=mission, key=f"{mission}/{number}")
        if number % 2:
            await at.journal.write(replace(opened, partial="so far"))
        ended: dict[str, Any] = {
            "state": states[number % 3],
            "ended": "later",
            "response": {"text": mission},
            "tokens": {"prompt": 1},
        }
        await at.journal.write(replace(opened, **ended))

    await asyncio.gather(*(one(f"m-{mission}", number) for mission in range(3) for number in range(7)))


def closed(at: Desk) -> list[Record]:
    """All closed records, of all missions."""
    return [each for mission in range(3) for each in at.records(f"m-{mission}") if each.state != "open"]


def head(at: Desk) -> str:
    """The digest of the newest closed record."""
    with snapshot(at.db) as root:
        return str(root[HEAD])


def verified(records: list[Record], newest: str) -> bool:
    """Whether the records form one chain from the first to the newest: each names the digest of the one before."""
    after = {each.prev: each for each in records}
    digest, steps = "", 0
    while digest in after:
        digest, steps = chain_digest(after[digest]), steps + 1
        if steps > len(records):
            return False
    return steps == len(records) and digest == newest


async def test_the_chain_holds_over_all_missions() -> None:
    """Recomputed from what is stored, the digests of all closed records lead from the first to the head."""
    async with desk() as at:
        await several(at)
        assert len(closed(at)) == 21
        assert verified(closed(at), head(at))


@pytest.mark.parametrize("name", [name for name in Record.__dataclass_fields__ if name != "prev"])
async def test_a_changed_field_breaks_the_chain(name: str) -> None:
    """Whatever field of whatever record is changed, or a record dropped, the chain no longer holds."""
    async with desk() as at:
        await several(at)
        records, newest = closed(at), head(at)
        change: dict[str, Any] = {name: {"changed": 1} if name in BODIES else "changed"}
        for number in (0, 10, 20):
            changed = list(records)
            changed[number] = replace(changed[number], **change)
            assert not verified(changed, newest)
            assert not verified(records[:number] + records[number + 1 :], newest)


BODIES = {"request", "response", "tokens"}


async def test_entries_of_concurrent_steps_share_commits() -> None:
    """Sixty entries written at once take a few commits, not sixty."""
    async with desk() as at:
        await asyncio.gather(*(at.journal.write(record(number, REQUEST)) for number in range(60)))
        assert len(at.records()) == 60
        assert at.writer.commits < 6


async def test_notes_go_with_the_next_record_in_order() -> None:
    """Transitions cost no commit of their own, and `flush` writes what no record has taken along."""
    async with desk() as at:
        at.journal.note("m-1", {"state": "IDLE"})
        at.journal.note("m-1", {"state": "DECOMPOSING"})
        await at.journal.write(record(1, REQUEST))
        assert at.writer.commits == 1
        at.journal.note("m-1", {"state": "COMPLETE"})
        await at.journal.flush("m-1")
        await at.journal.flush("m-1")
        assert at.writer.commits == 2
        assert [note["state"] for note in at.journal.notes("m-1")] == ["IDLE", "DECOMPOSING", "COMPLETE"]
        assert at.journal.notes("m-2") == []


async def test_notes_outlive_a_write_that_failed() -> None:
    """They are written with the next one, once."""
    async with desk() as at:
        at.journal.note("m-1", {"state": "IDLE"})
        with pytest.raises(TypeError):
            await at.journal.write(record(1, {**REQUEST, "options": {"seed": threading.Lock()}}))
        await at.journal.write(record(2, REQUEST))
        assert [note["state"] for note in at.journal.notes("m-1")] == ["IDLE"]


async def test_a_mission_is_read_with_its_ancestors_and_no_others() -> None:
    """In the order that is asked for; an unknown one has nothing."""
    async with desk() as at:
        await several(at)
        found = at.journal.read(["m-2", "m-0", "m-9"])
        assert [each.mission for each in found] == ["m-2"] * 7 + ["m-0"] * 7
        with snapshot(at.db) as root:
            assert set(root[MISSIONS]) == {"m-0", "m-1", "m-2"}


async def test_models_and_progress_are_told_without_the_bodies() -> None:
    """Which models missions thought with, and how far one came: an open entry counts, and counts again when closed."""
    async with desk() as at:
        assert at.journal.models(["m-1"]) == frozenset()
        assert at.journal.progress("m-1") == (0, 0, "")
        first = record(1, REQUEST, "open")
        await at.journal.write(first)
        assert at.journal.progress("m-1") == (1, 0, first.path)
        await at.journal.write(replace(first, state="done"))
        await at.journal.write(replace(record(2, REQUEST, "failed"), model="other"))
        assert at.journal.progress("m-1") == (2, 2, "p#2")
        assert at.journal.models(["m-1", "m-none"]) == {first.model, "other"}
        entries = at.journal.read(["m-1"])
        assert len(entries) == 2


async def test_a_note_with_parts_is_written_once() -> None:
    """It reads back as it was noted, in its place, and stays as it is when the log is written again."""
    async with desk() as at:
        begun = {"begun": "at", "route": {"personas": ["BRICK"], "scores": {"BRICK": 1.0}}}
        at.journal.note("m-1", begun)
        at.journal.note("m-1", {"state": "IDLE", "at": "then"})
        await at.journal.write(record(1, REQUEST))
        serials: list[bytes] = []
        for number in (2, 3):
            with snapshot(at.db) as root:
                log = root[MISSIONS]["m-1"]
                assert log.notes[0]["begun"] == "at"  # what is not loaded has no serial
                assert log.entries
                serials += [log.notes[0]._p_serial, log._p_serial]
            at.journal.note("m-1", {"state": "COMPLETE", "at": str(number)})
            await at.journal.write(record(number, REQUEST))
        assert serials[0] == serials[2]
        assert serials[1] < serials[3]
        assert at.journal.notes("m-1")[:2] == [begun, {"state": "IDLE", "at": "then"}]


async def test_a_damaged_entry_is_told_and_costs_no_other() -> None:
    """Who reads it is told which call it was; who takes a mission up again has the sound ones."""
    async with desk() as at:
        for number in (1, 2):
            await at.journal.write(record(number, REQUEST))

        def flip(root: Any) -> None:
            entry = root[MISSIONS]["m-1"].entries[0]
            entry.bodies = entry.bodies[:20] + bytes([entry.bodies[20] ^ 1]) + entry.bodies[21:]

        await at.writer.apply(flip)
        with pytest.raises(ImageDamaged, match=r"the call of m-1 at p#1 is damaged") as damaged:
            at.journal.read(["m-1"])
        assert "asks the model again" in damaged.value.remedy
        assert [each.path for each in at.journal.sound(["m-1"])] == ["p#2"]


async def test_a_closed_log_keeps_no_words_of_what_comes_late() -> None:
    """Of a node that slept while its mission was erased: the digests stand in the chain, and no note is kept."""
    async with desk() as at:
        await at.journal.write(replace(record(1, REQUEST), state="open"))

        def close(root: Any) -> None:
            root[MISSIONS]["m-1"].erase_words()
            root[MISSIONS]["m-1"].close()

        await at.writer.apply(close)
        at.journal.note("m-1", {"failed": {"message": "a word"}})
        for late in (record(1, REQUEST), record(2, REQUEST)):
            await at.journal.write(late)
        with snapshot(at.db) as root:
            log = root[MISSIONS]["m-1"]
            assert ([each.bodies for each in log.entries], log.notes, log.has_words) == ([b"", b""], [], False)
            assert record_chain.read_calls(root).find_faults() == []
        assert at.journal.sound(["m-1"]) == []


async def test_a_call_that_was_erased_while_it_was_open_stays_erased() -> None:
    """The state that it ends with brings no word back; a later call of the same log has its words."""
    async with desk() as at:
        await at.journal.write(replace(record(1, REQUEST), state="open"))
        await at.writer.apply(lambda root: root[MISSIONS]["m-1"].erase_words())
        await at.journal.write(record(1, REQUEST))
        await at.journal.write(record(2, REQUEST))
        with snapshot(at.db) as root:
            ended, later = root[MISSIONS]["m-1"].entries
            assert (ended.fields["state"], ended.bodies, later.bodies == b"") == ("done", b"", False)
            assert record_chain.read_calls(root).find_faults() == []


async def test_an_erased_entry_keeps_its_place_in_the_chain() -> None:
    """Its digest is the same, its words are gone, and a mission that needs it asks again."""
    async with desk() as at:
        for number in (1, 2):
            await at.journal.write(record(number, REQUEST))
        with snapshot(at.db) as root:
            before = [each.chain_fields() for each in root[MISSIONS]["m-1"].entries]

        def erase(root: Any) -> None:
            root[MISSIONS]["m-1"].entries[0].erase()
            root[MISSIONS]["m-1"].entries[0].erase()

        await at.writer.apply(erase)
        with snapshot(at.db) as root:
            entry = root[MISSIONS]["m-1"].entries[0]
            assert ([each.chain_fields() for each in root[MISSIONS]["m-1"].entries], entry.bodies) == (before, b"")
        first, second = at.journal.read(["m-1"])
        assert (first.request, first.response, second.request) == ({}, None, REQUEST)
        assert [each.path for each in at.journal.sound(["m-1"])] == ["p#2"]
