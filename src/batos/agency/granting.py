"""Grants: a person lets missions act on one folder or one address; they and effects as doors show them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Container, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from batos.agency.file_sink import FileSink, Guard, guard_nothing
from batos.agency.http_sink import HttpSink, check_address, is_local
from batos.agency.look_ups.grants import look_up_document
from batos.agency.mcp import server_records
from batos.agency.mcp.server_tools import McpSink
from batos.agency.mcp.servers import McpServers
from batos.agency.payloads import describe
from batos.agency.records import effect_records, look_up_records
from batos.agency.records.effect_records import Effect, GrantKind, SinkClass
from batos.agency.sinks import Sink
from batos.client.addresses import read_record
from batos.config import Settings
from batos.image import ownership, storage
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.effect_documents import EffectDocument, GrantDocument
from batos.protocol.errors import BriefError, Refused

_OWN: Final = "Grant a folder of its own."
#: Folders of the kernel: what is written there acts on the machine, and /proc leads into every other folder.
_KERNEL: Final = ("/proc", "/sys")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")


def check_name(name: str) -> str:
    """Return a grant's name. Raises: BriefError: it is none."""
    if not _NAME.fullmatch(name):
        remedy = "Use small letters, digits and underscores, a letter first."
        raise BriefError(f"{name[:80]!r} is no name of a grant", field="name", remedy=remedy)
    return name


def name_for(kind: GrantKind, target: str) -> str:
    """Return the name of a grant that was given none: made of its folder's name, or its port."""
    last = re.sub(r"[^a-z0-9]+", "_", target.rstrip("/").rpartition("/")[2].rpartition(":")[2].lower()).strip("_")
    begun = last if last[:1].isalpha() else f"{kind}_{last}".strip("_")
    return begun[:63]


def check_target(
    kind: GrantKind, target: str, home: Path, data: Iterable[Path] = (), ports: Container[int] = frozenset()
) -> tuple[str, SinkClass]:
    """Return a target as it is kept, and the class of its sink.

    `data` are the files and folders of the databases, `ports` those that the mind and its models listen at.

    Raises: BriefError: it is no folder that is there, or no address that may be granted. Refused: it is the home or a
    place of the databases, or holds it, or one of the ports: an effect could change the mind itself.
    """
    if kind == "http":
        port = urlsplit(check_address(target)).port or 0
        if is_local(target) and (not port or port in ports):
            why = "is one of this mind, or of its models" if port else "is none"
            raise Refused(f"port {port} {why}", field="target", remedy="Name the port of another program.")
        return target, "keyed"
    given = Path(target)
    if not given.is_absolute():
        raise BriefError(f"{target!r} is no whole path", field="target", remedy="Give it from the root: /...")
    try:
        folder = given.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise BriefError(f"there is no folder {target!r}", field="target", remedy="Make it first.") from error
    if not folder.is_dir():
        raise BriefError(f"{target!r} is no folder", field="target", remedy="Give the folder that it stands in.")
    if any(folder.is_relative_to(each) for each in _KERNEL):
        what = f"{folder} has no files: they are switches of the machine, and ways to every other folder"
        raise Refused(what, field="target", remedy=_OWN)
    _refuse_own(folder, home, data)
    return str(folder), "queryable"


def data_places(settings: Settings) -> list[Path]:
    """Return the files and folders of the databases of some settings."""
    databases = (settings.image_uri, storage.journal_uri(settings.image_uri, settings.journal))
    return [place for uri in databases for place in storage.data_places(uri)]


def own_ports(settings: Settings) -> frozenset[int]:
    """Return the ports at which this mind's server, as configured and as it runs, and Ollama listen."""
    running = read_record(settings.home)
    addresses = [settings.ollama_host, settings.bind, settings.events]
    addresses += [running.bind, running.events] if running is not None else []
    return frozenset(filter(None, (urlsplit(each).port for each in addresses)))


def refuse_places(settings: Settings, folder: Path) -> None:
    """Check that a granted folder is no place of these settings: another home's node may have granted it.

    Raises: Refused: it is, or holds one, or lies in one.
    """
    _refuse_own(folder.resolve(), settings.home, data_places(settings))


