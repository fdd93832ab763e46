"""Look-ups by services: a Kiwix server, the programming interface of a MediaWiki, and an own SearXNG."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from batos.agency.look_ups.feeds import child, plain_text, read_xml
from batos.agency.look_ups.look_up import Hit
from batos.agency.look_ups.page_fetching import FetchedPage
from batos.agency.look_ups.web_addresses import (
    AddressGate,
    PublicGate,
    ServiceGate,
    WebAddress,
    is_below,
    parse_address,
)
from batos.agency.look_ups.web_documents import Document, json_of, read_document
from batos.agency.look_ups.web_reading import WebReader, check_status
from batos.image.ids import iso
from batos.memory.reading.read_text import one_line
from batos.protocol.errors import LookUpFailed, Refused

_JSON: Final = ("application/json",)
#: The most engines that a failure names.
_NAMED: Final = 5


def _below(base: WebAddress, path: str, query: Mapping[str, object] | None = None) -> WebAddress:
    return base.at(f"{base.path.rstrip('/')}{path}" + (f"?{urlencode(query, quote_via=quote)}" if query else ""))


@dataclass(frozen=True, slots=True)
class KiwixLookUp:
    """A Kiwix server of one's own: Wikipedia and other books without a network; `book` is one of its library."""

    base: WebAddress
    reader: WebReader
    book: str = ""

    @property
    def _gate(self) -> AddressGate:
        return ServiceGate(self.base)

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return the pages that its index finds."""
        asked: dict[str, object] = {"pattern": query, "format": "xml", "start": 0, "pageLength": limit}
        asked |= {"books.name": self.book} if self.book else {}
        page = await self.reader.fetcher.fetch(_below(self.base, "/search", asked), self._gate, ("application/xml",))
        if page.status == 400:
            what, remedy = "its library has books of several languages", "Grant it with --book NAME, one of these: "
            raise LookUpFailed(f"{self.base.origin} does not search: {what}", remedy=remedy + await self._books())
        if page.status == 404:
            remedy = "Take a file with an index (_ftindex:yes), or look titles up in it by hand."
            raise LookUpFailed(f"{self.base.origin} has no index of the words of this book", remedy=remedy)
        check_status(page)
        found = (await asyncio.to_thread(read_xml, page.body.decode("utf-8", "replace"))).iter("item")
        return [self._hit(*(child(item, name) for name in ("title", "link", "description"))) for item in found][:limit]

    def _hit(self, title: str, link: str, snippet: str) -> Hit:
        return Hit(one_line(title), str(self.base.join(link)), one_line(plain_text(snippet)), "", self.book or "Kiwix")

    async def _books(self) -> str:
        """Return the names of the library's books."""
        asked = _below(self.base, "/catalog/v2/entries", {"start": 0, "count": 50})
        try:
            page = await self.reader.get(asked, self._gate, ("application/atom+xml",))
            entries = (await asyncio.to_thread(read_xml, page.body.decode("utf-8", "replace"))).iter(
                "{http://www.w3.org/2005/Atom}entry"
            )
            return ", ".join(one_line(child(each, "name")) for each in entries) or "it names none"
        except LookUpFailed:
            return "it names none"

    async def fetch(self, address: str) -> Document:
        """Return a page of a book."""
        found = parse_address(address)
        if not is_below(found.path, _below(self.base, "/content").path):
            raise Refused(f"{found} is no page of a book", field="address", remedy="Fetch the address of a hit.")
        page = await self.reader.get(found, self._gate, ())
        return await asyncio.to_thread(read_document, page, iso(self.reader.clock()))


