"""Missions that look up by grants: what is reached, how often, by whom, and what is written down of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.agency.look_ups import sites
from tests.agency.look_ups.sites import page
from tests.agency.look_ups.stub_web import Site, StubWeb, stub_web
from tests.history.test_as_of_past_questions import Door

from batos.agency.look_ups.granted import LookingMission
from batos.agency.look_ups.look_up_tools import LookUpTools
from batos.image.transactions import snapshot
from batos.inference.journal import MISSIONS
from batos.inference.outside_calls import OutsideCalls
from batos.inference.session import Session
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import BatosError, BriefError, Refused
from batos.testing import scripted_uvm
from batos.uvm import UVM, Seams

SITES: Mapping[str, Site] = {
    "en.wikipedia.org": sites.mediawiki, "harbour.example": page(ETag='"7"'), "127.0.0.1:8888": sites.searxng,
    "127.0.0.1:8090": sites.kiwix(),
}  # fmt: skip
TIDE = "http://en.wikipedia.org/wiki/Tide_%28sea%29"


@dataclass
class Looking:
    """A mind in a stub web, with a clock that a test moves."""

    web: StubWeb
    uvm: UVM
    ask: Door
    now: list[datetime]
    stack: ExitStack

    async def grant(self, kind: str, target: str, **terms: Any) -> dict[str, Any]:
        """A grant of the user `tester`."""
        return dict((await self.ask("grants_add", kind=kind, target=target, user="tester", **terms))["grant"])

    async def send(self, grant: str, selector: str, *arguments: Any, **fields: Any) -> dict[str, Any]:
        """A mission that is one message to a capability."""
        message = {"receiver": grant, "selector": selector, "arguments": list(arguments)}
        return dict(await self.uvm.missions.ask({"message": message, "user": "tester", **fields}))

    async def found(self, *sent: Any, **fields: Any) -> Any:
        """What a message brought."""
        return (await self.send(*sent, **fields))["provenance"]["message"]["result"]

    async def queries(self) -> list[str]:
        """What was asked of the world, the oldest first."""
        return [each["what"] for each in reversed((await self.ask("grants_queries"))["queries"])]

    def tools(self, text: str, user: str = "tester", door: str = "cli") -> LookUpTools:
        """The tools of a question, as a cycle has them."""
        brief = MissionBrief.model_validate({"text": text, "user": user, "origin": {"door": door}})
        look_ups = self.uvm.readiness._ready.runner.look_ups  # type: ignore[union-attr]
        assert look_ups is not None
        runner = self.uvm.readiness._ready.runner  # type: ignore[union-attr]
        session = Session("m-tools", self.uvm.journal, runner.bridge, {}, runner.limits, self.uvm.events)
        root = self.stack.enter_context(self.uvm.image.snapshot())
        return LookUpTools(LookingMission(root, brief, OutsideCalls(session, ("m-tools",))), look_ups)


@asynccontextmanager
async def looking(home: Path, web_sites: Mapping[str, Site] = SITES, **settings: Any) -> AsyncIterator[Looking]:
    """A mind that looks up in these sites."""
    now = [datetime(2026, 11, 30, 9, tzinfo=UTC)]
    async with stub_web(web_sites) as web:
        plain = web.connect

        async def connect(ip: str, port: int, name: str) -> Any:
            return await plain(ip, port, "")

        web.connect = connect  # type: ignore[method-assign]
        seams = Seams(fetcher=web.fetcher(), clock=lambda: now[0])
        async with scripted_uvm(home, seams=seams, **settings) as uvm:
            with ExitStack() as stack:
                yield Looking(web, uvm, Door(uvm), now, stack)


async def test_a_person_looks_up_by_a_message(tmp_path: Path) -> None:
    """It runs at once, without --grant; what came is external, and is what the site has."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        told = await mind.send("wiki", "search_", "tide at sea")
        (hit,) = told["provenance"]["message"]["result"]["hits"]
        assert (hit["title"], hit["address"]) == ("Tide (sea)", TIDE)
        assert told["trust"]["lineage"] == "external"
        document = await mind.found("wiki", "fetch_", TIDE)
        assert document["text"] == "The tide rises twice a day at Lowestoft."
        assert "page" not in document
        assert await mind.queries() == ["tide at sea", TIDE]


