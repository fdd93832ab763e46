"""Rounds of a generation in the journal: one that was cut off is gone on with, one that ended is followed by one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from ZODB.DB import DB

from batos.concurrency.threads import CommitThread
from batos.image.ids import iso
from batos.image.roots import JournalRoot
from batos.image.writer import Writer
from batos.inference.journal import Journal, Record
from batos.methods.generation import generation_limits
from batos.methods.generation.generations import NegativeCache
from batos.protocol.errors import CovenantViolation, GenerationFailed

LOG = "g-0123456789ABCDEFGHJKMNPQRS"
AT = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = {"code": "generation_failed", "message": "nothing came of it", "remedy": "", "retry": False}


@pytest.fixture
def journal() -> Iterator[Journal]:
    """A journal in memory."""
    db, thread = DB(None), CommitThread()
    writer: Writer[JournalRoot] = Writer(db, thread, lambda error: error)
    yield Journal(db, writer)
    writer.close()
    thread.close()
    db.close()


def record(path: str, **more: Any) -> Record:
    """An answered call of the log."""
    request: dict[str, Any] = {
        "messages": [{"role": "system", "content": path}],
        "format": None,
        "think": False,
        "options": {},
    }
    return Record(path, LOG, path, "coder", "d" * 64, request, "done", iso(AT), **more)


async def test_one_that_was_cut_off_is_gone_on_with(journal: Journal) -> None:
    """Until a round has ended, whoever opens the log has that round and what was paid for in it, in order."""
    assert generation_limits.current_round(journal, LOG) == generation_limits.Round(LOG, 0, ())
    await journal.write(record("generation#0/attempt0"))
    await journal.write(record("generation#0/attempt1"))
    opened = generation_limits.current_round(journal, LOG)
    assert (opened.number, [each.path for each in opened.paid]) == (
        0,
        ["generation#0/attempt0", "generation#0/attempt1"],
    )
    assert opened.first_messages == ({"role": "system", "content": "generation#0/attempt0"},)


@pytest.mark.parametrize("ended", ["installed", "failed"])
async def test_one_that_ended_is_followed_by_another(journal: Journal, ended: str) -> None:
    """What was paid for in a round that ended is no part of the next, which begins under a path of its own."""
    await journal.write(record("generation#0/attempt0"))
    await generation_limits.close_round(journal, generation_limits.current_round(journal, LOG), ended, iso(AT))
    opened = generation_limits.current_round(journal, LOG)
    assert (opened.number, opened.path, opened.paid, opened.first_messages) == (1, "generation#1", (), ())
    assert opened.before is not None
    assert opened.before["ended"] == ended


async def test_calls_that_failed_are_nothing_to_begin_with(journal: Journal) -> None:
    """Only an answer is paid for: a first call that was cut leaves the next process free to ask as things are now."""
    await journal.write(Record(**{**_fields(record("generation#0/attempt0")), "state": "cut", "partial": "{"}))
    assert generation_limits.current_round(journal, LOG).first_messages == ()


def _fields(one: Record) -> dict[str, Any]:
    return {name: getattr(one, name) for name in Record.__dataclass_fields__}


async def test_a_failure_stands_for_its_time(journal: Journal) -> None:
    """What failed is known to the process and, from the journal, to the next, until its seconds are over."""
    now = AT
    declined = NegativeCache(60.0, lambda: now)
    error = GenerationFailed("nothing came of it")
    assert declined.failure(LOG) is None
    declined.add(LOG, error)
    assert declined.failure(LOG) is error
    await generation_limits.close_round(
        journal, generation_limits.current_round(journal, LOG), "failed", iso(AT), FAILED
    )
    another = NegativeCache(60.0, lambda: now)
    found = another.read(generation_limits.current_round(journal, LOG))
    assert isinstance(found, GenerationFailed)
    assert found.message == "nothing came of it"
    assert another.failure(LOG) is found
    now = AT + timedelta(seconds=60)
    assert declined.failure(LOG) is None
    assert another.failure(LOG) is None
    assert another.read(generation_limits.current_round(journal, LOG)) is None


async def test_the_guardians_faults_are_kept(journal: Journal) -> None:
    """A source that the guardian refused is told with its faults, after a restart too."""
    fault = {"rule": "covenant", "line": 2, "column": 4, "why": "no marker", "remedy": "end with it"}
    failed = {**FAILED, "code": "covenant_violation", "faults": [fault]}
    await generation_limits.close_round(
        journal, generation_limits.current_round(journal, LOG), "failed", iso(AT), failed
    )
    found = NegativeCache(60.0, lambda: AT).read(generation_limits.current_round(journal, LOG))
    assert isinstance(found, CovenantViolation)
    assert found.faults == (fault,)


async def test_another_log_is_no_failure(journal: Journal) -> None:
    """Another wish, coder or dialect has another log: what failed under the one says nothing of it."""
    declined = NegativeCache(60.0, lambda: AT)
    declined.add(LOG, GenerationFailed("nothing came of it"))
    assert declined.failure("g-another") is None
    assert declined.read(generation_limits.current_round(journal, "g-another")) is None
