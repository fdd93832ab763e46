"""Read pages for look-ups: with the rules of their sites, and only if they changed since they were read."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from batos.agency.look_ups.page_fetching import FetchedPage, Fetcher
from batos.agency.look_ups.robots import MOST, NOTHING, RobotRules, parse_rules
from batos.agency.look_ups.web_addresses import AddressGate, WebAddress
from batos.agency.look_ups.web_documents import Document, read_document
from batos.image.ids import iso
from batos.protocol.errors import LookUpFailed, Refused

#: The name by which rules of sites call this program.
PRODUCT: Final = "batos"
#: Seconds after which the rules of a site are read again, and the most sites whose rules are kept.
_RULES_LAST, _MOST_SITES = 86_400.0, 512


@dataclass(slots=True)
class WebReader:
    """Reads pages by a fetcher. The rules of a site are kept for a day."""

    fetcher: Fetcher
    clock: Callable[[], datetime]
    _rules: OrderedDict[str, tuple[float, RobotRules]] = field(default_factory=OrderedDict)

    async def get(self, address: WebAddress, gate: AddressGate, accept: Sequence[str]) -> FetchedPage:
        """Return a page whose status is 200. Raises: LookUpFailed: it has another. And as `Fetcher.fetch`."""
        page = await self.fetcher.fetch(address, gate, accept)
        check_status(page)
        return page

    async def read(
        self, address: WebAddress, gate: AddressGate, known: Document | None = None, *, despite_rules: bool = False
    ) -> Document:
        """Return the document at an address; `known` with a new time where the page is still what it was.

        Raises: Refused: its site asks programs not to read it, unless `despite_rules`. LookUpFailed. And as `get`.
        """
        gate.check(address)
        rules = await self._rules_of(address, gate)
        if not despite_rules and not rules.allows(address.target):
            remedy = f'You may read it once all the same: `batos send GRANT fetch_ "{address}" true`.'
            raise Refused(f"{address.origin} asks programs not to read {address.path[:200]}", remedy=remedy)
        more = {} if known is None else {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
        more = {name: value for name, value in more.items() if value and value.isascii() and value.isprintable()}
        page = await self.fetcher.fetch(address, gate, (), more)
        at = iso(self.clock())
        if page.status == 304 and known is not None:
            return replace(known, at=at)
        check_status(page)
        return await asyncio.to_thread(read_document, page, at)

    async def _rules_of(self, address: WebAddress, gate: AddressGate) -> RobotRules:
        """Return the rules of a site: none where it has no file of them, all is forbidden where that is not reached."""
        ticks, kept = self.fetcher.ticks(), self._rules.get(address.origin)
        if kept is not None and ticks - kept[0] < _RULES_LAST:
            return kept[1]
        try:
            page = await self.fetcher.fetch(
                address.at("/robots.txt"), _RulesGate(gate, address.origin), ("text/plain",)
            )
            text = page.body[:MOST].decode("utf-8", "replace") if page.status == 200 else ""
            found = NOTHING if page.status >= 500 else parse_rules(text, PRODUCT)
        except Refused:
            found = RobotRules()  # it leads to where the gate lets nobody
        except LookUpFailed:
            return NOTHING
        self.fetcher.delays[address.origin] = found.delay
        self._rules[address.origin] = (ticks, found)
        while len(self._rules) > _MOST_SITES:
            self.fetcher.delays.pop(self._rules.popitem(last=False)[0], None)
        return found


@dataclass(frozen=True, slots=True)
class _RulesGate:
    """Lets through a site's file of rules, whatever paths of it are granted."""

    gate: AddressGate
    origin: str

    def check(self, address: WebAddress) -> None:
        if not (address.origin == self.origin and address.path == "/robots.txt"):
            self.gate.check(address)

    def admits(self, ip: str) -> bool:
        return self.gate.admits(ip)


def check_status(page: FetchedPage) -> None:
    """Raise LookUpFailed for a page whose status is not 200."""
    if page.status == 200:
        return
    if page.status in (404, 410):
        raise LookUpFailed(f"there is no page {page.address} ({page.status})")
    if page.status in (429, 503):
        wait = page.headers.get("retry-after", "")
        when = f" after {wait} s" if wait.isascii() and wait.isdigit() else " later"
        raise LookUpFailed(f"{page.address.origin} has too many requests ({page.status})", remedy=f"Ask again{when}.")
    raise LookUpFailed(f"{page.address.origin} answered {page.status}")
