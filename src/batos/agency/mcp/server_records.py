"""Grants of servers of tools (MCP) in the image: the command or address, what a person said of it, and pinned tools."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, TypeGuard

from persistent.mapping import PersistentMapping

from batos.agency.mcp.listed_tools import ListedTool, describe_change
from batos.agency.records import effect_records
from batos.guardian.policy import SHIPPED
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.effect_documents import GrantDocument, ServerToolLine
from batos.protocol.method_documents import MethodProvenance
from batos.records import approvals
from batos.records.approval_subjects import Candidate
from batos.records.approvals import ApprovalState

#: The kind of such a grant, and its slots: what `McpServer` has of it, its pins, and the reasons of what is withdrawn.
KIND: Final = "mcp"
_SERVER, _PINS, _WITHDRAWN = "server", "pins", "withdrawn"


@dataclass(frozen=True, slots=True)
class McpServer:
    """A server that a person granted: a program by its command, or an address (`url`).

    `env` are the names of the variables that the program gets, `files` the digests of what it is made of, `reads` the
    tools that the person said only read. `pins` are the approved tools, `withdrawn` those that changed since, and why.
    """

    name: str
    user: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    secret_header: str = ""
    reads: tuple[str, ...] = ()
    pins: Mapping[str, ListedTool] = field(default_factory=dict)
    withdrawn: Mapping[str, str] = field(default_factory=dict)
    nonce: str = ""

    @property
    def target(self) -> str:
        """Return the address, or the whole command in one line."""
        return self.url or json.dumps(self.command, ensure_ascii=False)

    @property
    def usable(self) -> Mapping[str, ListedTool]:
        """Return the tools that may be called: approved, and not changed since."""
        return {name: each for name, each in self.pins.items() if name not in self.withdrawn}


def add_server(root: Root, server: McpServer, at: str) -> UvmObject:
    """Make the capability of a server; none of its tools is approved yet. Raises: Refused: the name is taken."""
    made = effect_records.add_capability(root, server.name, KIND, server.target, "blind", (server.user, at))
    kept = {**asdict(server), "files": dict(server.files)}
    for each in ("name", "user", _PINS, _WITHDRAWN, "nonce"):
        del kept[each]
    made.server, made.pins, made.withdrawn = PersistentMapping(kept), PersistentMapping(), PersistentMapping()
    return made


def read_server(capability: UvmObject) -> McpServer:
    """Return the server of a capability as plain data."""
    slots = own_slots(capability)
    kept: dict[str, Any] = dict(slots[_SERVER])
    kept |= {name: tuple(kept[name]) for name in ("command", "env", "reads")}
    pins = {name: ListedTool(json.loads(text)) for name, text in slots[_PINS].items()}
    return McpServer(
        name=slots["name"], user=slots["user"], pins=pins, withdrawn=dict(slots[_WITHDRAWN]),
        nonce=effect_records.nonce_of(capability), **kept,
    )  # fmt: skip


def list_line(server: McpServer, name: str) -> ServerToolLine:
    """Return an approved tool for doors."""
    tool, reads = server.pins[name], name in server.reads
    why = server.withdrawn.get(name, "") or (tool.form.fault and f"only your own messages call it: {tool.form.fault}")
    told = tool.as_tool(server.name, reads=reads)
    return {"tool": told.name, "purpose": told.purpose, "reads": reads, "withdrawn": why}


def is_server(capability: UvmObject | None) -> TypeGuard[UvmObject]:
    """Test if a capability is of a server of tools."""
    return capability is not None and own_slots(capability).get("kind") == KIND


def list_servers(root: Root, user: str | None = None, *, unattended: bool = False) -> Iterator[UvmObject]:
    """Yield the capabilities of servers (of a user's) by name; `unattended`: those for missions that nobody watches."""
    for each in effect_records.list_all_capabilities(root, user):
        if is_server(each) and (not unattended or own_slots(each).get("unattended")):
            yield each


def find_changes(server: McpServer, listed: Mapping[str, ListedTool]) -> dict[str, str]:
    """Return why the pinned tools that differ from a list are withdrawn, by name; a new tool has ""."""
    found = {name: "" for name in listed if name not in server.pins}
    for name, pin in server.pins.items():
        if name not in listed:
            found[name] = "its server does not list it any more"
        elif listed[name].digest != pin.digest:
            found[name] = "its server describes it otherwise than it was approved"
    return found


def question_about(server: McpServer, holder: str, listed: Mapping[str, ListedTool], at: str) -> Candidate | None:
    """Return the question about the new and the changed tools of a list; None: there are none of these.

    `holder` is the reference of the server's capability.
    """
    changed = sorted(name for name in find_changes(server, listed) if name in listed)
    if not changed:
        return None
    lines = [f"server   {server.name}, {server.target}"]
    for name in changed:
        reads = name in server.reads
        lines += describe_change(server.name, name, server.pins.get(name), listed[name], reads=reads)
    return Candidate(
        holder=holder, selector="call_", intent="", source="\n".join(lines),
        verdict={"accepted": True, "faults": [], "policy": SHIPPED.version}, checks=(),
        provenance=MethodProvenance(missions=[], trust="external", at=at, by=f"the server {server.name}"),
        pins=tuple(json.dumps(listed[name].told, sort_keys=True) for name in changed),
    )  # fmt: skip


def plan(server: McpServer, listed: Mapping[str, ListedTool]) -> GrantDocument:
    """Return the document of a server that is not granted yet, with the tools that it lists."""
    seen = replace(server, pins=listed)
    return {
        "name": server.name, "kind": KIND, "target": server.target, "sink": "blind", "user": server.user,
        "granted_at": "", "oid": "", "selector": "call_", "host": "", "unattended": False,
        "tools": [list_line(seen, each) for each in sorted(listed)],
    }  # fmt: skip


def note_list(capability: UvmObject, listed: Mapping[str, ListedTool]) -> None:
    """Withdraw the tools that differ from their pins; one that is again as it was approved comes back."""
    slots, server = own_slots(capability), read_server(capability)
    changes = {name: why for name, why in find_changes(server, listed).items() if why}
    if changes != server.withdrawn:
        slots[_WITHDRAWN].clear()
        slots[_WITHDRAWN].update(changes)


def settle(root: Root, said: ApprovalState) -> None:
    """Keep the tools that a person approved as pins, exactly as the question had them."""
    asked = approvals.find_approval(root, said.name)
    if asked is None or said.word != "approved" or not said.changed:
        return
    pins: Sequence[str] = asked.candidate.get("pins") or ()
    holder = next((each for each in list_servers(root) if reference(each) == asked.candidate["holder"]), None)
    if holder is None:
        return
    for text in pins:
        slots, told = own_slots(holder), json.loads(text)
        slots[_PINS][told["name"]] = text
        slots[_WITHDRAWN].pop(told["name"], None)
