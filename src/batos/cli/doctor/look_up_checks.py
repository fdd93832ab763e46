"""The checks of granted look-ups and servers: one real request of each kind within its terms, a list of each server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from batos.agency.api_transport import ApiSender
from batos.agency.apis.api_operations import ApiRequest
from batos.agency.apis.description import read_description
from batos.agency.granting import refuse_places
from batos.agency.look_ups.feeds import PageLookUp
from batos.agency.look_ups.folders import FolderLookUp
from batos.agency.look_ups.granted import HITS, LookUps, make_fetcher
from batos.agency.look_ups.look_up import MOST_HITS, LookUp
from batos.agency.look_ups.page_fetching import Fetcher
from batos.agency.look_ups.web_reading import WebReader
from batos.agency.mcp import server_records
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import ServerOpener
from batos.agency.records import api_records, effect_records, look_up_records
from batos.config import Settings
from batos.genesis.integrity import Finding
from batos.image.ids import iso, utc_now
from batos.image.readable import is_there, open_read_only
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, LookUpFailed
from batos.terminal.console import count_text

_NO_REPLY: Final = "Look whether its description and its secret (`HOME/secrets/NAME`) are those of today."
_NOTHING_SHOWN: Final = "its description shows no request with all its arguments"
#: The word that is looked for; nobody said it.
_WORD: Final = "water"


#: A request of a described API that its description shows whole, by its grant.
_ApiRead: TypeAlias = tuple[ApiSender, Mapping[str, object], ApiRequest]


class _Check(NamedTuple):
    """A look-up that is tried: its kind and name; or the reason why it is not."""

    kind: str
    name: str
    look_up: LookUp | _ApiRead | None
    reason: str = ""


async def findings(settings: Settings, fetcher: Fetcher | None = None) -> list[Finding]:
    """Return a finding for the first grant of each kind; none where nothing is granted to look up."""
    checks: Sequence[_Check] = ()
    with suppress(BatosError):  # what keeps the image from being read has a finding of its own
        checks = await asyncio.to_thread(lambda: list(_checks(settings, utc_now(), fetcher)))
    return [await _try(each) for each in checks]


def _checks(settings: Settings, now: datetime, fetcher: Fetcher | None) -> Iterator[_Check]:
    if not is_there(settings.image_uri):
        return
    with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
        reader = WebReader(fetcher or make_fetcher(settings), utc_now)
        look_ups = LookUps(reader, _keep_nothing, utc_now, partial(refuse_places, settings))
        tried = {"search"}  # memory is in the image, which was read
        for each in filter(look_up_records.is_look_up, effect_records.list_all_capabilities(root)):
            kind, terms, slots = look_up_records.kind_of(each), look_up_records.terms_of(each), own_slots(each)
            if kind in tried or slots["target"] == look_up_records.ANY:
                continue
            tried.add(kind)
            with snapshot(faces.journal) as journal:
                made = look_up_records.count_today(journal, effect_records.nonce_of(each), now)
            used = f"its {terms.budget} calls of today are used up" if terms.budget and made >= terms.budget else ""
            over = f"it ended at {terms.until}" if terms.until and iso(now) >= terms.until else ""
            open_one = partial(_shown_read, settings, root, slots) if kind == "api" else partial(look_ups.open, each)
            yield _Check(kind, str(slots["name"]), None if used or over else open_one(), used or over or _NOTHING_SHOWN)


def _shown_read(settings: Settings, root: Root, slots: Mapping[str, object]) -> _ApiRead | None:
    """Return a request whose needed arguments all have an example in the description; None: there is none."""
    for operation in read_description(api_records.api_text(root, str(slots["name"]))).operations:
        given = {each.name: each.example for each in operation.parameters if each.is_required or each.example}
        if all(given.values()):
            path = {each.name: given.pop(each.name) for each in operation.parameters if each.place == "path"}
            return ApiSender(settings.home), slots, ApiRequest(operation.path.format_map(path), given)
    return None


async def _keep_nothing(_change: object) -> None:
    """Write nothing: the journal is open for reading."""


async def _try(check: _Check) -> Finding:
    """Make one request, of whose result nothing is kept."""
    named = f"the grant {check.name} ({check.kind})"
    if check.look_up is None:
        return Finding(f"look_ups.{check.kind}", True, f"{named} was not tried: {check.reason}")
    try:
        if isinstance(check.look_up, PageLookUp):
            what = f"reads {(await check.look_up.fetch('')).title!r}"
        elif isinstance(check.look_up, tuple):
            sender, slots, request = check.look_up
            if (status := (await sender.send(slots, request))["status"]) != 200:
                raise LookUpFailed(f"{request.target} answers {status}", remedy=_NO_REPLY)
            what = f"answers {request.target}"
        elif isinstance(check.look_up, FolderLookUp):
            what = f"lists {count_text(len(await check.look_up.list('', MOST_HITS)), 'file')}"
        else:
            what = f"finds {count_text(len(await check.look_up.search(_WORD, HITS)), 'page')} about {_WORD}"
    except BatosError as error:
        return Finding(f"look_ups.{check.kind}", False, f"{named}: {error.message}", error.remedy)
    return Finding(f"look_ups.{check.kind}", True, f"{named} {what}")


async def server_findings(settings: Settings) -> list[Finding]:
    """Return a finding for each granted server of tools: it is opened, and lists its tools as they were approved."""
    servers: Sequence[McpServer] = ()
    with suppress(BatosError):
        servers = await asyncio.to_thread(lambda: list(_servers(settings)))
    return [await _try_server(settings, each) for each in servers]


def _servers(settings: Settings) -> Iterator[McpServer]:
    if is_there(settings.image_uri):
        with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
            yield from map(server_records.read_server, server_records.list_servers(root))


async def _try_server(settings: Settings, server: McpServer) -> Finding:
    name, named = f"mcp.{server.name}", f"the server {server.name}"
    try:
        listed = await ServerOpener(settings.home).list_tools(server)
    except BatosError as error:
        return Finding(name, False, error.message, error.remedy)
    changes = server_records.find_changes(server, listed)
    if not changes:
        return Finding(name, True, f"{named} lists {count_text(len(listed), 'tool')}, as approved")
    remedy = "The next call of one of its tools asks you: `batos approvals`."
    return Finding(
        name, False, f"{named} has tools that are new, changed or gone: {', '.join(sorted(changes))}", remedy
    )
