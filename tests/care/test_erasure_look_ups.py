"""An erasure reaches what look-ups brought, and what was asked of the world."""

from __future__ import annotations

from pathlib import Path

from tests.agency.look_ups.test_granted import looking
from tests.history.test_as_of_past_questions import Door

from batos.history import record_chain
from batos.image.transactions import snapshot


async def test_words_go_from_pages_and_from_the_ledger(tmp_path: Path) -> None:
    """The chain of the journal stands; the number of what was asked stays, its words do not."""
    async with looking(tmp_path, memory=False) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        await mind.send("wiki", "search_", "tide at Xanadu")
        ask = Door(mind.uvm)
        told = await ask("erase", target="Xanadu", words=True, user="tester")
        assert told
        assert all("Xanadu" not in each for each in await mind.queries())
        assert len(await mind.queries()) == 1
        with snapshot(mind.uvm.image.journal_db) as root:
            assert record_chain.read_calls(root).find_faults() == []
        assert b"Xanadu" not in (tmp_path / "journal.fs").read_bytes()