def _refuse_own(folder: Path, home: Path, data: Iterable[Path]) -> None:
    for own, what in ((home, "the home"), *((each, f"{each}, a place of the image") for each in data)):
        if _overlap(folder, own.resolve()):
            raise Refused(f"{folder} is {what} of this mind, or holds it, or lies in it", field="target", remedy=_OWN)


def _overlap(folder: Path, own: Path) -> bool:
    """Return True if one of two is or holds the other, also where a folder is mounted at a second place."""
    if own.is_relative_to(folder) or folder.is_relative_to(own):
        return True
    parts: list[Path] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        parts = [each for each in own.iterdir() if each.is_dir()]
    inside = _identify(own, *parts) & _identify(folder, *folder.parents)
    return bool(inside or _identify(folder) & _identify(*own.parents))


def _identify(*paths: Path) -> set[tuple[int, int]]:
    """Return what the file system knows those by that are there: the same under each of their names."""
    found = set()
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):  # folders of the home come and go
            status = path.stat()
            found.add((status.st_dev, status.st_ino))
    return found


def open_sink(capability: UvmObject, guard: Guard = guard_nothing, servers: McpServers | None = None) -> Sink:
    """Return the sink of a capability; `guard` refuses folders, `servers` calls tools. Call it on the event loop."""
    slots = own_slots(capability)
    if slots["kind"] == server_records.KIND:
        if servers is None:
            raise Refused("no server is called here", remedy="Ask the mind itself.")
        return McpSink(servers, server_records.read_server(capability), asyncio.get_running_loop())
    if slots["kind"] == "file":
        return FileSink(Path(slots["target"]), guard)
    return HttpSink(slots["target"], slots["sink"])


def grant_document(capability: UvmObject) -> GrantDocument:
    """Return a grant for doors."""
    if look_up_records.is_look_up(capability):
        return look_up_document(capability)
    slots = own_slots(capability)
    told: GrantDocument = {
        "name": slots["name"], "kind": slots["kind"], "target": slots["target"], "sink": slots["sink"],
        "user": slots["user"], "granted_at": slots["granted_at"], "oid": reference(capability),
        "selector": effect_records.selectors_of(capability)[0], "host": slots.get("host", ""),
        "unattended": bool(slots.get("unattended")),
    }  # fmt: skip
    if server_records.is_server(capability):
        server = server_records.read_server(capability)
        told["tools"] = [server_records.list_line(server, each) for each in sorted(server.pins)]
    return told


def list_grants(root: Root, user: str | None = None) -> list[GrantDocument]:
    """Return all grants (of a user's), by name."""
    return [grant_document(each) for each in effect_records.list_all_capabilities(root, user)]


def list_effects(root: Root, most: int, mission: str | None = None, user: str | None = None) -> list[EffectDocument]:
    """Return the newest effects, the newest first; optionally of a mission, or of a user's missions."""
    found: Iterable[Effect] = reversed(list(effect_records.list_all_effects(root, mission)))
    mine = (each for each in found if user is None or ownership.is_asked_by(root, [each["mission"]], user))
    return [effect_document(root, each) for each in islice(mine, most)]


def effect_document(root: Root, effect: Effect) -> EffectDocument:
    """Return an effect for doors."""
    waits_by = effect_records.find_capability_of(root, effect) if effect["state"] in effect_records.WAITING else None
    return {
        "effect": effect["effect"], "mission": effect["mission"], "lineage": effect["lineage"],
        "grant": effect["grant"], "operation": effect["operation"],
        "what": describe(effect["operation"], effect["payload"]), "key": effect["key"],
        "fingerprint": effect["fingerprint"], "state": effect["state"], "attempts": effect["attempts"],
        "at": effect["at"], "outcome": effect["outcome"], "arguments": effect["payload"],
        "approval": effect.get("approval", "") if effect["state"] == "asking" else "",
        "host": "" if waits_by is None else own_slots(waits_by).get("host", ""),
    }  # fmt: skip
