"""Look-ups by grants: what a mission asks of the world is checked, written down, asked once, and journaled."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, cast

from batos.agency.file_sink import Guard, guard_nothing
from batos.agency.look_ups import leaving
from batos.agency.look_ups.feeds import PageLookUp
from batos.agency.look_ups.folders import FolderLookUp
from batos.agency.look_ups.look_up import MOST_HITS, LookUp
from batos.agency.look_ups.memories import MemoryLookUp
from batos.agency.look_ups.page_fetching import Fetcher
from batos.agency.look_ups.services import KiwixLookUp, SearxngLookUp, WikipediaLookUp
from batos.agency.look_ups.web_addresses import LONGEST, PublicGate, WebAddress, is_public, parse_address
from batos.agency.look_ups.web_documents import Document
from batos.agency.look_ups.web_reading import PRODUCT, WebReader
from batos.agency.permissions import LEAVES, AsksPerson, CallQuestion, refuse
from batos.agency.records import effect_records, look_up_records
from batos.agency.records.look_up_records import ANY, GrantTerms, LookUpKind
from batos.agency.records.schedule_records import DOOR
from batos.config import Settings
from batos.image.readable import ReadableImage
from batos.image.roots import JournalRoot, Root
from batos.inference.journal import Journal
from batos.inference.outside_calls import OutsideCall, OutsideCalls, Result
from batos.memory.segmentation import words
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.brief import MissionBrief
from batos.protocol.errors import ObjectError, Refused
from batos.version import __version__

#: The default number of hits, and the most characters of a query.
HITS, MOST_QUERY = 5, 500
#: A page that was read since is not asked for again; an older one is, if it has changed.
FRESH: Final = timedelta(days=1)
#: The most pages of which the place in the journal is kept in memory.
_MOST_KNOWN: Final = 512
#: Words of a question that ask for what is there now.
_NOW: Final = frozenset("latest newest today now current currently heute jetzt aktuell neueste".split())
#: Changes the journal's root in a commit of its own.
ChangeJournal: TypeAlias = Callable[[Callable[[JournalRoot], None]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class LookingMission:
    """A mission that looks up: its image, its brief, its calls to the world, and its memory, if it may recall."""

    root: Root
    brief: MissionBrief
    calls: OutsideCalls
    memory: MemoryLookUp | None = None
    #: The person's earlier questions of the conversation, and what asks that person about a call.
    said: Sequence[str] = ()
    ask: AsksPerson = refuse

    @property
    def is_unattended(self) -> bool:
        """Test if nobody watches the mission."""
        return self.brief.origin.door == DOOR

    def usable(self) -> list[UvmObject]:
        """Return the capabilities by which the mission may look up, by name."""
        return look_up_records.list_usable(self.root, self.brief.user, unattended=self.is_unattended)


@dataclass(frozen=True, slots=True)
class LookUpOrder:
    """An order to a look-up: a selector with its argument, and how it is asked.

    `by_person`: a person's own message, whose words are that person's. `despite_rules`: a page is read although its
    site asks programs not to.
    """

    selector: str
    text: str
    limit: int = HITS
    by_person: bool = False
    despite_rules: bool = False

    @property
    def kind(self) -> str:
        """Return what the call is: `search`, `fetch` or `list`."""
        return {"search_": "search", "list_": "list"}.get(self.selector, "fetch")

    @property
    def arguments(self) -> dict[str, str]:
        """Return what is asked, by the name that the tool of the selector has for it."""
        return {{"search": "query", "list": "place"}.get(self.kind, "address"): self.text}


def order_of(selector: str, args: Sequence[object], *, by_person: bool) -> LookUpOrder:
    """Return the order of a message's arguments. Raises: ObjectError: they are others."""
    given = [*args]
    text = given.pop(0) if given else ""
    if selector in ("fetch_", "read_"):
        despite = given.pop(0) if given else False
        if given or not isinstance(despite, bool) or (despite and selector == "read_"):
            raise ObjectError(f"`{selector}` takes an address{' and true or false' if selector == 'fetch_' else ''}")
        address = leaving.check_text("address", text, LONGEST) if text else ""
        return LookUpOrder(selector, address, by_person=by_person, despite_rules=despite and by_person)
    limit = given.pop(0) if given else HITS
    if given or isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_HITS:
        raise ObjectError(f"`{selector}` takes a text and a number of hits from 1 to {MOST_HITS}")
    if selector == "list_" and not text:
        return LookUpOrder(selector, "", limit, by_person)
    return LookUpOrder(selector, leaving.check_text("query", text, MOST_QUERY), limit, by_person)


