"""Missions use the tools that they were given: a toolbox over a folder of notes, and one whose calls fail."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.minds.scripted import LAMP, Script
from tests.minds.tool_boxes import AT, SITE, FolderTools

from batos.agency.records import look_up_records
from batos.agency.records.look_up_records import GrantTerms
from batos.agency.toolbox import JoinedTools, Toolbox
from batos.events import Events
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams


@dataclass
class Giver:
    """Gives every mission the same toolbox; knows the events that were told."""

    toolbox: Toolbox | None
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def answering(text: str, pick: str = "none") -> ScriptedBridge:
    """A model that answers with a text, picks a tool where it is asked to, and divides as the script does."""
    script = Script()

    def answer(request: ChatRequest) -> str | BatosError:
        if request.schema is not None and "pick" in request.schema["properties"]:
            return json.dumps({"pick": pick})
        return script(request) if request.schema is not None else text

    return ScriptedBridge(answer)


@asynccontextmanager
async def mind_with(tmp_path: Path, giver: Giver, bridge: ScriptedBridge) -> AsyncIterator[UVM]:
    """A mind whose missions have the giver's tools."""
    events = Events(lambda name, keys: giver.told.append((name, dict(keys))), log=False)
    seams = Seams(tools=(lambda context: giver.toolbox,))
    async with scripted_uvm(tmp_path / "home", bridge, events=events, seams=seams) as uvm:
        yield uvm


BUILT = "Look up who built the tower of Skagen."


async def test_a_reflex_searches_fetches_and_cites(tmp_path: Path, pages: FolderTools) -> None:
    """The fetched text is evidence and cited with its address and trust; the snippet is not."""
    giver = Giver(pages)
    async with mind_with(tmp_path, giver, answering("The tower of Skagen was built by Jens Holm in 1887.")) as uvm:
        shown = await uvm.missions.ask({"text": BUILT, "effort": "reflex"})
    assert [name for name, _, _ in pages.made] == ["pages.search_", "pages.fetch_"]
    assert pages.made[0][1] == {"query": "built tower Skagen"}
    recalled = [(each.get("source"), each["trust"]) for each in shown["provenance"]["recalled"]]
    assert recalled == [(f"{SITE}tower-old.txt", "external")]
    assert shown["provenance"]["citations"][0]["quote"] == "The tower of Skagen was built by Jens Holm in 1887."
    assert [each["tool"] for each in shown["provenance"]["tools"]] == ["pages.search_", "pages.fetch_"]
    assert [keys["tool"] for name, keys in giver.told if name == "mission.tool"] == ["pages.search_", "pages.fetch_"]


async def test_pages_with_one_text_are_one(tmp_path: Path, pages: FolderTools) -> None:
    """Of pages with the same text one is evidence; no more than three are fetched of a search."""
    for number in range(5):
        (pages.folder / f"copy{number}.txt").write_text("The quay of Skagen is long.", encoding="utf-8")
    async with mind_with(tmp_path, Giver(pages), answering("It is long.")) as uvm:
        shown = await uvm.missions.ask({"text": "Look up the quay of Skagen and who paid it.", "effort": "reflex"})
    fetched = [arguments["address"] for name, arguments, _ in pages.made if name == "pages.fetch_"]
    assert len(fetched) == 3
    assert len(shown["provenance"]["recalled"]) == 1


async def test_a_mission_that_is_run_again_calls_under_the_same_paths(tmp_path: Path, pages: FolderTools) -> None:
    """The paths of calls are their places in the cycle, so that a journal finds each again."""
    async with mind_with(tmp_path, Giver(pages), answering("Jens Holm built the tower of Skagen.")) as uvm:
        first = await uvm.missions.ask({"text": BUILT, "effort": "reflex"})
        before = list(pages.made)
        await uvm.missions.ask({"text": BUILT, "effort": "reflex", "ancestor": first["id"]})
    assert pages.made == [*before, *before]
    assert len({path for _, _, path in before}) == len(before)


async def test_what_evidence_carries_is_not_looked_up(tmp_path: Path, pages: FolderTools) -> None:
    """A question that a file of the mission answers calls nothing, nor does a text that is to be written."""
    async with mind_with(tmp_path, Giver(pages), answering("The keeper winds the clockwork.")) as uvm:
        await uvm.missions.ask({"text": "How does the keeper wind the clockwork?", "effort": "reflex"}, [LAMP])
        await uvm.missions.ask({"text": "Write a poem about the tower of Skagen.", "effort": "reflex"})
    assert pages.made == []


async def test_a_failure_is_told_and_is_no_evidence(tmp_path: Path, pages: FolderTools) -> None:
    """A tool that fails is told of in one sentence before the answer; nothing of it is evidence."""
    pages.fails = "the server answered 503"
    async with mind_with(tmp_path, Giver(pages), answering("I do not know.")) as uvm:
        shown = await uvm.missions.ask({"text": BUILT, "effort": "reflex"})
    said = "pages.search_ failed, so nothing came of it: the server answered 503"
    assert shown["answer"] == f"{said}\n\nI do not know."
    assert shown["provenance"]["about_tools"] == said
    assert shown["provenance"]["recalled"] == []
    assert [each["failure"] for each in shown["provenance"]["tools"]] == ["the server answered 503"]


