"""The verbs by which a person says what an answer was worth, lets the mind wake by itself, and has it audited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from batos.autotelic.model_missions import ModelMissions
from batos.autotelic.self_audits import SelfAudits
from batos.client.pending import OnEvent
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.errors import BriefError, Refused
from batos.protocol.motion_documents import HeartbeatDocument, OutcomeAct, RatedPage
from batos.protocol.trial_documents import SelfAuditDocument
from batos.records import outcomes
from batos.records.outcomes import NotedAct
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.uvm import UVM
from batos.verbs.motion_verbs import (
    HEARTBEAT,
    HEARTBEAT_NOW,
    HEARTBEAT_PAUSE,
    HEARTBEAT_RESUME,
    RATE,
    HeartbeatArgs,
    HeartbeatTurnArgs,
    RateArgs,
)
from batos.verbs.trial_verbs import TRIALS_AUDIT, TrialAuditArgs


def verbs(uvm: UVM, shield: Shield) -> Mapping[str, Handler]:
    """Return the function of each verb, by name. From here on the heartbeat asks ALFRED about figures that rose."""
    missions = ModelMissions(uvm.missions.ask, uvm.readiness.answers, uvm.readiness.check)
    audits = SelfAudits(
        uvm.image, uvm.clock, uvm.reconciler, uvm.counters.snapshot, uvm.rates, missions, uvm.settings.asker
    )  # fmt: skip
    uvm.heartbeat.add(audits.duty())

    async def rate(given: RateArgs, *_told: object) -> RatedPage:
        if given.verdict is None:
            raise BriefError("an answer is good or bad", field="args.verdict", remedy="Say which: `batos rate good`.")
        mission = await asyncio.to_thread(uvm.readings.resolve_mission, given.mission, given.user)
        act: OutcomeAct = "rated_good" if given.verdict == "good" else "rated_bad"
        noted = NotedAct(act, iso(uvm.clock()), given.user or uvm.settings.asker, given.why or "")
        return await shield(uvm.image.shared.apply(partial(_rate, mission=mission, noted=noted)))

    async def turn(given: HeartbeatTurnArgs, *_told: object, on: bool) -> HeartbeatDocument:
        return await shield(uvm.heartbeat.turn(given.user or uvm.settings.asker, on=on))

    async def show(given: HeartbeatArgs, *_told: object) -> HeartbeatDocument:
        return await asyncio.to_thread(uvm.heartbeat.describe, given.user)

    async def beat(*_told: object) -> HeartbeatDocument:
        return await shield(uvm.heartbeat.beat(), uvm.heartbeat.give_way)

    async def audit(given: TrialAuditArgs, on_event: OnEvent, *_told: object) -> SelfAuditDocument:
        uvm.heartbeat.give_way()
        return await shield(audits.run(lambda step: on_event("audit.step", {"step": step}), given.user))

    return dict(
        (
            bind(RATE, rate),
            bind(HEARTBEAT, show),
            bind(HEARTBEAT_RESUME, partial(turn, on=True)),
            bind(HEARTBEAT_PAUSE, partial(turn, on=False)),
            bind(HEARTBEAT_NOW, beat),
            bind(TRIALS_AUDIT, audit),
        )
    )


def _rate(root: Root, mission: str, noted: NotedAct) -> RatedPage:
    """Note a verdict on an answer. Raises: Refused: the mission has none."""
    status = roots.mission_record(root, mission).status.word
    if status not in ("done", "undone"):
        raise Refused(f"{mission} is {status}: there is no answer", field="mission", remedy="Rate it when it is done.")
    outcomes.note(root, mission, noted)
    found = outcomes.list_outcomes(root, mission)
    return {"mission": mission, "outcomes": found, "outcome": outcomes.mean(found)}
