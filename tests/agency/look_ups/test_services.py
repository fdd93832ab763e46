"""Every look-up keeps the laws, over stub servers that speak the real formats; and what each does besides."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.agency.look_ups import sites
from tests.agency.look_ups.look_up_laws import NOW, LookUpLaws, sha256
from tests.agency.look_ups.sites import KIWIX, PAGE, RSS, SEARXNG, page
from tests.agency.look_ups.stub_web import Site, StubWeb, reply, stub_web

from batos.agency.look_ups.feeds import PageLookUp, read_xml
from batos.agency.look_ups.folders import FolderLookUp, is_shown
from batos.agency.look_ups.look_up import LookUp
from batos.agency.look_ups.memories import MemoryLookUp
from batos.agency.look_ups.services import KiwixLookUp, SearxngLookUp, WikipediaLookUp
from batos.agency.look_ups.web_addresses import PublicGate, parse_address
from batos.agency.look_ups.web_reading import WebReader
from batos.memory.evidence import Passage
from batos.protocol.errors import LookUpFailed, Refused


def reader(web: StubWeb) -> WebReader:
    """A reader in a stub web."""
    return WebReader(web.fetcher(), lambda: NOW)


class TestKiwix(LookUpLaws):
    """An offline encyclopedia."""

    @pytest.fixture
    async def look_up(self) -> AsyncIterator[LookUp]:
        """A server on loopback."""
        async with stub_web({"127.0.0.1:8090": sites.kiwix()}) as web:
            yield KiwixLookUp(parse_address(KIWIX), reader(web), "wikipedia_en")

    async def test_a_library_of_several_books_wants_one_named(self) -> None:
        """The remedy names those that are there."""
        async with stub_web({"127.0.0.1:8090": sites.kiwix(2)}) as web:
            with pytest.raises(LookUpFailed, match="several languages") as told:
                await KiwixLookUp(parse_address(KIWIX), reader(web)).search("tide", 5)
            assert told.value.remedy.endswith("book_0, book_1")

    async def test_a_book_without_an_index_is_told(self) -> None:
        """As what it is, and not as nothing found."""
        async with stub_web({"127.0.0.1:8090": sites.kiwix(indexed=False)}) as web:
            with pytest.raises(LookUpFailed, match="no index"):
                await KiwixLookUp(parse_address(KIWIX), reader(web)).search("tide", 5)

    async def test_only_pages_of_books_are_fetched(self, look_up: LookUp) -> None:
        """Not what else the server has."""
        with pytest.raises(Refused, match="no page of a book"):
            await look_up.fetch(f"{KIWIX}/catalog/v2/entries")


class TestWikipedia(LookUpLaws):
    """A MediaWiki."""

    @pytest.fixture
    async def look_up(self) -> AsyncIterator[LookUp]:
        """The English Wikipedia."""
        async with stub_web({"en.wikipedia.org": sites.mediawiki}) as web:
            yield WikipediaLookUp(parse_address("http://en.wikipedia.org/"), reader(web))

    async def test_revision_and_licence_are_told(self, look_up: LookUp) -> None:
        """As its source."""
        document = await look_up.fetch((await look_up.search("tide", 1))[0].address)
        assert document.source == "en.wikipedia.org, revision 42, CC BY-SA 4.0"
        with pytest.raises(LookUpFailed, match="no article"):
            await look_up.fetch("http://en.wikipedia.org/wiki/Nothing")

    async def test_a_site_that_lags_is_told(self) -> None:
        """An error in a reply of 200."""
        told = json.dumps({"error": {"code": "maxlag", "info": "Waiting for a server: 6 seconds lagged"}})
        async with stub_web({"en.wikipedia.org": lambda *_: reply(told, "application/json")}) as web:
            with pytest.raises(LookUpFailed, match="lagged"):
                await WikipediaLookUp(parse_address("http://en.wikipedia.org"), reader(web)).fetch(
                    "http://en.wikipedia.org/wiki/Tide"
                )


class TestSearxng(LookUpLaws):
    """A SearXNG of one's own, and the page of its hit."""

    foreign = "file:///etc/passwd"

    @pytest.fixture
    async def look_up(self) -> AsyncIterator[LookUp]:
        """A server on loopback, and a site in the public internet."""
        web_sites: dict[str, Site] = {"127.0.0.1:8888": sites.searxng, "harbour.example": page()}
        async with stub_web(web_sites) as web:
            plain = web.connect

            async def connect(ip: str, port: int, name: str) -> object:
                return await plain(ip, port, "")

            web.connect = connect  # type: ignore[method-assign,assignment]
            yield SearxngLookUp(parse_address(SEARXNG), reader(web))

    @pytest.mark.parametrize(
        ("answer", "said", "remedy"),
        [
            (reply("no", status="403 Forbidden"), "refuses JSON", "settings.yml"),
            (reply("<html>", "text/html"), "in the place of JSON", "limiter"),
            (reply("{}", "application/json"), "in the place of JSON", "limiter"),
            (
                reply(json.dumps({"results": [], "unresponsive_engines": [["google", "CAPTCHA"]]}), "application/json"),
                "engines failed: google CAPTCHA",
                "captcha",
            ),
            (reply("", status="429 Too Many Requests", Retry_After="7"), "too many requests", "after 7 s"),
            (reply("{", "application/json"), "no JSON", ""),
        ],
    )
    async def test_its_failures_are_told_apart(self, answer: bytes, said: str, remedy: str) -> None:
        """HTML only, HTML in the place of JSON, engines that failed; none of them is nothing found."""
        async with stub_web({"127.0.0.1:8888": lambda *_: answer}) as web:
            with pytest.raises(LookUpFailed, match=said) as told:
                await SearxngLookUp(parse_address(SEARXNG), reader(web)).search("tide", 5)
            assert remedy in told.value.remedy


