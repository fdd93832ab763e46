"""ALFRED's eyes: figures of the mind's own work that rose, briefs to him about them, and audits of the system.

Figures and findings are computed without a model, and he tells them. Nothing here changes the mind.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

import structlog

from batos.autotelic import entropy, entropy_days, slot_values, trials
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
from batos.protocol.image_documents import CountersDocument, CountsDocument
from batos.protocol.motion_documents import AlarmDocument, RatesDocument
from batos.protocol.server_documents import FindingDocument
from batos.protocol.trial_documents import SelfAuditAnswer, SelfAuditDocument
from batos.records import own_briefs
from batos.records.own_briefs import Fact
from batos.terminal.console import count_text

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
        title = find_figure(figure).title
        text = f"Internal alarm of {alarm['day']}. {title}. Report what rose, and what it was before."
        told = await self.missions.report(_task(text, self.user, f"{own_briefs.ALARM}{figure}"))
        allowance.spend(self.missions.calls - before[0], self.missions.tokens - before[1])
        if told is not None:
            asked: AlarmDocument = {**alarm, "mission": str(told["id"])}
            await self.image.shared.apply(lambda root: own_briefs.put_alarms(root, {figure: asked}))

    def _find(self) -> dict[str, Sequence[Fact]]:
        """Return what rose, with the facts of each figure."""
        with self.image.snapshot() as root:
            days = read_figures(self.counters(root)["days"])
            last = persona_models.last_audit(root)
        found: dict[str, Sequence[Fact]] = {}
        if last is not None and not all(each["ok"] for each in last["findings"]):
            found["audit"] = [*_list_facts(last["findings"])]
        for name, known in days.items():
            figure = find_figure(name)
            rise = find_rise(known, counted=bool(figure.of))
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
                lever=_find_lever(root, find_figure(name).line), mission=None, answered=False,
                standing=True,
            )  # fmt: skip
    if changed:
        own_briefs.put_alarms(root, changed)
    return own_briefs.list_standing(root)


def _find_lever(root: Root, line: str) -> str:
    """Return the lever that decay of a line of the metric would have tried first; "" if no lever is for it."""
    named = [each.name for each in slot_values.list_levers(root) if line in each.kind.lines]
    return min(named, key=lambda name: len(trials.list_begun(root, name)), default="")


#: The first days, which later ones are compared with; the sum that is an alarm, and the largest one, in spreads, so
#: that an alarm ends some days after its cause.
BASE, _ALARM, _MOST = 20, 8.0, 12.0
#: The least spread: of the roots of counts, which have it by chance alone, and of the logarithms of means; the least
#: mean that has a logarithm here.
_COUNTED, _MEASURED, _LEAST = 1.0, 0.1, 1e-3
#: Counters of missions that people asked, not of the whole mind; those with a part for each code, or for each check.
_ASKED: Final = frozenset({"failures", "gate", "revised", "loads", "tokens"})
_PARTED: Final = ("failures", "gate")


class FigureDay(NamedTuple):
    """A day of a figure: how often something happened, or how much there was in all, in so many cases."""

    day: str
    amount: float
    cases: int


class Rise(NamedTuple):
    """A rise that stands on the newest day: the amount that was usual in as many cases, and the sum in spreads."""

    newest: FigureDay
    usual: float
    total: float


class DayFigure(NamedTuple):
    """A figure by its headline, what is counted (a noun, and of what), and the line of the metric that it goes with.

    Without `of` it is a mean, which stands in the braces of its noun.
    """

    title: str
    noun: str = ""
    of: str = ""
    line: str = ""

    def describe(self, found: Rise) -> tuple[Fact, ...]:
        """Return what rose, from what, and why that is an alarm."""
        day, amount, cases = found.newest
        figure = _write(amount if self.of else amount / cases)
        now, usual = (self.noun.format(each) for each in (figure, _write(found.usual / cases)))
        if self.of:
            now = f"there were {count_text(round(amount), self.noun)} {self.of} in {count_text(cases, 'mission')}"
            usual = f"as many missions had {_write(found.usual)} {self.noun}s {self.of} at the mean"
        beyond = f"What is beyond the usual adds up to {_write(found.total)} spreads; above {_ALARM:g} is an alarm."
        said = (f"On {day} {now}.", figure), (f"Before, {usual}.", None), (beyond, None)
        return tuple(("counters", text, asked) for text, asked in said)


#: Figures by their counters; {}: a code, a check, or a mean.
_FIGURES: Final[Mapping[str, DayFigure]] = {
    "conflicts": DayFigure("protocol conflict: commits meet conflicts more often", "conflict", "of commits"),
    "spills": DayFigure("spill: models leave the graphics memory more often", "spill", "of models"),
    "loads": DayFigure("warning: models are reloaded more often", "load", "of models"),
    "retired": DayFigure("integrity: methods are retired more often", "retirement", "of methods"),
    "refused": DayFigure("guardian: verdicts are refused more often", "refusal", "by the guardian"),
    "revised": DayFigure("alert: drafts are rejected more often", "revision", "of answers", "Hrel"),
    "failures": DayFigure("error: missions fail with the code {} more often", "failure", "with the code {}"),
    "gate": DayFigure("gate verdict: faults in {} are found more often", "fault", "in {}", "Hrel"),
    "first_token": DayFigure(
        "high latency: the first token comes later", "the first token took {} seconds at the mean"
    ),
    "tokens": DayFigure("metrics: the tokens of an answer are up", "a mission took {} tokens at the mean"),
    "audit": DayFigure("integrity check: checks of the computed audit fail"),
}


def find_figure(name: str) -> DayFigure:
    """Return the figure of a name: a counter's, with a code or check behind a dot.

    >>> find_figure("gate.numbers").of
    'in numbers'
    """
    key, _, part = name.partition(".")
    found = _FIGURES[key]
    return found._replace(title=found.title.format(part), of=found.of.format(part))


def find_rise(days: Sequence[FigureDay], *, counted: bool) -> Rise | None:
    """Return the rise of a figure that stands on its newest day; None: it is as usual, or too few days are known.

    If it is `counted`, a day is compared with what so many cases had before, else its mean with earlier means.

    >>> usual = [FigureDay("", 1, 10)] * 25
    >>> find_rise([*usual, FigureDay("", 3, 10)], counted=True)
    >>> find_rise([*usual, FigureDay("", 60, 10)], counted=True).total
    12.0
    """
    if len(days) <= BASE:
        return None
    share = sum(each.amount for each in days[:BASE]) / sum(each.cases for each in days[:BASE])
    falls = [-_level(each, share if counted else None) for each in days]
    beginning = entropy.read_beginning(falls, BASE, _COUNTED if counted else _MEASURED)
    total = [0.0, *(() if beginning is None else entropy.cumulate(falls[BASE:], beginning, _MOST))][-1]
    return Rise(days[-1], share * days[-1].cases, total) if total > _ALARM else None


def _level(each: FigureDay, share: float | None) -> float:
    """Return what a day is beyond the usual share, in roots, whose spread by chance is 1; without one its logarithm."""
    if share is None:
        return math.log(max(_LEAST, each.amount / each.cases))
    return 2 * (math.sqrt(each.amount + 3 / 8) - math.sqrt(each.cases * share + 3 / 8))


def read_figures(days: Mapping[str, CountsDocument]) -> dict[str, list[FigureDay]]:
    """Return the days of each figure, from the counters of those on which people asked enough missions."""
    known = {day: counts for day, counts in sorted(days.items()) if _count(counts, "asked.ended") >= entropy_days.LEAST}
    names = {name for name, figure in _FIGURES.items() if figure.of and name not in _PARTED}
    names |= {f"{key}.{part}" for each in known.values() for key in _PARTED for part in each["asked"].get(key, {})}
    found = {
        name: [FigureDay(day, _count(each, name), int(_count(each, "asked.ended"))) for day, each in known.items()]
        for name in (*sorted(names), "tokens")
    }
    heard = {day: each["first_token"] for day, each in known.items() if "first_token" in each}
    found["first_token"] = [FigureDay(day, each["seconds"], sum(each["counts"])) for day, each in heard.items()]
    return found


def _count(counts: CountsDocument, name: str) -> float:
    key, _, part = name.partition(".")
    if key == "refused":
        key, part = "verdicts", key
    kept = (counts["asked"] if key in _ASKED else counts).get(key, 0)
    return float(kept.get(part, 0) if part and kept else kept)


def _write(value: float) -> str:
    """Write a number with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
