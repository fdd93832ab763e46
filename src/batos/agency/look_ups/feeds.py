"""Look-ups at a known address: a page, or a feed (RSS, Atom) with its entries."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from batos.agency.look_ups.look_up import MOST_HITS, Hit, rank
from batos.agency.look_ups.web_addresses import PublicGate, WebAddress, parse_address
from batos.agency.look_ups.web_documents import Document
from batos.agency.look_ups.web_reading import WebReader
from batos.memory.reading.read_text import moment_of, one_line
from batos.memory.reading.web_pages import text_of
from batos.protocol.errors import LookUpFailed, Refused

_FEEDS: Final = frozenset({"application/rss+xml", "application/atom+xml", "text/xml", "application/xml"})
_ENTRIES: Final = frozenset({"item", "entry"})
#: The most characters of a description that are read for a hit.
_DESCRIBED: Final = 20_000


def read_xml(text: str) -> Element:
    """Return the root of a text of XML. Raises: LookUpFailed: it is none, or declares entities, which may be bombs."""
    if "<!ENTITY" in text:
        raise LookUpFailed("an answer declares entities of XML, and is not read")
    try:  # it was decoded, whatever it says of itself
        return ElementTree.fromstring(re.sub(r"\A\ufeff?\s*<\?xml[^>]*\?>", "", text))  # noqa: S314 - no entities
    except (ElementTree.ParseError, ValueError) as error:
        raise LookUpFailed(f"an answer is no XML: {error}") from error


def _name(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]


def child(element: Element, name: str) -> str:
    """Return the text of a child, whatever its namespace; "" if there is none."""
    return next(("".join(each.itertext()) for each in element if _name(each) == name), "")


def plain_text(markup: str) -> str:
    """Return the words of a piece of HTML."""
    return text_of(markup[:_DESCRIBED]).text if "<" in markup or "&" in markup else markup


def entries_of(feed: str, address: WebAddress) -> list[tuple[Hit, str]]:
    """Return the entries of a feed with their texts. Raises: LookUpFailed: it is no feed."""
    root = read_xml(feed)
    source = one_line(next((child(each, "title") for each in (root, *root) if child(each, "title")), ""))
    return [found for each in root.iter() if _name(each) in _ENTRIES and (found := _entry(each, address, source))]


def _entry(element: Element, feed: WebAddress, source: str) -> tuple[Hit, str] | None:
    links = [each for each in element if _name(each) == "link" and each.get("rel") in (None, "alternate")]
    link = next((each.get("href") or (each.text or "").strip() for each in links), "")
    said = next(filter(None, (child(element, name) for name in ("description", "summary", "content"))), "")
    told = next(filter(None, (child(element, name) for name in ("pubDate", "published", "updated", "date"))), "")
    title, text = one_line(plain_text(child(element, "title"))), plain_text(said)
    try:
        address = str(feed.join(link))
    except Refused:
        return None
    return Hit(title, address, one_line(text), _day(told.strip()), source), f"{title}\n{text}"


def _day(told: str) -> str:
    with suppress(ValueError, TypeError, IndexError):
        return moment_of(parsedate_to_datetime(told))[:10]
    return moment_of(told)[:10]


@dataclass(frozen=True, slots=True)
class PageLookUp:
    """The pages of granted hosts and paths. `address` is the one that the grant names: of a site, a page or a feed."""

    address: WebAddress | None
    gate: PublicGate
    reader: WebReader

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return the entries of the feed, or the page itself, if they have words of the query."""
        return rank(await self._contents(self.address), query, limit)

    async def list(self, place: str, limit: int) -> Sequence[Hit]:
        """Return the entries of a feed, the newest as the feed has them; of a page only itself."""
        found = await self._contents(parse_address(place) if place else self.address)
        return [hit for hit, _ in found[: min(limit, MOST_HITS)]]

    async def _contents(self, address: WebAddress | None) -> Sequence[tuple[Hit, str]]:
        if address is None:
            raise Refused("this grant names no address", field="address", remedy="Name the address that you mean.")
        document = await self.reader.read(address, self.gate)
        if document.media_type in _FEEDS:
            with suppress(LookUpFailed):
                return await asyncio.to_thread(entries_of, document.page, address)
        return [(Hit(document.title, document.address, "", "", address.host), document.text)]

    async def fetch(self, address: str, known: Document | None = None, *, despite_rules: bool = False) -> Document:
        """Return the document at an address within the grant; "" is the grant's own."""
        if not address and self.address is None:
            raise Refused("this grant names no address", field="address", remedy="Name the address that you mean.")
        found = parse_address(address) if address or self.address is None else self.address
        return await self.reader.read(found, self.gate, known, despite_rules=despite_rules)