async def test_retry_dream_and_replay_fetch_nothing(tmp_path: Path) -> None:
    """They have the recorded result; a dream that asks for something new is refused."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        first = await mind.send("wiki", "search_", "tide")
        asked = list(mind.web.asked)
        again = await mind.send("wiki", "search_", "tide", ancestor=first["id"])
        assert again["provenance"]["message"]["result"] == first["provenance"]["message"]["result"]
        message = {"receiver": "wiki", "selector": "search_", "arguments": ["moon"]}
        dream = await mind.ask("dream_new", brief={"message": message, "user": "tester"}, follow=True)
        assert dream["status"] == "failed"
        assert "reaches nothing outside" in dream["reason"]["message"]
        assert mind.web.asked == asked
        assert await mind.queries() == ["tide"]


async def test_the_page_is_kept_as_it_was_and_why_tells_of_it(tmp_path: Path) -> None:
    """In the journal, with the calls of the mission."""
    async with looking(tmp_path) as mind:
        await mind.grant("fetch", "http://harbour.example/", name="harbour")
        told = await mind.send("harbour", "fetch_", "http://harbour.example/tides")
        with snapshot(mind.uvm.image.journal_db) as root:
            (record,) = [each.record() for each in root[MISSIONS][told["id"]].entries]
        assert record.response is not None
        assert record.response["value"]["document"]["page"] == sites.PAGE
        assert (record.state, record.path) == ("done", "harbour/fetch#0")
        because = (await mind.ask("why", what=told["id"]))["because"]
        (node,) = [each for each in because if each["kind"] == "outside"]
        assert "http://harbour.example/tides" in node["text"]
        assert node["because"][0]["text"].startswith("Tides, read 2026-11-30T09:00:00.000Z")


async def test_rate_budget_and_end_of_a_grant_are_kept(tmp_path: Path) -> None:
    """Each is told in words that name the field; the next minute, the next day are free again."""
    async with looking(tmp_path) as mind:
        until = "2026-12-02T00:00:00Z"
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki", rate=2, budget=3, until=until)
        for _ in range(2):
            await mind.send("wiki", "search_", "tide")
        with pytest.raises(BatosError, match="allows 2 calls a minute"):
            await mind.send("wiki", "search_", "tide")
        mind.now[0] += timedelta(minutes=1, seconds=1)
        await mind.send("wiki", "search_", "tide")
        mind.now[0] += timedelta(minutes=2)
        with pytest.raises(BatosError, match="allows 3 calls a day"):
            await mind.send("wiki", "search_", "tide")
        shown = (await mind.ask("grants_show", name="wiki"))["grant"]
        assert (shown["today"], len(shown["queries"])) == (3, 3)
        mind.now[0] = datetime(2026, 12, 1, 1, tzinfo=UTC)
        await mind.send("wiki", "search_", "tide")
        mind.now[0] = datetime(2026, 12, 2, tzinfo=UTC)
        with pytest.raises(BatosError, match="ended at 2026-12-02"):
            await mind.send("wiki", "search_", "tide")
        assert len(mind.web.asked) == 4


async def test_what_is_revoked_reaches_nothing(tmp_path: Path) -> None:
    """Its object is gone from the names."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        await mind.ask("grants_revoke", name="wiki")
        with pytest.raises(BatosError, match="there is no object"):
            await mind.send("wiki", "search_", "tide")
        assert mind.web.asked == []
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        tools = mind.tools("tide?")
        await mind.ask("grants_revoke", name="wiki")
        with pytest.raises(Refused, match="revoked meanwhile"):
            await tools.call("wiki.search_", {"query": "tide"}, "babs/tools#0")


async def test_a_guest_reaches_only_what_is_granted_to_guests(tmp_path: Path) -> None:
    """By a message, and as tools."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        await mind.grant("kiwix", sites.KIWIX, name="books", book="x", guests=True)
        with pytest.raises(BatosError, match="there is no object"):
            await mind.send("wiki", "search_", "tide", user="key laptop")
        assert (await mind.found("books", "search_", "tide", user="key laptop"))["hits"]
        assert [each.name for each in mind.tools("tides?", "key laptop").tools()] == ["books.fetch_", "books.search_"]
        with pytest.raises(BatosError):
            await mind.send("books", "search_", "tide", user="another")
        assert mind.web.asked == ["127.0.0.1:8090/search?pattern=tide&format=xml&start=0&pageLength=5&books.name=x"]


async def test_schedules_reach_only_what_is_for_them(tmp_path: Path) -> None:
    """A grant says --unattended."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        await mind.grant("kiwix", sites.KIWIX, name="books", book="x", unattended=True)
        assert {each.name for each in mind.tools("tides?", door="schedule").tools()} == {
            "books.fetch_",
            "books.search_",
        }
        assert len(mind.tools("tides?").tools()) == 4


