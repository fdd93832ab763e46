"""ALFRED's eyes: briefs to him about figures that rose, and his audits of the running system.

Figures and findings are computed without a model, and he tells them. Nothing here changes the mind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from batos.autotelic import levers, risen_figures, trials
from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.model_missions import MissionTask, ModelMissions
from batos.genesis import persona_models
from batos.genesis.reconcile import Reconciler
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.minds import own_figures
from batos.protocol.errors import BatosError, OllamaError
from batos.protocol.image_documents import CountersDocument
from batos.protocol.motion_documents import AlarmDocument, RatesDocument
from batos.protocol.server_documents import FindingDocument
from batos.protocol.trial_documents import SelfAuditAnswer, SelfAuditDocument
from batos.records import own_briefs
from batos.records.own_briefs import Fact

#: The audits by the names of their protocols, with what is asked: the words are triggers of these in the codex.
_AUDITS: Final[Mapping[str, str]] = {
    "System Integrity Audit": "Run an integrity audit of the system and report what holds and what does not.",
    "Cognitive Efficiency Audit": "Do an efficiency audit of the last seven days and name what could be saved.",
}

_log = structlog.get_logger("batos.motion")


@dataclass(frozen=True, slots=True)
class SelfAudits:
    """Watches the mind's own figures when it wakes, and audits the running system when a person asks for it.

    Missions are asked in the name of `user`.
    """

    image: LivingImage
    clock: Callable[[], datetime]
    reconciler: Reconciler
    counters: Callable[[Root], CountersDocument]
    rates: Callable[[], RatesDocument]
    missions: ModelMissions
    user: str

    def duty(self) -> Duty:
        """Return the duty of the heartbeat: figures change with missions, and each day with what they are compared."""
        return Duty("alarms", lambda root: f"{iso(self.clock())[:10]} {sum(root[roots.TALLY].values())}", self.watch)

    async def watch(self, allowance: Allowance) -> str:
        """Find what rose, ask ALFRED once about each alarm that stands, and return the new ones in words.

        An alarm is written down before it is asked about, and asked about by one brief, which is the same each time: a
        killed process asks no second mission.
        """
        try:
            await self._compute()
        except BatosError as error:  # what the last audit found still holds
            _log.info("alarms.no_audit", reason=error.as_dict())
        found, today = await asyncio.to_thread(self._find), iso(self.clock())[:10]
        standing = await self.image.shared.apply(partial(_note, found=found, today=today))
        waiting = [each for each in standing if each["mission"] is None]
        if waiting and allowance.may_ask() and await self.missions.can_ask():
            for each in waiting:
                await self._ask_about(each, allowance)
        return ", ".join(f"{each['figure']} rose" for each in waiting)

    async def _ask_about(self, alarm: AlarmDocument, allowance: Allowance) -> None:
        if not allowance.may_ask():
            return
        figure, before = alarm["figure"], (self.missions.calls, self.missions.tokens)
        title = risen_figures.find_figure(figure).title
        text = f"Internal alarm of {alarm['day']}. {title}. Report what rose, and what it was before."
        told = await self.missions.report(_task(text, self.user, f"{own_briefs.ALARM}{figure}"))
        allowance.spend(self.missions.calls - before[0], self.missions.tokens - before[1])
        if told is not None:
            asked: AlarmDocument = {**alarm, "mission": str(told["id"])}
            await self.image.shared.apply(lambda root: own_briefs.put_alarms(root, {figure: asked}))

    def _find(self) -> dict[str, Sequence[Fact]]:
        """Return what rose, with the facts of each figure."""
        with self.image.snapshot() as root:
            days = risen_figures.read_figures(self.counters(root)["days"])
            last = persona_models.last_audit(root)
        found: dict[str, Sequence[Fact]] = {}
        if last is not None and not all(each["ok"] for each in last["findings"]):
            found["audit"] = [*_list_facts(last["findings"])]
        for name, known in days.items():
            figure = risen_figures.find_figure(name)
            rise = risen_figures.find_rise(known, counted=bool(figure.of))
            if rise is not None:
                found[name] = figure.describe(rise)
        return found

    async def _compute(self) -> tuple[list[FindingDocument], OllamaError | None]:
        """Return the findings on codex, image and models, and keep them; without those on models if Ollama is away.

        Raises: CodexError: a file of the codex is wrong.
        """
        auditing, error = self.reconciler.auditing, None
        try:
            findings, _ = await auditing.audit_after(await self.reconciler.plan())
        except OllamaError as away:
            error = away
            with self.image.snapshot() as root:
                findings = auditing.audit(root, self.reconciler.codex(), None, auditing.settings.profile)
        return [each.as_dict() for each in findings], error

    async def run(self, tell: Callable[[str], object], user: str | None = None) -> SelfAuditDocument:
        """Compute both audits, and have ALFRED answer a user for each; `tell` hears of each step.

        Where no model answers, what was computed is returned alone with the error.
        """
        tell("Computing the audit ...")
        findings, away = await self._compute()
        figures = own_figures.tell_week(await asyncio.to_thread(self.rates))
        audits: list[SelfAuditAnswer] = []
        error: BatosError | None = away
        try:
            for name, facts in () if away else zip(_AUDITS, ([*_list_facts(findings)], figures), strict=True):
                await self.missions.check()
                tell(f"{name} ...")
                audits.append(await self._audit(name, facts, user or self.user))
        except BatosError as refused:
            error = refused
        return SelfAuditDocument(
            ok=all(each["ok"] for each in findings), findings=findings, figures=[text for _, text, _ in figures],
            audits=audits, error=None if error is None else error.as_dict(),
        )  # fmt: skip

    async def _audit(self, name: str, facts: Sequence[Fact], user: str) -> SelfAuditAnswer:
        """Ask for one audit, anew each time. Raises: BatosError: there is no answer."""
        client = f"audit {name}"
        await self.image.shared.apply(lambda root: own_briefs.put_facts(root, client, facts))
        brief, _ = _task(_AUDITS[name], user, client).brief()
        told = await self.missions.ask({**brief, "effort": "cycle", "priority": 0, "idempotency_key": None}, [])
        verdict = (told["provenance"].get("gate") or {}).get("state", "unchecked")
        return SelfAuditAnswer(name=name, mission=str(told["id"]), answer=str(told["answer"]), verdict=str(verdict))


def _task(text: str, user: str, client: str) -> MissionTask:
    return MissionTask(text, user, client, persona=own_figures.KEEPER)


def _list_facts(findings: Sequence[FindingDocument]) -> Iterator[Fact]:
    """Yield how many checks of an audit hold, and each that does not."""
    held = sum(each["ok"] for each in findings)
    yield "audit", f"In the integrity audit {held} of {len(findings)} checks hold.", str(held)
    yield from (("audit", f"{each['id']}: {each['what']}.", None) for each in findings if not each["ok"])


def _note(root: Root, found: Mapping[str, Sequence[Fact]], today: str) -> list[AlarmDocument]:
    """Write down the alarms that begin, at most one a day for a figure, and those that are over; list what stands."""
    known = own_briefs.list_alarms(root)
    changed: dict[str, AlarmDocument] = {
        name: {**each, "standing": False} for name, each in known.items() if each["standing"] and name not in found
    }
    for name, facts in found.items():
        before = known.get(name)
        if before is None or not (before["standing"] or before["day"] == today):
            own_briefs.put_facts(root, f"{own_briefs.ALARM}{name}", facts)
            changed[name] = AlarmDocument(
                figure=name, day=today, facts=[text for _, text, _ in facts],
                lever=_find_lever(root, risen_figures.find_figure(name).line), mission=None, answered=False,
                standing=True,
            )  # fmt: skip
    if changed:
        own_briefs.put_alarms(root, changed)
    return own_briefs.list_standing(root)


def _find_lever(root: Root, line: str) -> str:
    """Return the lever that decay of a line of the metric would have tried first; "" if no lever is for it."""
    named = [each.name for each in levers.list_levers(root) if line in each.kind.lines]
    return min(named, key=lambda name: len(trials.list_begun(root, name)), default="")