class TestPage(LookUpLaws):
    """A page at a known address."""

    @pytest.fixture
    async def look_up(self) -> AsyncIterator[LookUp]:
        """One page."""
        async with stub_web({"harbour.example": page()}) as web:
            yield PageLookUp(
                parse_address("http://harbour.example/tides"), PublicGate(["harbour.example"]), reader(web)
            )


class TestFeed(LookUpLaws):
    """A feed, whose entries are pages."""

    @pytest.fixture(
        params=[(RSS, "application/rss+xml"), (sites.ATOM, "application/atom+xml"), (sites.ATOM, "text/xml")]
    )
    async def look_up(self, request: pytest.FixtureRequest) -> AsyncIterator[LookUp]:
        """RSS and Atom."""
        text = request.param[0].replace("https://news.example", "http://harbour.example")
        async with stub_web({"harbour.example": sites.feed(text, request.param[1])}) as web:
            gate = PublicGate(["harbour.example"])
            yield PageLookUp(parse_address("http://harbour.example/feed"), gate, reader(web))

    async def test_entries_are_listed_with_their_dates(self, look_up: PageLookUp) -> None:
        """As the feed has them."""
        found = await look_up.list("", 20)
        assert (found[0].title, found[0].date, found[0].source) == ("Tide tables are out", "2026-11-23", "Harbour news")