@dataclass(frozen=True, slots=True)
class WikipediaLookUp:
    """Wikipedia, or another MediaWiki: searched and read by its programming interface."""

    base: WebAddress
    reader: WebReader

    @property
    def _gate(self) -> AddressGate:
        return PublicGate([self.base.host], ports=[self.base.port])

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return the articles that its index finds."""
        asked = _below(self.base, "/w/rest.php/v1/search/page", {"q": query, "limit": limit})
        told = json_of(await self.reader.get(asked, self._gate, _JSON))
        return [self._hit(each) for each in _dicts(_dict(told).get("pages"))][:limit]

    def _hit(self, page: Mapping[str, Any]) -> Hit:
        said = page.get("excerpt") or page.get("description") or ""
        address = _below(self.base, f"/wiki/{quote(str(page.get('key', '')), safe='')}")
        return Hit(one_line(page.get("title", "")), str(address), one_line(plain_text(str(said))), "", self.base.host)

    async def fetch(self, address: str) -> Document:
        """Return the text of an article, with its revision and licence as its source."""
        found, top = parse_address(address), _below(self.base, "/wiki").path
        title = unquote(found.path.removeprefix(f"{top}/"))
        if found.origin != self.base.origin or not found.path.startswith(f"{top}/") or not title:
            what = f"{found} is no article of {self.base.host}"
            raise Refused(what, field="address", remedy="Fetch the address of a hit.")
        asked = {
            "action": "query", "prop": "extracts|info", "explaintext": 1, "redirects": 1, "format": "json",
            "formatversion": 2, "maxlag": 5, "titles": title,
        }  # fmt: skip
        page = await self.reader.get(_below(self.base, "/w/api.php", asked), self._gate, _JSON)
        told = _dict(json_of(page))
        if "error" in told:
            raise LookUpFailed(f"{self.base.host} refused: {one_line(_dict(told['error']).get('info', ''))}")
        article = next(iter(_dicts(_dict(told.get("query")).get("pages"))), {})
        text = str(article.get("extract") or "")
        if not text.strip():
            raise LookUpFailed(f"{self.base.host} has no article {one_line(title)!r}")
        read = await asyncio.to_thread(read_document, page, iso(self.reader.clock()))
        licence = "CC BY-SA 4.0" if self.base.host.endswith(".wikipedia.org") else "its licence is the site's"
        source = f"{self.base.host}, revision {article.get('lastrevid', 'unknown')}, {licence}"
        return Document(
            one_line(article.get("title") or title), text, str(found), read.at, "application/json", read.page,
            read.digest, source,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SearxngLookUp:
    """A SearXNG of one's own: it asks search engines, and its hits are fetched from the public internet."""

    base: WebAddress
    reader: WebReader

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return what its engines find. Raises: LookUpFailed: one of its three failures, each with its remedy."""
        asked = _below(self.base, "/search", {"q": query, "format": "json", "safesearch": 1})
        page = await self.reader.fetcher.fetch(asked, ServiceGate(self.base), _JSON)
        if page.status == 403:
            remedy = "Add `- json` below `search: formats:` in its settings.yml, then start it again."
            raise LookUpFailed(f"{self.base.origin} gives HTML only, and refuses JSON (403)", remedy=remedy)
        check_status(page)
        told = _read_results(page, self.base)
        hits = [each for each in map(_web_hit, _dicts(told.get("results"))) if each.address]
        failed = [" ".join(map(str, each)) for each in told.get("unresponsive_engines") or () if isinstance(each, list)]
        if not hits and failed:
            named = one_line("; ".join(failed[:_NAMED]))
            remedy = "Wait, or choose other engines in its settings.yml; an engine that asks for a captcha rests long."
            raise LookUpFailed(f"{self.base.origin} found nothing because its engines failed: {named}", remedy=remedy)
        return hits[:limit]

    async def fetch(self, address: str) -> Document:
        """Return the page of a hit."""
        return await self.reader.read(parse_address(address), PublicGate())


def _read_results(page: FetchedPage, base: WebAddress) -> Mapping[str, Any]:
    """Return what a SearXNG says. Raises: LookUpFailed: it is HTML, or something else."""
    if page.media_type != "application/json" or "results" not in _dict(told := json_of(page)):
        what = f"{base.origin} answered a page ({page.media_type or 'of no kind'}) in the place of JSON"
        remedy = "See that the address is SearXNG's own, behind no login and no other site, and its limiter is off."
        raise LookUpFailed(what, remedy=remedy)
    return _dict(told)


def _web_hit(told: Mapping[str, Any]) -> Hit:
    try:
        address = str(parse_address(str(told.get("url", ""))))
    except Refused:
        address = ""
    date, engine = str(told.get("publishedDate") or "")[:10], str(told.get("engine") or "SearXNG")
    return Hit(one_line(told.get("title", "")), address, one_line(told.get("content") or ""), date, one_line(engine))


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
