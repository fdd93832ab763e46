"""A program asks for a plan over the wire, edits it, and waits for the mission that follows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from batos.agency.records import look_up_records
from batos.agency.records.look_up_records import GrantTerms
from batos.cli.verbs.serve import open_server
from batos.client.clients import AsyncClient
from batos.config import Settings
from batos.image.roots import Root
from batos.protocol.errors import BriefError
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams


async def test_a_plan_is_edited_and_followed_over_the_wire(own_home: Path, tmp_path: Path) -> None:
    """`ask` ends as the mission waits; `approve` takes the lines of the program, and the server runs it at once."""
    bridge = ScriptedBridge.saying("It opens at nine.")
    (tmp_path / "pier.md").write_text("The pier of Maro opens at nine.\n")
    async with scripted_uvm(own_home, bridge, memory=False) as uvm:

        def grant(root: Root) -> None:
            told = "tester", "2026-12-01T09:00:00.000Z"
            look_up_records.add_look_up(root, "papers", "folder", str(tmp_path), GrantTerms(), told)

        await uvm.image.writer.apply(grant)
    settings = Settings(home=own_home, user="tester", bind="tcp://127.0.0.1:*", events="tcp://127.0.0.1:*")
    async with open_server(settings, Seams(bridge=bridge)), AsyncClient(own_home) as client:
        asks = "Look up when the pier of Maro opens."
        waits = await client.ask(asks, effort="reflex", user="tester", plan=True)
        assert waits["status"] == "waiting"
        asked = str((waits.get("reason") or {}).get("approval"))
        shown = await client.approvals(approval=asked)
        assert str(shown.get("source")).endswith('call papers.search_ {"query": "pier Maro opens"}')
        with pytest.raises(BriefError, match="line 2: there is no tool"):
            await client.approve(asked, plan="# mine\ncall papers.send_ {}")
        await client.approve(asked, plan='call papers.read_ {"address": "pier.md"}')
        done = await client.wait(waits["id"])
        assert (done["status"], [each["tool"] for each in done["provenance"]["tools"]]) == ("done", ["papers.read_"])