async def test_a_hit_that_nothing_takes_fails_no_mission(tmp_path: Path, pages: FolderTools) -> None:
    """A hit whose address is beyond all bounds is a failure of its fetch, and the question is answered all the same."""
    pages.hit = f"{SITE}{'x' * 5_000}"
    async with mind_with(tmp_path, Giver(pages), answering("I do not know.")) as uvm:
        shown = await uvm.missions.ask({"text": BUILT, "effort": "reflex"})
    assert [(each["tool"], bool(each["failure"])) for each in shown["provenance"]["tools"]] == [
        ("pages.search_", False),
        ("pages.fetch_", True),
    ]
    assert shown["answer"].endswith("I do not know.")


async def test_orders_of_a_page_are_only_quoted(tmp_path: Path, pages: FolderTools) -> None:
    """A page that gives orders is evidence within its fence; no effect comes of it, and no other tool is called."""
    bridge = answering("The ferry to Laeso leaves at 07:40.")
    async with mind_with(tmp_path, Giver(pages), bridge) as uvm:
        shown = await uvm.missions.ask({"text": "Look up when the ferry to Laeso leaves.", "effort": "reflex"})
    assert {name for name, _, _ in pages.made} == {"pages.search_", "pages.fetch_"}
    assert shown["provenance"]["citations"][0]["quote"].startswith("The ferry to Laeso leaves at 07:40")


async def test_the_seeker_without_tools_says_so(tmp_path: Path) -> None:
    """BABS, asked to look something up with nothing granted, says so in one sentence of the question's language."""
    async with mind_with(tmp_path, Giver(None), answering("Jens Holm.")) as uvm:
        shown = await uvm.missions.ask({"text": BUILT, "effort": "reflex", "persona": "BABS"})
        german = await uvm.missions.ask(
            {"text": "Schlag bitte nach, wer den Turm von Skagen gebaut hat.", "effort": "reflex", "persona": "BABS"}
        )
        other = await uvm.missions.ask({"text": "Write me a poem.", "effort": "reflex", "persona": "BABS"})
    assert shown["answer"].startswith("No look-up is granted, so nothing was looked up")
    assert german["answer"].startswith("Kein Nachschlagen ist gewährt")
    assert "granted" not in other["answer"]


async def test_a_cycle_looks_up_its_sub_questions(tmp_path: Path, pages: FolderTools) -> None:
    """In a cycle the question is looked up, and an equal call of a sub-question is answered from the first."""
    async with mind_with(tmp_path, Giver(pages), answering("Jens Holm built the tower of Skagen in 1887.")) as uvm:
        shown = await uvm.missions.ask({"text": BUILT, "effort": "cycle", "persona": "BABS"})
    made = [(name, json.dumps(arguments)) for name, arguments, _ in pages.made]
    assert len(set(made)) == len(made)
    assert shown["provenance"]["tools"][0]["tool"] == "pages.search_"


async def test_joined_toolboxes(pages: FolderTools, tmp_path: Path) -> None:
    """Tools of several boxes stand in the order of their names; a name that none has is refused."""
    joined = JoinedTools([pages, FolderTools(tmp_path)])
    assert [each.name for each in joined.tools()] == ["pages.fetch_", "pages.search_"]
    await joined.call("pages.search_", {"query": "tower"}, "babs/tools/0/1")
    assert [name for name, _, _ in pages.made] == ["pages.search_"]
    with pytest.raises(Refused):
        await joined.call("pages.delete_", {}, "babs/tools/0/2")


async def test_a_granted_folder_is_looked_up_and_cited(tmp_path: Path, pages: FolderTools) -> None:
    """A look-up by a grant is a tool of every mission of its user: the file that a search finds is read and cited."""
    bridge = answering("The tower of Skagen was built by Jens Holm in 1887.")
    async with mind_with(tmp_path, Giver(None), bridge) as uvm:
        told = uvm.settings.user, AT

        def grant(root: Root) -> None:
            look_up_records.add_look_up(root, "harbour", "folder", str(pages.folder), GrantTerms(), told)

        await uvm.image.writer.apply(grant)
        shown = await uvm.missions.ask({"text": BUILT, "effort": "reflex", "user": uvm.settings.user})
    assert [each["tool"] for each in shown["provenance"]["tools"]] == ["harbour.search_", "harbour.read_"]
    assert shown["provenance"]["citations"][0]["quote"] == "The tower of Skagen was built by Jens Holm in 1887."
    assert {each["trust"] for each in shown["provenance"]["recalled"]} == {"external"}