async def test_tools_search_and_fetch(tmp_path: Path) -> None:
    """A hit is told as one; its address is fetched; what fails is a line; an unknown tool is refused."""
    async with looking(tmp_path) as mind:
        await mind.grant("wikipedia", "http://en.wikipedia.org/", name="wiki")
        tools = mind.tools("What is the tide at sea?")
        (search,) = [each for each in tools.tools() if each.name == "wiki.search_"]
        assert (search.kind, search.reads, search.local) == ("look_up", True, False)
        assert search.parameters["required"] == ["query"]
        (hit,) = (await tools.call("wiki.search_", {"query": "tide sea"}, "babs/tools#0")).texts
        assert (hit.is_hit, hit.source, hit.trust) == (True, TIDE, "external")
        (text,) = (await tools.call("wiki.fetch_", {"address": hit.source}, "babs/tools#1")).texts
        assert (text.text, text.is_hit) == ("The tide rises twice a day at Lowestoft.", False)
        assert text.source.startswith(TIDE)
        nothing = await tools.call("wiki.search_", {"query": "what"}, "babs/tools#2")
        assert (nothing.texts, nothing.failure) == ([], "wiki found nothing for 'what'")
        missing = await tools.call("wiki.fetch_", {"address": "http://en.wikipedia.org/wiki/What"}, "babs/tools#3")
        assert "no article" in missing.failure
        with pytest.raises(Refused):
            await tools.call("wiki.post_", {}, "babs/tools#4")


async def test_nothing_leaves_that_the_person_did_not_say(tmp_path: Path) -> None:
    """Words of memory, of files and of pages are refused; the question's own, and addresses of hits, are not."""
    async with looking(tmp_path) as mind:
        await mind.grant("searxng", sites.SEARXNG, name="web")
        await mind.grant("fetch", "any", name="page")
        await mind.grant("kiwix", sites.KIWIX, name="books", book="x")
        tools = mind.tools("What does the tide do at Lowestoft?")
        for number, (name, given) in enumerate(
            [
                ("web.search_", {"query": "tide hunter2"}),
                ("page.fetch_", {"address": "http://harbour.example/?q=hunter2"}),
                ("page.fetch_", {"address": "http://hunter2.harbour.example/"}),
                ("page.fetch_", {"address": "http://harbour.example/hunter2/tides"}),
            ]
        ):
            with pytest.raises(Refused, match=r"not of your question: .*hunter2|not of your question: harbour"):
                await tools.call(name, given, f"babs/tools#{number}")
        assert mind.web.asked == []
        assert mind.web.resolved == []
        (hit,) = (await tools.call("web.search_", {"query": "tides lowestoft"}, "babs/tools#7")).texts
        assert (await tools.call("web.fetch_", {"address": hit.source}, "babs/tools#8")).texts
        # What stays on this machine may have any words.
        assert (await tools.call("books.search_", {"query": "tide hunter2"}, "babs/tools#9")).texts
        with pytest.raises(Refused, match="not of your question"):
            await mind.tools("Recall hunter2", door="kernel").call("web.search_", {"query": "hunter2"}, "x#0")
        assert await mind.queries() == ["tides lowestoft", "https://harbour.example/tides", "tide hunter2"]


async def test_a_page_is_asked_for_again_after_a_day_or_where_the_latest_is_wanted(tmp_path: Path) -> None:
    """Within a day the copy of the journal is read, with its age; an erased one is fetched anew."""
    async with looking(tmp_path) as mind:
        await mind.grant("fetch", "http://harbour.example/", name="harbour")
        address = "http://harbour.example/"

        async def fetch(text: str, path: str) -> str:
            (found,) = (await mind.tools(text).call("harbour.fetch_", {"address": address}, path)).texts
            return found.at

        assert await fetch("harbour?", "a#0") == "2026-11-30T09:00:00.000Z"
        mind.now[0] += timedelta(hours=2)
        assert await fetch("harbour?", "b#0") == "2026-11-30T09:00:00.000Z"
        assert await fetch("The latest harbour?", "c#0") == "2026-11-30T11:00:00.000Z"
        mind.now[0] += timedelta(days=2)
        assert await fetch("harbour?", "d#0") == "2026-12-02T11:00:00.000Z"
        pages = [each for each in mind.web.asked if not each.endswith("robots.txt")]
        assert len(pages) == 3
        assert [("if-none-match" in each) for each in mind.web.headers].count(True) == 2
        await mind.uvm.image.journal_writer.apply(lambda root: root[MISSIONS]["m-tools"].erase_words())
        assert await fetch("harbour?", "e#0") == "2026-12-02T11:00:00.000Z"
        assert len([each for each in mind.web.asked if not each.endswith("robots.txt")]) == 4


