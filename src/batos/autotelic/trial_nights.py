"""Nights of trials: a lever is chosen, its values are compared in copies of the mind, the better one is kept."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple, TypeAlias, TypeVar

from batos.autotelic import entropy, entropy_days, slot_values, trial_verdicts, trials
from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.slot_values import Changes, Lever, SlotPlace, SlotWrite
from batos.autotelic.trials import PairedAnswer, ScreenAnswer, TrialAnswer
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.protocol.errors import BriefError, Refused
from batos.records.gold_items import GoldItem, ItemSplit
from batos.records.redefinitions import ChangeOrigin, Value

T = TypeVar("T")

#: The fresh questions without which a trial is not begun: fewer could not show a gain.
FRESH: Final = 60
#: The time after which decay may name a lever again.
AGAIN: Final = timedelta(days=30)
#: The questions that choose among values, and those that judge the chosen one.
USES: Final[tuple[ItemSplit, ItemSplit]] = ("propose", "judge")


class AskedReply(NamedTuple):
    """The end of a question that was asked in a copy of the mind: its answer ("" if it failed) and what it cost.

    `ruled` is the reason for which a rule made the answer, if one did; `passed` is whether the gate let it pass.
    """

    answer: str
    mission: str = ""
    ruled: str = ""
    passed: bool = True
    ended: bool = True
    calls: int = 1
    tokens: int = 0


async def _no_models() -> Sequence[str]:
    """Return no models: none is tried."""
    return ()


@dataclass(frozen=True, slots=True)
class TrialParts:
    """The parts of trials: questions of either use, who asks them with other values, and the worth of an answer.

    `can_ask` tests if a model would answer now, `models` lists those that Ollama has beside the codex's. `ask` returns
    None where it is told to leave, or where no form is to blame that nothing came of a question. `worth` takes a reply
    and the answer of the other form.
    """

    image: LivingImage
    clock: Callable[[], datetime]
    questions: Callable[[Root, ItemSplit], Sequence[GoldItem]]
    ask: Callable[[GoldItem, Changes, Callable[[], bool]], Awaitable[AskedReply | None]]
    worth: Callable[[GoldItem, AskedReply, str], float]
    can_ask: Callable[[], Awaitable[bool]]
    models: Callable[[], Awaitable[Sequence[str]]] = _no_models

    async def read(self, look: Callable[[Root], T]) -> T:
        """Return what is found in the newest state of the image."""

        def read() -> T:
            with self.image.snapshot() as root:
                return look(root)

        return await asyncio.to_thread(read)

    async def write(self, change: Callable[[Root], T]) -> T:
        """Change the image in one commit."""
        return await self.image.shared.apply(change)


class _Left(Exception):
    """Ends a night: somebody asks something, or the budget is spent."""


@dataclass(slots=True)
class Night:
    """The allowance of one night, and how many questions of each trial it has asked."""

    allowance: Allowance
    asked: dict[str, int] = field(default_factory=dict)

    def check(self) -> None:
        """Raise _Left if no more may be asked."""
        if not self.allowance.may_ask():
            raise _Left


#: Tries the values of a trial with one question. Raises: _Left: it was told to leave, and nothing is noted.
_Step: TypeAlias = Callable[[str, GoldItem, Night], Awaitable[None]]


class Trials:
    """Tries one lever at a time on questions that no proposal has seen, and undoes what turns out to be worse."""

    def __init__(self, parts: TrialParts) -> None:
        self.parts = parts

    def duty(self) -> Duty:
        """Return the duty of the heartbeat; whenever items or trials change there may be something to do.

        Each day has calls anew, and a lever may be due by then: it is looked at once also where nothing changed.
        """
        return Duty("trials", self._mark, self._work_or_tell)

    def _mark(self, root: Root) -> str:
        words = [f"{name}={each['state']}" for name, each in root[roots.TRIALS].items()]
        known = sorted(each.id for use in USES for each in self.parts.questions(root, use))
        today = iso(self.parts.clock())[:10]
        return hashlib.sha256(" ".join([today, *words, *known]).encode()).hexdigest()[:16]

    async def work(self, allowance: Allowance) -> str:
        """Go on with what is on probation and with the trial that goes on, or begin one; return what was done."""
        night = Night(allowance)
        if not allowance.may_ask() or not await self.parts.can_ask():
            return ""
        with suppress(_Left):
            for name in await self.parts.read(lambda root: trials.list_by_state(root, "promoted")):
                await self._ask_all(name, self._probe, night)
            while (found := await self._find_next()) is not None and await self._run(found, night):
                pass
        told = [
            (await self.parts.read(partial(trials.document, name=name)), count) for name, count in night.asked.items()
        ]
        return "; ".join(f"{each['id']} ({each['lever']}): {count} questions, {each['state']}" for each, count in told)

    async def _work_or_tell(self, allowance: Allowance) -> str:
        """Do the duty; where there was nothing to do for want of questions, tell how many are wanted."""
        return await self.work(allowance) or (await self.parts.read(self._find_want) if allowance.may_ask() else "")

    def _find_want(self, root: Root) -> str:
        if (running := trials.find_open(root)) is not None:
            return f"{running} waits for questions that it was not asked yet"
        known = len(self.parts.questions(root, USES[1]))
        return f"{known} of the {FRESH} questions that a trial needs" if known < FRESH else ""

    async def begin(self, slot: str, value: object, origin: ChangeOrigin) -> str:
        """Begin a trial of a value that a person names; it is judged like any other. Return its id.

        Raises: Refused: the slot may not be redefined or tried, another trial goes on, or too few questions have a
        known answer. BriefError: the value is none for it.
        """

        models = await self.parts.models()

        def change(root: Root) -> str:
            place = slot_values.find_place(root, slot)
            if place.name == entropy.NAME:
                what, remedy = "no answer depends on it", "`batos slot redefine` gives it a value."
                raise Refused(f"{place.name} cannot be tried: {what}", field="slot", remedy=remedy)
            checked = place.kind.check(place.holder, place.slot, value)
            _check_there(place, checked, models)
            acting = (SlotWrite(place.name, place.read()),)
            if checked == acting[0].value:
                raise BriefError(f"{place.name} is {value!r} now", field="value", remedy="Give another value.")
            known = len(_list_untried(root, place.name, self.parts.questions(root, USES[1])))
            if known < FRESH:
                raise Refused(
                    f"{known} questions with known answers may judge a change of it, and {FRESH} are wanted",
                    field="slot",
                    remedy="Remember more documents, and let questions be made of them: `batos heartbeat now`.",
                )
            kind = slot_values.find_kind(place.name)
            lever = Lever(place.name, kind, acting, ((SlotWrite(place.name, checked),),))
            return trials.begin(root, lever, lever.others, origin, self.parts.clock())

        return await self.parts.write(change)

    # -- one night

    async def _run(self, name: str, night: Night) -> bool:
        """Compare the values, try the best, as far as there are fresh questions; return whether the trial has ended."""
        if await self._state(name) == "screening":
            await self._ask_all(name, self._screen, night)
            await self.parts.write(partial(trial_verdicts.choose, name=name, at=iso(self.parts.clock())))
        if await self._state(name) == "trying":
            await self._ask_all(name, self._try, night)
            now = self.parts.clock()  # here no fresh question is left: it waits for some, but not for ever
            await self.parts.write(lambda root: trial_verdicts.end_stale(root, name, iso(now - AGAIN), iso(now)))
        return await self._state(name) not in trials.OPEN

    async def _ask_all(self, name: str, step: _Step, night: Night) -> None:
        """Ask every fresh question of a trial until its state changes. Raises: _Left: it was told to leave."""
        state = await self._state(name)
        use = USES[state != "screening"]
        for question in await self.parts.read(lambda root: self._fresh(root, name, use)):
            night.check()
            await step(name, question, night)
            night.asked[name] = night.asked.get(name, 0) + 1
            if await self._state(name) != state:
                return

    async def _screen(self, name: str, question: GoldItem, night: Night) -> None:
        """Ask a question with the acting values and with each candidate."""
        acting, candidates = await self.parts.read(
            lambda root: (trials.before_of(root, name), trials.candidates_of(root, name))
        )
        told = [await self._ask(question, each, night, name) for each in (acting, *candidates)]
        first = told[0].answer
        worth = tuple(self.parts.worth(question, each, first) for each in told)
        screened = ScreenAnswer(worth, sum(each.answer != first for each in told))
        at = iso(self.parts.clock())
        await self.parts.write(lambda root: trial_verdicts.note_screen(root, name, question.id, screened, at))

    async def _try(self, name: str, question: GoldItem, night: Night) -> None:
        """Ask a question in both forms; the first ones also a second time in the old form."""
        answered, old = await self._ask_pair(name, question, night)
        if await self.parts.read(lambda root: trials.count_noise(root, name)) < trials.NOISE:
            before = await self.parts.read(lambda root: trials.before_of(root, name))
            again = await self._ask(question, before, night, name)
            other = self.parts.worth(question, again, old.answer) - answered.pair.old
            await self.parts.write(lambda root: trial_verdicts.note_noise(root, name, question.id, other))
        at = iso(self.parts.clock())
        await self.parts.write(lambda root: trial_verdicts.note_answer(root, name, answered, at))

    async def _probe(self, name: str, question: GoldItem, night: Night) -> None:
        """Ask a question after a promotion in both forms."""
        answered, _ = await self._ask_pair(name, question, night)
        at = iso(self.parts.clock())
        await self.parts.write(lambda root: trial_verdicts.note_probe(root, name, answered.pair, at))

    async def _ask_pair(self, name: str, question: GoldItem, night: Night) -> tuple[TrialAnswer, AskedReply]:
        before, after = await self.parts.read(
            lambda root: (trials.before_of(root, name), trials.candidates_of(root, name)[0])
        )
        old = await self._ask(question, before, night, name)
        new = await self._ask(question, after, night, name)
        pair = PairedAnswer(
            question.id, question.kind,
            self.parts.worth(question, new, old.answer), self.parts.worth(question, old, new.answer),
            (new.passed, old.passed), (new.ended, old.ended), (new.calls, old.calls), (new.tokens, old.tokens),
        )  # fmt: skip
        return TrialAnswer(pair, old.mission, new.mission), old

    async def _ask(self, question: GoldItem, changes: Changes, night: Night, name: str) -> AskedReply:
        reply = await self.parts.ask(question, changes, night.allowance.go_on)
        if reply is None:
            raise _Left
        night.allowance.spend(reply.calls, reply.tokens)
        await self.parts.write(lambda root: trial_verdicts.note_cost(root, name, reply.calls, reply.tokens))
        return reply

    # -- what is tried next

    async def _find_next(self) -> str | None:
        """Return the trial that goes on, or begin one; None: there is nothing to try."""
        return await self.parts.read(trials.find_open) or await self._begin_due()

    async def _begin_due(self) -> str | None:
        """Begin a trial of the lever that is most due; None: none is."""
        now, models = self.parts.clock(), await self.parts.models()
        due = await self.parts.read(lambda root: self._find_due(root, now, models))
        if due is None:
            return None
        lever, why = due

        def change(root: Root) -> str | None:
            if trials.find_open(root) is not None or lever not in slot_values.list_levers(root, models):
                return None  # somebody began one meanwhile, or changed the values
            barred = trials.list_barred(root, lever.name, now)
            candidates = [each for each in lever.others if each not in barred]
            return trials.begin(root, lever, candidates, ChangeOrigin(trials.HEARTBEAT, iso(now), why), now)

        return await self.parts.write(change)

    def _find_due(self, root: Root, now: datetime, models: Sequence[str]) -> tuple[Lever, str] | None:
        """Return the lever to be tried, with the reason: one that decay names, else the one that was tried least.

        A lever is due when it was never tried, when there are enough questions that were made since it was, or when
        decay names it and it was not tried for a while. Where nothing is new, nothing is asked. Slots on probation are
        not changed again meanwhile.
        """
        if len(self.parts.questions(root, USES[0])) < trials.SCREENED:
            return None
        judges = self.parts.questions(root, USES[1])
        fallen = _find_fallen(root)
        found: list[tuple[bool, int, int]] = []
        every, since = slot_values.list_levers(root, models), iso(now - AGAIN)
        probed = trials.list_probed_slots(root)
        for place, lever in enumerate(every):
            begun = trials.list_begun(root, lever.name)
            fresh = [each for each in judges if each.made_at > begun[-1]] if begun else judges
            is_named = bool(lever.kind.lines & fallen.keys()) and (not begun or begun[-1] < since)
            has_values = bool(set(lever.others) - trials.list_barred(root, lever.name, now))
            is_free = has_values and probed.isdisjoint(each.slot for each in lever.acting)
            if is_free and (is_named or len(fresh) >= FRESH) and len(_list_untried(root, lever.name, judges)) >= FRESH:
                found.append((not is_named, len(begun), place))
        if not found:
            return None
        chosen = every[min(found)[-1]]
        lines = [] if min(found)[0] else sorted(chosen.kind.lines & fallen.keys())
        return chosen, f"{lines[0]}: {fallen[lines[0]]}" if lines else "there are questions that it was not tried with"

    def _fresh(self, root: Root, name: str, use: ItemSplit) -> list[GoldItem]:
        """List the questions that a trial may still ask, in an order that was fixed when it began."""
        lever = trials.lever_of(root, name)
        gone = trials.list_tried(root, lever) if use == USES[1] else trials.list_asked(root, name, judged=False)
        left = [each for each in self.parts.questions(root, use) if each.id not in gone]
        begun = f"{lever} {len(trials.list_begun(root, lever))}"
        return sorted(left, key=lambda each: hashlib.sha256(f"{begun} {each.id}".encode()).digest())

    async def _state(self, name: str) -> str:
        return await self.parts.read(lambda root: trials.state_of(root, name))


def _check_there(place: SlotPlace, value: Value, models: Sequence[str]) -> None:
    if place.slot == "model" and value not in (None, *models):
        remedy = f"Give one of: {', '.join(models)}." if models else "`ollama pull` fetches one."
        raise BriefError(f"Ollama has no model {value} that answers and fits", field="value", remedy=remedy)


def _list_untried(root: Root, lever: str, judges: Sequence[GoldItem]) -> list[GoldItem]:
    """List the questions that may judge a lever: none of them has judged it before."""
    gone = trials.list_tried(root, lever)
    return [each for each in judges if each.id not in gone]


def _find_fallen(root: Root) -> dict[str, str]:
    """Return the lines of the metric that decay, with how: its parts, or, if none of them does, sum and outcome."""
    found: dict[str, str] = {each["line"]: each["kind"] for each in entropy_days.describe(root, 1)["findings"]}
    parts = {line: kind for line, kind in found.items() if line in entropy.WEIGHTS}
    return parts or found
