"""Stub sites that speak the real formats: a Kiwix server, a MediaWiki, a SearXNG, pages and feeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qs, urlsplit

from tests.agency.look_ups.stub_web import Site, reply

PAGE = (
    "<html><head><title>Tides</title></head><body><nav>Home</nav><main><h1>Tides</h1>"
    "<p>The <b>tide</b> rises twice a day&nbsp;at Lowestoft.</p></main></body></html>"
)
RSS = """<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Harbour news</title>
<item><title>Tide tables are out</title><link>https://news.example/tides</link>
<pubDate>Mon, 23 Nov 2026 08:00:00 +0000</pubDate>
<description>&lt;p&gt;The &lt;i&gt;new&lt;/i&gt; tables.</description></item>
<item><title>A pier is closed</title><link>/pier</link><description>For repairs.</description></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Harbour news</title>
<entry><title>Tide tables are out</title><link rel="alternate" href="https://news.example/tides"/>
<updated>2026-11-23T08:00:00Z</updated><summary>The new tables.</summary></entry></feed>"""
KIWIX = "http://127.0.0.1:8090"
SEARXNG = "http://127.0.0.1:8888"


def page(body: str = PAGE, robots: str = "", **headers: str) -> Site:
    """A site of one page at every path."""

    def answer(target: str, asked: Mapping[str, str]) -> bytes:
        if target == "/robots.txt":
            return reply(robots, "text/plain") if robots else reply("", status="404 Not Found")
        if headers.get("ETag") and asked.get("if-none-match") == headers["ETag"]:
            return reply("", "", status="304 Not Modified")
        return reply(body, **headers)

    return answer


def feed(text: str = RSS, media: str = "application/rss+xml") -> Site:
    """A site of a feed, and of one page."""
    return lambda target, _: (
        reply("", status="404 Not Found") if target == "/robots.txt"
        else reply(text, media) if target == "/feed" else reply(PAGE)
    )  # fmt: skip


def kiwix(books: int = 1, *, indexed: bool = True) -> Site:
    """A Kiwix server, as libkiwix answers."""

    def answer(target: str, _: Mapping[str, str]) -> bytes:
        parts, asked = urlsplit(target), parse_qs(urlsplit(target).query)
        if parts.path == "/catalog/v2/entries":
            entries = "".join(f"<entry><name>book_{number}</name></entry>" for number in range(books))
            return reply(f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>', "application/atom+xml")
        if parts.path.startswith("/content/"):
            return reply(PAGE)
        if parts.path != "/search" or asked["format"] != ["xml"]:
            return reply("", status="404 Not Found")
        if books > 1 and "books.name" not in asked:
            return reply("Confusion of tongues", status="400 Bad Request")
        if not indexed:
            return reply("", status="404 Not Found")
        found = "tide" in asked["pattern"][0].lower()
        item = (
            "<item><title>Tides</title><link>/content/wikipedia_en/A/Tide</link>"
            "<description>the &lt;b&gt;tide&lt;/b&gt; rises...</description><wordCount>99</wordCount></item>"
        )
        count = f"<opensearch:totalResults>{int(found)}</opensearch:totalResults>"
        return reply(
            '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" '
            'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
            f"<channel><title>Search: tide</title>{count}{item if found else ''}</channel></rss>",
            "application/rss+xml; charset=utf-8",
        )

    return answer


def mediawiki(target: str, asked: Mapping[str, str]) -> bytes:
    """The programming interface of a MediaWiki."""
    parts, query = urlsplit(target), parse_qs(urlsplit(target).query)
    if parts.path == "/w/rest.php/v1/search/page":
        found = [
            {"id": 1, "key": "Tide_(sea)", "title": "Tide (sea)", "description": "Rise and fall",
             "excerpt": 'the <span class="searchmatch">tide</span> rises'}
        ]  # fmt: skip
        return reply(json.dumps({"pages": found if "tide" in query["q"][0].lower() else []}), "application/json")
    if parts.path == "/w/api.php" and query["titles"][0].replace("_", " ") == "Tide (sea)":
        found = [{"title": "Tide (sea)", "lastrevid": 42, "extract": "The tide rises twice a day at Lowestoft."}]
        return reply(json.dumps({"query": {"pages": found}}), "application/json")
    if parts.path == "/w/api.php":
        return reply(json.dumps({"query": {"pages": [{"title": "X", "missing": True}]}}), "application/json")
    return reply("", status="404 Not Found")


def searxng(target: str, asked: Mapping[str, str]) -> bytes:
    """A SearXNG that gives JSON."""
    query = parse_qs(urlsplit(target).query)
    hit = {
        "url": "https://harbour.example/tides", "title": "Tides", "content": "The tide rises", "engine": "mojeek",
        "publishedDate": "2026-11-12T00:00:00",
    }  # fmt: skip
    results = [hit, {"url": "javascript:alert(1)", "title": "x"}] if "tide" in query["q"][0].lower() else []
    return reply(
        json.dumps({"query": query["q"][0], "results": results, "unresponsive_engines": []}), "application/json"
    )