async def test_a_folder_is_read(tmp_path: Path) -> None:
    """Its files are listed, searched and read; the home is no folder to grant."""
    folder = tmp_path / "granted"
    folder.mkdir()
    (folder / "tides.md").write_text("The tide rises twice a day.")
    async with looking(tmp_path / "home") as mind:
        await mind.grant("folder", str(folder), name="papers")
        assert [each["address"] for each in (await mind.found("papers", "list_", ""))["hits"]] == ["tides.md"]
        assert (await mind.found("papers", "search_", "tide"))["hits"][0][
            "snippet"
        ] == "tides.md The tide rises twice a day."
        assert (await mind.found("papers", "read_", "tides.md"))["text"] == "The tide rises twice a day."
        with pytest.raises(BatosError, match="hidden, a key, or no plain path"):
            await mind.send("papers", "read_", "../home/token")
        with pytest.raises(Refused, match="the home"):
            await mind.grant("folder", str(tmp_path / "home"))


async def test_memory_is_searched(tmp_path: Path) -> None:
    """What the user remembers is found and read; nothing of it is in the ledger."""
    async with looking(tmp_path) as mind:
        sent = {"text": "The tide rises twice a day at Lowestoft.", "title": "Tides", "user": "tester"}
        await mind.ask("remember", **sent)
        await mind.grant("search", "memory")
        (hit,) = (await mind.found("my_memory", "search_", "tide Lowestoft"))["hits"]
        assert "tide" in hit["snippet"]
        assert "twice a day" in (await mind.found("my_memory", "fetch_", hit["address"]))["text"]
        assert await mind.queries() == []


@pytest.mark.parametrize(
    ("kind", "target", "terms", "field"),
    [
        ("search", "web", {}, "args.target"),
        ("fetch", "http://127.0.0.1:9/", {}, "args.target"),
        ("fetch", "ftp://example.org", {}, "args.target"),
        ("fetch", "any", {"hosts": ["a b"]}, "args.hosts"),
        ("kiwix", sites.KIWIX, {"hosts": ["example.org"]}, "args.hosts"),
        ("searxng", sites.SEARXNG, {"book": "x"}, "args.book"),
        ("file", "/tmp", {"budget": 3}, "args.budget"),
        ("wikipedia", "en", {"blind": True}, "args.blind"),
        ("kiwix", "http://127.0.0.1:11434/", {}, "args.target"),
    ],
)  # fmt: skip
async def test_what_cannot_be_granted_is_told(
    tmp_path: Path, kind: str, target: str, terms: Mapping[str, Any], field: str
) -> None:
    """With the field and the remedy."""
    async with looking(tmp_path) as mind:
        with pytest.raises((BriefError, Refused)) as told:
            await mind.grant(kind, target, **terms)
        assert (told.value.field, bool(told.value.remedy)) == (field, True)


async def test_names_are_made_of_targets(tmp_path: Path) -> None:
    """As a person would call them."""
    async with looking(tmp_path) as mind:
        named = [
            (await mind.grant(kind, target))["name"]
            for kind, target in (
                ("wikipedia", "de"), ("fetch", "any"), ("fetch", "docs.python.org/3/"), ("kiwix", sites.KIWIX),
                ("searxng", sites.SEARXNG), ("search", "memory"),
            )
        ]  # fmt: skip
        assert named == ["de_wikipedia_org", "web", "docs_python_org", "kiwix", "searxng", "my_memory"]
        grants = {each["name"]: each for each in (await mind.ask("grants"))["grants"]}
        assert grants["docs_python_org"]["target"] == "https://docs.python.org/3/"
        assert grants["de_wikipedia_org"]["selectors"] == ["search_", "fetch_"]
        with mind.uvm.image.snapshot() as root:
            assert own_slots(root["grants"]["kiwix"])["kind"] == "kiwix"
