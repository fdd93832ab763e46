"""An erasure reaches what look-ups brought, and what was asked of the world."""

from __future__ import annotations

from pathlib import Path

from tests.agency.look_ups.test_granted import looking
from tests.history.test_as_of_past_questions import Door

from batos.care.verification import find_faults
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


async def test_words_go_from_a_described_api_and_from_plans(tmp_path: Path) -> None:
    """From the grant, the object that it declares, its methods, and a plan that was approved; the mind stays sound."""
    (tmp_path / "tides.md").write_text(
        "GET /tide?city=NAME gives the tide of a city of Xanadu.\n\n"
        '`GET /tide?city=Brest` answers {"city": "Brest", "height": 4.2}\n'
    )
    async with looking(tmp_path, memory=False, install="now") as mind:
        await mind.grant("api", "http://127.0.0.1:9/", name="tides", description=str(tmp_path / "tides.md"))
        brief = {"text": 'How high is the tide in "Brest"?', "effort": "reflex", "user": "tester"}
        await mind.uvm.missions.ask(brief)
        waits = await mind.uvm.missions.ask({**brief, "plan": True})
        reason = waits["reason"]
        assert reason is not None
        plan = '# Xanadu\ncall tides.tide_ {"city": "Xanadu"}'
        await mind.ask("approve", approvals=[reason["approval"]], plan=plan)
        await mind.uvm.missions.run(waits["id"])
        assert await mind.ask("erase", target="Xanadu", words=True, user="tester")
        assert find_faults(mind.uvm.image.db) == []
        shown = await mind.ask("approvals", approval=reason["approval"])
        assert "Xanadu" not in str(shown)
        assert (await mind.uvm.missions.ask(brief))["status"] == "done"
        for name in ("live_image.fs", "journal.fs"):
            assert b"Xanadu" not in (tmp_path / name).read_bytes()
