"""The verbs by which a person grants what missions may do in the world, and answers for effects that are unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from batos.agency import granting, written_tools
from batos.agency.api_transport import ApiSender
from batos.agency.granting import effect_document
from batos.agency.look_ups import grants
from batos.agency.mcp import server_commands, server_records
from batos.agency.mcp.server_records import McpServer
from batos.agency.records import api_records, call_records, effect_records, look_up_records
from batos.agency.records.effect_records import GrantKind
from batos.agency.records.look_up_records import GrantTerms, LookUpKind
from batos.image import ownership, roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.inference import outside_calls
from batos.objects.prototype import own_slots, reference
from batos.protocol.effect_documents import AddedGrant, EffectDocument, RevokedGrant
from batos.protocol.errors import BriefError
from batos.records import tools
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.effect_verbs import (
    EFFECTS_SETTLE,
    GRANTS_ADD,
    GRANTS_REVOKE,
    EffectsSettleArgs,
    GrantArgs,
    GrantsAddArgs,
)

T = TypeVar("T")
#: Terms of a grant that only one of an API has.
_API: Final = ("description", "secret_header")
#: Terms that only a server has.
_SERVER: Final = ("command", "env", "reads", "dry_run")


class EffectChanges:
    """Changes grants, and what is known of effects."""

    def __init__(self, uvm: UVM, shield: Shield) -> None:
        self._uvm, self._shield = uvm, shield

    def verbs(self) -> Mapping[str, Handler]:
        """Return the function of each verb, by name."""
        return dict(
            (
                bind(GRANTS_ADD, self._add),
                bind(GRANTS_REVOKE, self._revoke),
                bind(EFFECTS_SETTLE, self._settle),
            )
        )

    async def _add(self, given: GrantsAddArgs, *_told: object) -> AddedGrant:
        server = next((each for each in _SERVER if getattr(given, each)), None)
        if server is not None and given.kind != "mcp":
            raise BriefError(f"{server} is for mcp", field=f"args.{server}", remedy="Leave it out.")
        match given.kind:
            case "file" | "http" as acts:
                return await self._add_sink(given, acts)
            case "mcp":
                return await self._add_server(given)
            case reads:
                return await self._add_look_up(given, reads)

    async def _add_sink(self, given: GrantsAddArgs, kind: GrantKind) -> AddedGrant:
        if given.blind and kind == "file":
            raise BriefError("a file can be read back", field="args.blind", remedy="Leave --blind out.")
        self._refuse_terms(given)
        settings, host = self._uvm.settings, self._uvm.image.publishing.host
        data, ports = granting.data_places(settings), granting.own_ports(settings)
        target, usual = granting.check_target(kind, given.target, settings.home, data, ports)
        name = granting.check_name(given.name or granting.name_for(kind, target))
        told = given.user or settings.asker, iso(self._uvm.clock())
        sink = "blind" if given.blind else usual

        def change(root: Root) -> AddedGrant:
            made = effect_records.add_capability(root, name, kind, target, sink, told)
            if given.unattended:
                made.unattended = True
            if host is not None:
                effect_records.bind_capability(made, host)
            roots.connection_of(root).add(made)  # it has a reference from now on
            return {"grant": granting.grant_document(made)}

        return await self._shield(self._uvm.image.shared.apply(change))

    async def _add_server(self, given: GrantsAddArgs) -> AddedGrant:
        """Grant a server, once it has listed its tools; a person is asked about all of them."""
        at, server = iso(self._uvm.clock()), await self._server_of(given)
        listed = await self._uvm.readiness.servers.opener.list_tools(server)
        unknown = next((each for each in given.reads if each not in listed), None)
        if unknown is not None:
            remedy = f"It has: {', '.join(sorted(listed)) or 'none'}."
            raise BriefError(f"the server has no tool {unknown!r}", field="args.reads", remedy=remedy)
        if given.dry_run:
            asked = server_records.question_about(server, "", listed, at)
            return {"grant": server_records.plan(server, listed), "question": asked.source if asked else ""}
        tells: list[Callable[[], None]] = []

        def change(root: Root) -> AddedGrant:
            made = server_records.add_server(root, server, at)
            made.unattended = given.unattended
            roots.connection_of(root).add(made)
            asked = server_records.question_about(server, reference(made), listed, at)
            told = AddedGrant(grant=granting.grant_document(made))
            if asked is not None:
                told["approval"], tell = self._uvm.approvals.ask_named(root, asked)
                told["question"] = asked.source
                tells[:] = [tell]
            return told

        found = await self._shield(self._uvm.image.shared.apply(change))
        for tell in tells:
            tell()
        return found

    async def _server_of(self, given: GrantsAddArgs) -> McpServer:
        """Return the server that is to be granted. Raises: BriefError, Refused: it may not be."""
        self._refuse_terms(given)
        if given.blind:
            raise BriefError("each call asks before", field="args.blind", remedy="Leave --blind out.")
        settings = self._uvm.settings
        server = McpServer(
            granting.check_name(given.name or given.target), given.user or settings.asker, env=tuple(given.env),
            reads=tuple(given.reads), secret_header=given.secret_header or "",
        )  # fmt: skip
        if len(given.command) == 1 and "://" in given.command[0]:
            url, _ = grants.check_look_up("api", given.command[0], GrantTerms(), str, granting.own_ports(settings))
            return replace(server, url=url)
        command = await asyncio.to_thread(server_commands.resolve_command, given.command)
        return replace(server, command=command, files=await asyncio.to_thread(server_commands.digest_files, command))

    def _refuse_terms(self, given: GrantsAddArgs) -> None:
        """Raise BriefError for a term of a look-up in a grant of effects."""
        for name in ("hosts", "paths", "ports", "rate", "budget", "until", "guests", "book", *_API):
            if getattr(given, name) and (given.kind, name) != ("mcp", "secret_header"):
                remedy = "Leave it out: it is for grants to look up."
                raise BriefError(f"--{name} is not for {given.kind}", field=f"args.{name}", remedy=remedy)

    async def _add_look_up(self, given: GrantsAddArgs, kind: LookUpKind) -> AddedGrant:
        if given.blind:
            raise BriefError("a look-up changes nothing", field="args.blind", remedy="Leave --blind out.")
        settings = self._uvm.settings
        terms = GrantTerms(
            tuple(given.hosts), tuple(given.paths), tuple(given.ports), given.rate, given.budget, given.until or "",
            given.guests, given.book or "",
        )  # fmt: skip

        def check_folder(target: str) -> str:
            return granting.check_target("file", target, settings.home, granting.data_places(settings))[0]

        for field in [each for each in _API if kind != "api" and getattr(given, each)]:
            raise BriefError(f"--{field.replace('_', '-')} is for api", field=f"args.{field}", remedy="Leave it out.")
        target, terms = grants.check_look_up(kind, given.target, terms, check_folder, granting.own_ports(settings))
        name = granting.check_name(given.name or grants.name_of_look_up(kind, target))
        told = given.user or settings.asker, iso(self._uvm.clock())
        if given.secret_header:
            await asyncio.to_thread(ApiSender(settings.home).read_secret, name)
        text = await asyncio.to_thread(api_records.read_file, given.description) if given.description else ""

        def change(root: Root) -> AddedGrant:
            made = look_up_records.add_look_up(root, name, kind, target, terms, told)
            if given.unattended:
                made.unattended = True
            if kind == "api":
                api_records.describe_grant(root, made, text, given.secret_header or "")
            roots.connection_of(root).add(made)
            return {"grant": granting.grant_document(made)}

        return await self._shield(self._uvm.image.shared.apply(change))

    async def _revoke(self, given: GrantArgs, *_told: object) -> RevokedGrant:
        def change(root: Root) -> RevokedGrant:
            gone = effect_records.revoke_capability(root, given.name, given.user)
            if own_slots(gone).get(tools.DECLARES):
                api_records.withdraw(root, given.name, iso(self._uvm.clock()))
            return {"revoked": granting.grant_document(gone)}

        found = await self._shield(self._uvm.image.shared.apply(change))
        self._uvm.releaser.job.wake()
        return found

    async def _settle(self, given: EffectsSettleArgs, *_told: object) -> EffectDocument:
        by, at = given.user or self._uvm.settings.asker, iso(self._uvm.clock())

        def change(root: Root) -> EffectDocument:
            found = effect_records.find_effect(root, given.effect)
            if given.user is not None and not ownership.is_asked_by(root, [found["mission"]], given.user):
                raise ownership.no_mission(found["mission"], given.user, "effect")
            settled = effect_records.settle(root, given.effect, done=given.outcome == "done", by=by, at=at)
            return effect_document(root, settled)

        found = await self._shield(self._uvm.image.shared.apply(change))
        if found["operation"] == call_records.OPERATION:  # what a retry of its mission finds in the journal
            value = written_tools.settled_result(at) if given.outcome == "done" else None
            await self._shield(outside_calls.settle(self._uvm.journal, found["mission"], found["key"], value, at))
        return found