class TestFolder(LookUpLaws):
    """A granted folder."""

    @pytest.fixture
    async def look_up(self, tmp_path: Path) -> LookUp:
        """A folder with what may be read and what may not."""
        folder = tmp_path / "granted"
        for name in ("notes", ".ssh", "notes/.git"):
            (folder / name).mkdir(parents=True)
        (tmp_path / "outside.txt").write_text("The tide is a secret.")
        for name, text in {
            "notes/tides.md": "The tide rises twice a day at Lowestoft.", ".hidden": "tide", ".ssh/config": "tide",
            "id_rsa": "tide", "server.pem": "tide", "notes/passwords.txt": "tide", "notes/.git/config": "tide",
            "key.txt": "-----BEGIN OPENSSH PRIVATE KEY-----\ntide", "other.txt": "Nothing of the sea.",
        }.items():  # fmt: skip
            (folder / name).write_text(text)
        (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
        (folder / "away").symlink_to(tmp_path)
        return FolderLookUp(folder, lambda: NOW)

    async def test_nothing_hidden_no_key_and_nothing_outside_is_shown(
        self, look_up: FolderLookUp, tmp_path: Path
    ) -> None:
        """Neither found, nor listed, nor read."""
        assert [each.address for each in await look_up.list("", 20)] == ["key.txt", "other.txt", "notes/tides.md"]
        assert [each.address for each in await look_up.list("notes", 20)] == ["notes/tides.md"]
        assert [each.address for each in await look_up.search("tide secret", 20)] == ["notes/tides.md"]
        hidden = [
            ".hidden",
            ".ssh/config",
            "id_rsa",
            "server.pem",
            "notes/passwords.txt",
            "key.txt",
            "notes/.git/config",
        ]
        outside = [
            "link.txt",
            "away/outside.txt",
            "../outside.txt",
            "notes/../../outside.txt",
            str(tmp_path / "outside.txt"),
        ]
        for path in (*hidden, *outside, "", "notes", "notes//tides.md"):
            with pytest.raises((Refused, LookUpFailed)):
                await look_up.fetch(path)

    async def test_a_pipe_does_not_hold_it_up(self, look_up: FolderLookUp) -> None:
        """It is no plain file."""
        os.mkfifo(look_up.folder / "pipe.txt")
        with pytest.raises(Refused, match="no plain file"):
            await look_up.fetch("pipe.txt")


class TestMemory(LookUpLaws):
    """What the user has given to remember."""

    foreign = "d-2"

    @pytest.fixture
    async def look_up(self) -> LookUp:
        """One document in two passages."""
        text = "The tide rises twice a day at Lowestoft."
        passages = [Passage(each, "tides.md", sha256(text), 0, text, document="d-1") for each in (1, 2)]

        async def find(query: str) -> list[Passage]:
            return passages if "tide" in query else []

        return MemoryLookUp(find, lambda name: text if name == "d-1" else None, lambda: NOW)


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    """It is asked by what the site said of it, and has the new time."""
    async with stub_web({"harbour.example": page(ETag='"7"')}) as web:
        look_up = PageLookUp(parse_address("http://harbour.example/"), PublicGate(), reader(web))
        first = await look_up.fetch("")
        again = await look_up.fetch("", first)
        assert (first.etag, again.text) == ('"7"', first.text)
        assert web.headers[-1]["if-none-match"] == '"7"'
        assert web.asked == ["harbour.example/robots.txt", "harbour.example/", "harbour.example/"]


async def test_rules_of_a_site_are_kept_unless_a_person_says_so() -> None:
    """They are read once a day; those that cannot be read forbid everything."""
    rules = "User-agent: *\nDisallow: /private"
    async with stub_web(
        {"harbour.example": page(robots=rules), "ill.example": lambda *_: reply("", status="500 No")}
    ) as web:
        look_up = PageLookUp(None, PublicGate(), reader(web))
        assert (await look_up.fetch("http://harbour.example/open")).text
        with pytest.raises(Refused, match="asks programs not to read"):
            await look_up.fetch("http://harbour.example/private/x")
        assert (await look_up.fetch("http://harbour.example/private/x", despite_rules=True)).text
        assert web.asked.count("harbour.example/robots.txt") == 1
        with pytest.raises(Refused, match="asks programs"):
            await look_up.fetch("http://ill.example/")


@pytest.mark.parametrize(
    ("body", "media", "text"),
    [
        ("grün".encode("latin-1"), "text/plain; charset=iso-8859-1", "grün"),
        ("grün".encode(), "text/plain", "grün"),
        ("\ufeffgrün".encode("utf-16"), "text/plain", "grün"),
        ('<meta charset="iso-8859-1"><p>grün'.encode("latin-1"), "text/html", "grün"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
    ],
)
async def test_charsets_are_read_by_header_mark_and_the_page_itself(body: bytes, media: str, text: str) -> None:
    """In that order."""
    async with stub_web({"harbour.example": lambda target, _: reply(body if target == "/" else "", media)}) as web:
        look_up = PageLookUp(parse_address("http://harbour.example/"), PublicGate(), reader(web))
        assert (await look_up.fetch("")).text.strip() == text


@pytest.mark.parametrize("media", ["image/png", "application/octet-stream", "", "video/mp4"])
async def test_what_is_no_text_is_not_read(media: str) -> None:
    """Its kind is told."""
    async with stub_web({"harbour.example": lambda target, _: reply(b"x" if target == "/" else b"", media)}) as web:
        with pytest.raises(LookUpFailed, match="not read"):
            await PageLookUp(None, PublicGate(), reader(web)).fetch("http://harbour.example/")


@pytest.mark.parametrize("text", ["<a>", "no xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', ""])
def test_xml_that_is_damaged_or_a_bomb_is_refused(text: str) -> None:
    """Before its entities are looked at."""
    with pytest.raises(LookUpFailed):
        read_xml(text)


@pytest.mark.parametrize(
    ("path", "shown"),
    [("a/b.md", True), ("tokens.md", True), (".a", False), ("a/.b/c", False), ("a\nb", False), ("x.kdbx", False),
     ("aws_credentials", False), ("my.key", False), ("keyboard.md", True), ("a/../b", False)],
)  # fmt: skip
def test_names_that_are_shown(path: str, shown: bool) -> None:
    """No hidden name, and none of keys."""
    assert is_shown(path) is shown


def test_stub_pages_are_what_they_are() -> None:
    """The page of the stubs has its quote across a tag and an entity, or the laws would prove less."""
    assert "<b>tide</b> rises" in PAGE
    answers: Mapping[str, str] = {}
    assert b"200 OK" in page()("/", answers)