@dataclass(slots=True)
class LookUps:
    """Looks up by grants for the missions of one mind. `guard` raises Refused for folders of the mind itself."""

    reader: WebReader
    change: ChangeJournal
    clock: Callable[[], datetime]
    guard: Guard = guard_nothing
    #: The image as it is now: a grant that was revoked since a mission began ends at once.
    image: ReadableImage | None = None
    #: Of pages that were read: the mission and the key under which the journal has each, by user, grant and address.
    _known: OrderedDict[tuple[str, str, str], tuple[str, str]] = field(default_factory=OrderedDict)

    def open(self, capability: UvmObject, memory: MemoryLookUp | None = None) -> LookUp:
        """Return the look-up of a capability. Raises: Refused: it is of memory, and the mission may not recall."""
        slots, terms = own_slots(capability), look_up_records.terms_of(capability)
        kind, target = look_up_records.kind_of(capability), str(slots["target"])
        if kind == "search":
            if memory is None:
                raise Refused("this mission recalls nothing", remedy="Ask it without --no-memory.")
            return memory
        if kind == "folder":
            return FolderLookUp(Path(target), self.clock, self.guard)
        return self._open_web(kind, target, terms)

    def _open_web(self, kind: LookUpKind, target: str, terms: GrantTerms) -> LookUp:
        address = parse_address(target) if target != ANY else None
        if kind == "fetch" or address is None:
            return PageLookUp(address, gate_of(address, terms), self.reader)
        if kind == "kiwix":
            return KiwixLookUp(address, self.reader, terms.book)
        return (WikipediaLookUp if kind == "wikipedia" else SearxngLookUp)(address, self.reader)

    async def answer(self, asking: LookingMission, capability: UvmObject, order: LookUpOrder, path: str) -> Result:
        """Return what a look-up brings: {hits} or {document}; from the journal where it was asked there before.

        Raises: Refused: it is not granted, its grant is used up or has expired, or something private would leave.
        ApprovalNeeded: a person is asked whether it may. LookUpFailed: the world does not answer.
        """
        self._check_granted(asking, capability, order)
        slots, kind = own_slots(capability), look_up_records.kind_of(capability)
        if kind == "search":
            return await _ask(self.open(capability, asking.memory), order, None)
        asked = {"grant": slots["name"], "what": order.text}
        asked |= {"limit": order.limit} if order.kind != "fetch" else {}
        call = OutsideCall(path, order.kind, asked)
        return await asking.calls.perform(call, lambda _: self._look_up(asking, capability, order, call))

    def _check_granted(self, asking: LookingMission, capability: UvmObject, order: LookUpOrder) -> None:
        name = str(own_slots(capability).get("name", ""))
        usable = look_up_records.is_usable(capability, asking.brief.user, unattended=asking.is_unattended)
        found = effect_records.find_capability(asking.root, name)
        if not usable or found is None or reference(found) != reference(capability):
            remedy = "`batos grants list` lists what may be looked up in."
            raise Refused(f"{name or 'it'} is no look-up of this mission's", field="grants", remedy=remedy)
        if order.selector not in own_slots(capability):
            raise ObjectError(f"{name!r} does not answer `{order.selector}`")

    async def _ask_where_words_leave(self, asking: LookingMission, capability: UvmObject, order: LookUpOrder) -> None:
        """Ask the person where words would leave that are not of the question. Raises: as `AsksPerson`."""
        slots, terms = own_slots(capability), look_up_records.terms_of(capability)
        granted = (slots["name"], slots["target"], *terms.hosts, *terms.paths)
        own = leaving.words_of_question(asking.brief, (*asking.said, *granted))
        if order.kind == "search":
            foreign = leaving.find_foreign(order.text, own)
        else:
            hits = (cast("list[dict[str, str]]", each["hits"]) for each in asking.calls.results("search", "list"))
            known = {hit["address"] for found in hits for hit in found}
            foreign = leaving.find_foreign_in(order.text, own, known) if order.text else []
        if foreign:
            how = f"batos send {slots['name']} {order.selector} {json.dumps(order.text, ensure_ascii=False)}"
            remedy, tool = f"If that is meant, send it yourself: {how}", f"{slots['name']}.{order.selector}"
            await asking.ask(CallQuestion(tool, order.arguments, LEAVES, tuple(foreign), remedy))

    async def _look_up(
        self, asking: LookingMission, capability: UvmObject, order: LookUpOrder, call: OutsideCall
    ) -> Result:
        """Ask the world, or return a page that was read lately. Raises: as `answer`."""
        if not stays_here(capability) and not order.by_person:
            await self._ask_where_words_leave(asking, capability, order)
        slots, grant = own_slots(capability), effect_records.nonce_of(capability)
        place = (asking.brief.user, grant, order.text)
        is_page = order.kind == "fetch" and look_up_records.kind_of(capability) != "folder"
        known = await self._find_known(asking, place) if is_page else None
        if known is not None and not order.by_person and self._is_fresh(known, asking.brief):
            return {"document": known.as_dict()}
        named, terms, now = (str(slots["name"]), grant), look_up_records.terms_of(capability), self.clock()
        await asyncio.to_thread(self._check_standing, *named)
        look_up = self.open(capability)
        if isinstance(look_up, FolderLookUp):
            look_up_records.check_end(named[0], terms, now)
            return await _ask(look_up, order, None)
        if isinstance(look_up, PageLookUp) and order.text and order.kind != "search":
            look_up.gate.check(parse_address(order.text))  # what goes nowhere is no query
        query = {
            "what": order.text, "kind": order.kind, "to": str(slots["target"]), "user": asking.brief.user,
            "mission": asking.calls.mission, "path": call.path,
        }  # fmt: skip
        await self.change(lambda root: look_up_records.enter(root, named, terms, query, now))
        found = await _ask(look_up, order, known)
        if is_page:
            self._known[place] = asking.calls.mission, call.key
            self._known.move_to_end(place)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found

    def _check_standing(self, name: str, grant: str) -> None:
        """Raise Refused where a grant was revoked, or made anew, since the mission began."""
        if self.image is None:
            return
        with self.image.snapshot() as root:
            found = effect_records.find_capability(root, name)
            if found is None or effect_records.nonce_of(found) != grant:
                remedy = "Ask again: what stands now is looked up in."
                raise Refused(f"the grant {name!r} was revoked meanwhile", field="grants", remedy=remedy)

    async def _find_known(self, asking: LookingMission, place: tuple[str, str, str]) -> Document | None:
        """Return a page that was read before and is still in the journal."""
        if place not in self._known:
            return None
        found = await asking.calls.find(*self._known[place])
        return None if found is None else Document.from_dict(cast("dict[str, Any]", found["document"]))

    def _is_fresh(self, known: Document, brief: MissionBrief) -> bool:
        if not _NOW.isdisjoint(words(brief.text)):
            return False
        return self.clock() - datetime.fromisoformat(known.at) < FRESH


