"""The mark of an erasure: who read the image before it writes no words, on whatever node, and everybody else does."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.inference.counting_bridge import Desk, desk
from tests.inference.test_journal import REQUEST, record

from batos.history import record_chain
from batos.image.transactions import snapshot
from batos.image.writer import Writer
from batos.inference import erasure_mark
from batos.inference.journal import MISSIONS, Journal
from batos.protocol.errors import WordsErased

BEFORE, AFTER = (number.to_bytes(8, "big") for number in (5, 7))


async def erase(at: Desk) -> None:
    """Mark an erasure that ended with commit 6."""
    await at.writer.apply(erasure_mark.begin)
    await at.writer.apply(partial(erasure_mark.end, newest=(6).to_bytes(8, "big")))


def kept(at: Desk) -> list[bool]:
    """Whether each call has its words."""
    with snapshot(at.db) as root:
        assert record_chain.read_calls(root).find_faults() == []
        return [entry.digests is None for entry in root[MISSIONS]["m-1"].entries]


async def test_what_was_read_before_an_erasure_is_kept_without_words() -> None:
    """Its digests stand in the chain, its notes are not kept, and who writes can ask before he relies on it."""
    async with desk() as at:
        early, late = at.journal.as_of(BEFORE), at.journal.as_of(AFTER)
        early.check_words()
        await erase(at)
        early.note("m-1", {"failed": {"message": "a word"}})
        for journal, number in ((early, 1), (late, 2), (at.journal, 3)):
            await journal.write(record(number, REQUEST))
        assert kept(at) == [False, True, True]
        assert at.journal.notes("m-1") == []
        late.check_words()
        with pytest.raises(WordsErased, match="as it was before") as told:
            early.check_words()
        assert "Ask again" in told.value.remedy


async def test_nothing_read_is_kept_in_words_while_an_erasure_is_under_way() -> None:
    """However late the image was read; what an open mission writes is kept, since an erasure waits for it."""
    async with desk() as at:
        await at.writer.apply(erasure_mark.begin)
        await at.journal.as_of(AFTER).write(record(1, REQUEST))
        await at.journal.write(record(2, REQUEST))
        assert kept(at) == [False, True]


async def test_notes_alone_make_no_log_after_an_erasure() -> None:
    """A log that has no note of its question would be nobody's."""
    async with desk() as at:
        await at.writer.apply(erasure_mark.begin)
        journal = at.journal.as_of(BEFORE)
        journal.note("m-1", {"asked": "a word"})
        await journal.flush("m-1")
        with snapshot(at.db) as root:
            assert MISSIONS not in root


async def test_a_commit_of_a_journal_of_the_past_is_never_later_than_that() -> None:
    """A copy of a copy reads no newer mind."""
    async with desk() as at:
        journal = at.journal.as_of(BEFORE).as_of(AFTER)
        await erase(at)
        with pytest.raises(WordsErased):
            journal.check_words()


async def test_an_erasure_at_another_node_makes_the_write_meet_a_conflict() -> None:
    """A change that began before the mark and changes no root writes no words after it: it is made again."""
    async with desk() as at:
        await at.journal.write(record(1, REQUEST))
        other: Writer[Any] = Writer(at.db, at.thread, lambda error: error)
        times = list[int]()

        def erased_meanwhile(root: Any) -> None:
            """Look, and only then let the other node mark its erasure."""
            times.append(len(times))
            is_behind = erasure_mark.is_behind(root, BEFORE, for_change=True)
            if len(times) == 1:
                other._commit([_Change(erasure_mark.begin)])  # type: ignore[list-item]
            root[MISSIONS]["m-1"].note([{"word": "kept" if not is_behind else "gone"}])

        await at.writer.apply(erased_meanwhile)
        other.close()
        assert times == [0, 1]
        assert Journal(at.db, at.writer).notes("m-1") == [{"word": "gone"}]


class _Change:
    """A change as a writer queues it."""

    def __init__(self, change: Any) -> None:
        self.change, self.result = change, None
