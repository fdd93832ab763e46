"""The verbs by which a person grants what missions may do in the world, and answers for effects that are unknown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from batos.agency import granting
from batos.agency.api_transport import ApiSender
from batos.agency.granting import effect_document
from batos.agency.records import api_records, effect_records
from batos.image import ownership, roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.objects.prototype import own_slots
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
    GrantsAddArgs,
    GrantsRevokeArgs,
)

T = TypeVar("T")


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
        if given.kind == "api":
            return await self._add_api(given)
        if given.description or given.secret_header:
            raise BriefError(
                f"a grant of kind {given.kind} is no API", field="args.kind", remedy="Write `api` for one."
            )
        if given.blind and given.kind == "file":
            raise BriefError("a file can be read back", field="args.blind", remedy="Leave --blind out.")
        settings, host = self._uvm.settings, self._uvm.image.publishing.host
        data, ports = granting.data_places(settings), granting.own_ports(settings)
        target, usual = granting.check_target(given.kind, given.target, settings.home, data, ports)
        name = granting.check_name(given.name or granting.name_for(given.kind, target))
        told = given.user or settings.asker, iso(self._uvm.clock())
        sink = "blind" if given.blind else usual

        def change(root: Root) -> AddedGrant:
            made = effect_records.add_capability(root, name, given.kind, target, sink, told)
            if given.unattended:
                made.unattended = True
            if host is not None:
                effect_records.bind_capability(made, host)
            roots.connection_of(root).add(made)  # it has a reference from now on
            return {"grant": granting.grant_document(made), "calls": []}

        return await self._shield(self._uvm.image.shared.apply(change))

    async def _add_api(self, given: GrantsAddArgs) -> AddedGrant:
        """Grant a described API: its object is declared, and made by the first message to it."""
        settings, at = self._uvm.settings, iso(self._uvm.clock())
        target, sink = granting.check_target("api", given.target, settings.home, ports=granting.own_ports(settings))
        name = granting.check_name(given.name or granting.name_for("api", target))
        if given.secret_header:
            ApiSender(settings.home).read_secret(name)
        text = await asyncio.to_thread(api_records.read_file, given.description) if given.description else ""

        def change(root: Root) -> AddedGrant:
            made = effect_records.add_capability(root, name, "api", target, sink, (given.user or settings.asker, at))
            made.secret_header, made.declares, made.unattended = given.secret_header or "", text, given.unattended
            roots.connection_of(root).add(made)
            if text:
                api_records.declare(root, name, text)
            return {"grant": granting.grant_document(made), "calls": api_records.list_calls(root, name)}

        return await self._shield(self._uvm.image.shared.apply(change))

    async def _revoke(self, given: GrantsRevokeArgs, *_told: object) -> RevokedGrant:
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

        return await self._shield(self._uvm.image.shared.apply(change))