def stays_here(capability: UvmObject) -> bool:
    """Test if nothing that is asked of a look-up leaves this machine and its network."""
    kind, target = look_up_records.kind_of(capability), str(own_slots(capability)["target"])
    if kind != "kiwix":
        return kind in ("search", "folder")
    host = parse_address(target)
    return host.host == "localhost" or (host.is_literal and not is_public(host.host))


async def _ask(look_up: LookUp, order: LookUpOrder, known: Document | None) -> dict[str, Any]:
    if order.kind == "search":
        return {"hits": [each.as_dict() for each in await look_up.search(order.text, order.limit)]}
    if order.kind == "list" and isinstance(look_up, PageLookUp | FolderLookUp):
        return {"hits": [each.as_dict() for each in await look_up.list(order.text, order.limit)]}
    if isinstance(look_up, PageLookUp):
        document = await look_up.fetch(order.text, known, despite_rules=order.despite_rules)
    else:
        document = await look_up.fetch(order.text)
    return {"document": document.as_dict()}


def gate_of(address: WebAddress | None, terms: GrantTerms) -> PublicGate:
    """Return the gate of a grant of pages: its address's host and path, and what its terms add."""
    hosts = terms.hosts if address is None else (address.host, *terms.hosts)
    paths = terms.paths if address is None or address.path == "/" else (address.path, *terms.paths)
    return PublicGate(hosts, paths, terms.ports if address is None else (address.port, *terms.ports))


def make_fetcher(settings: Settings) -> Fetcher:
    """Return what fetches over the network, with the name and the contact that sites are told."""
    contact = f" (+{settings.look_up_contact})" if settings.look_up_contact else ""
    return Fetcher(f"{PRODUCT}/{__version__}{contact}")


class OpenMind(Protocol):
    """The parts of an open mind that look-ups need."""

    @property
    def settings(self) -> Settings:
        """Return the settings."""
        ...

    @property
    def image(self) -> ReadableImage:
        """Return the image."""
        ...

    @property
    def journal(self) -> Journal:
        """Return the journal."""
        ...

    @property
    def clock(self) -> Callable[[], datetime]:
        """Return the clock."""
        ...


def open_look_ups(mind: OpenMind, guard: Guard, fetcher: Fetcher | None = None) -> LookUps:
    """Return what looks up for the missions of a mind, by `fetcher` or over the network."""
    reader = WebReader(fetcher or make_fetcher(mind.settings), mind.clock)
    return LookUps(reader, mind.journal.change, mind.clock, guard, mind.image)
