"""Approvals at work: candidates are asked about, answered or lapse, and the waiting missions are woken."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, TypeAlias

import structlog

from batos.approvals.documents import disapproval, no_such
from batos.concurrency.jobs import Alarms
from batos.events import Events
from batos.image.ids import approval_id, iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.protocol.errors import BatosError, Refused, message_of
from batos.protocol.event_payloads import APPROVAL_ANSWERED, APPROVAL_ASKED, ApprovalAnswered, ApprovalAsked
from batos.records import approval_subjects, approvals, call_questions
from batos.records.approval_subjects import Candidate
from batos.records.approvals import ApprovalQuestion, ApprovalState

_log = structlog.get_logger("batos")

#: Called with the missions that waited for an answer that was given; gives those that now wait to be begun.
Wake: TypeAlias = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
Settle: TypeAlias = Callable[[str, str], Awaitable[object]]
#: Called with an answer about effects, and when it was given.
SettleEffects: TypeAlias = Callable[[Root, ApprovalState, str], None]


#: Missions that are begun without letting anybody in between.
_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class ApprovalAnswers:
    """The answers to questions, in the order in which they were given, and the missions that continue because
    of them.
    """

    answers: tuple[ApprovalState, ...]
    woken: tuple[str, ...]


async def _nobody(_missions: Sequence[str]) -> Sequence[str]:
    """Return no missions: none waits here."""
    return ()


def _settle_no_effects(_root: Root, _answer: ApprovalState, _at: str) -> None:
    """Do nothing: there are no effects here."""


async def _settle_nothing(_object: str, _selector: str) -> None:
    """Do nothing: there is no method lifecycle here."""


@dataclass(frozen=True, slots=True)
class Consequences:
    """Says what follows from an answer.

    `wake` is called with the missions that waited for it, `settle` with the object and selector of each method that was
    installed, so that one too many goes. `forget` forgets the memories that a yes was about, while `exclusively` keeps
    all other changes of memory waiting. `settle_effects` does what an answer means for effects on the world and
    tools of servers, in the commit of the answer.
    """

    wake: Wake = _nobody
    settle: Settle = _settle_nothing
    forget: approvals.Forget | None = None
    exclusively: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    settle_effects: SettleEffects = _settle_no_effects


class Approvals:
    """The questions of one image, and what one process does about them.

    A question is bound to one source, slot and active revision; `days` is how long it waits for an answer, and how long
    a rejection stands. No mission and no method reaches this: only a door answers, by the name of its user.
    """

    def __init__(
        self,
        image: LivingImage,
        events: Events,
        clock: Callable[[], datetime],
        days: float,
        group: asyncio.TaskGroup,
        consequences: Consequences | None = None,
    ) -> None:
        self._image = image
        self._events = events
        self._clock = clock
        self._period = timedelta(days=days)
        self._group = group
        self._alarms = Alarms(clock, self._ring)
        self._consequences = consequences or Consequences()
        self._begin: Callable[[str], object] = ignore_departure

    def keep(self, begin: Callable[[str], object]) -> None:
        """Begin every mission that an answer wakes, from now on: for a process that runs missions."""
        self._begin = begin

    async def open(self) -> None:
        """Take up what an earlier process left: what lapsed meanwhile is written down, the rest lapses in its time."""
        for name, until in await asyncio.to_thread(self._waiting_approvals):
            if self._alarms.has_passed(until):
                await self._expire(name)
            else:
                self._alarms.set(name, until)

    def _waiting_approvals(self) -> list[tuple[str, str]]:
        with self._image.snapshot() as root:
            return [(approval.name, approval.until) for approval in approvals.open_approvals(root)]

    def close(self) -> None:
        """Let nothing lapse any more in this process."""
        self._alarms.clear()

    # -- asking

    async def ask(self, candidate: Candidate, mission: str | None) -> str:
        """Ask a person about a candidate and return the question's id; the same question again joins the first.

        `mission` waits for the answer; None if nobody does. A caller that waits raises ApprovalNeeded with the id. A
        candidate that is active by now has an id too, and its mission continues at once.

        Raises: GenerationFailed: the candidate was rejected, or nobody answered in time. NotFound: there is no such
        object.
        """
        now = self._clock()
        question = ApprovalQuestion(approval_id(now), candidate, iso(now), iso(now + self._period), mission)
        answer = await self._image.writer.apply(lambda root: approvals.ask(root, question))
        self._tell_asked(answer)
        return _id_of(answer)

    def _tell_asked(self, answer: ApprovalState) -> None:
        if answer.changed:
            self._alarms.set(answer.name, answer.until)
            self._events.emit(
                APPROVAL_ASKED,
                ApprovalAsked(
                    approval=answer.name, receiver=answer.object, selector=answer.selector, digest=answer.digest
                ),
            )

    def fold_forgetting(self, root: Root, mission: str, payload: Any) -> Sequence[Callable[[], None]]:
        """Ask a person whether the documents that a committed mission named may be forgotten."""
        now = self._clock()
        candidate = approval_subjects.forget_candidate(root, payload["documents"], mission, iso(now))
        return () if candidate is None else (self.ask_in(root, candidate),)

    def ask_in(self, root: Root, candidate: Candidate) -> Callable[[], None]:
        """Ask a person within a change of the image, for no mission; return the telling for after the commit."""
        return self.ask_named(root, candidate)[1]

    def ask_named(self, root: Root, candidate: Candidate) -> tuple[str, Callable[[], None]]:
        """Ask as `ask_in`, and return the question's id too."""
        now = self._clock()
        question = ApprovalQuestion(approval_id(now), candidate, iso(now), iso(now + self._period))
        answer = approvals.ask(root, question)
        return answer.name, partial(self._tell_asked, answer)

    async def find_asked(self, holder: str, selector: str, intent: str, mission: str | None) -> str | None:
        """Return the id of the open question about a slot as it is; None if there is none.

        `intent` is `image.methods.digest_of` its Intent. The mission is added to those that wait, instead of making
        another candidate.

        Raises: GenerationFailed: a method of this intent was rejected, or nobody answered the mission in time.
        """
        at = iso(self._clock())
        if mission is None:
            with self._image.snapshot() as root:
                answer = approvals.last_question(root, holder, selector, intent, at, None)
        else:
            answer = await self._image.writer.apply(
                lambda root: approvals.last_question(root, holder, selector, intent, at, mission)
            )
        return None if answer is None else _id_of(answer)

    def check_not_rejected(self, candidate: Candidate) -> None:
        """Check that no person's rejection of exactly this source is in force, under any policy.

        Raises: GenerationFailed: there is one.
        """
        at = iso(self._clock())
        with self._image.snapshot() as root:
            said = approvals.last_answer(root, candidate.holder, candidate.selector, candidate.digest, at)
        if said is not None and said.word == "rejected" and said.until > at:
            raise disapproval(said)

    # -- answering

    async def approve(self, names: Sequence[str], by: str, plan: str | None = None) -> ApprovalAnswers:
        """Say yes to each: it is installed in the commit that says so. Those that are `changed` are so since now.

        `plan` are the lines that take the place of those of a mission's plan, where that is the one that is named.

        NotFound: there is no such question; then nothing is approved.
        """
        await asyncio.to_thread(self._check, names)
        at = iso(self._clock())
        forget = self._consequences.forget

        def approve(root: Root, name: str) -> ApprovalState | None:
            if plan is not None:
                call_questions.edit(root, name, plan, at)
            return approvals.approve(root, name, by, at, forget)

        async with self._consequences.exclusively():
            return await self._answer([partial(approve, name=name) for name in dict.fromkeys(names)])

    async def reject(self, name: str, by: str, why: str) -> ApprovalAnswers:
        """Say no, for a reason. NotFound: there is no such question."""
        await asyncio.to_thread(self._check, [name])
        now = self._clock()
        moments = iso(now), iso(now + self._period)
        return await self._answer([partial(approvals.reject, name=name, by=by, why=why, moments=moments)])

    def _check(self, names: Sequence[str]) -> None:
        with self._image.snapshot() as root:
            for name in names:
                if approvals.find_approval(root, name) is None:
                    raise no_such(name)

    async def _answer(self, changes: Sequence[Callable[[Any], ApprovalState | None]]) -> ApprovalAnswers:
        """Write answers down, tell them, and wake who waited; done to its end also when who answers is gone."""
        given = await asyncio.gather(*(self._image.shared.apply(partial(self._change, change)) for change in changes))
        answers = tuple(answer for answer in given if answer is not None)
        for answer in answers:
            if answer.changed:
                self._alarms.drop(answer.name)
                self._events.emit(
                    APPROVAL_ANSWERED, ApprovalAnswered(approval=answer.name, answer=answer.word, by=answer.by)
                )
        if any(answer.effects and answer.word == "approved" for answer in answers):
            self._image.signals.approved.give()
        woken = await self._consequences.wake([mission for answer in answers for mission in answer.missions])
        for number, mission in enumerate(woken, 1):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            with suppress(Refused):  # somebody brought it to a stand since
                self._begin(mission)
        for answer in answers:
            if answer.changed and answer.word == "approved" and answer.revision is not None:
                await self._settle(answer)
        return ApprovalAnswers(answers, tuple(woken))

    def _change(self, change: Callable[[Any], ApprovalState | None], root: Root) -> ApprovalState | None:
        """Write one answer down, with what it means for effects and tools, in one change."""
        answer = change(root)
        if answer is not None:
            self._consequences.settle_effects(root, answer, iso(self._clock()))
        return answer

    async def _settle(self, answer: ApprovalState) -> None:
        try:
            await self._consequences.settle(answer.object, answer.selector)
        except BatosError as error:  # it is installed all the same, and the next one settles this too
            _log.warning("approval.unsettled", approval=answer.name, reason=error.as_dict())

    # -- lapsing

    def _ring(self, name: str) -> None:
        self._group.create_task(self._expire(name))

    async def _expire(self, name: str) -> None:
        at = iso(self._clock())
        try:
            await self._answer([partial(approvals.expire, name=name, at=at)])
        except Exception as error:  # the image cannot be written: what lapsed is shown as such all the same
            _log.warning("approval.unsettled", approval=name, reason=message_of(error))


def _id_of(answer: ApprovalState) -> str:
    if answer.word in ("asked", "approved"):
        return answer.name
    raise disapproval(answer)


def ignore_departure(mission: str) -> None:
    """Do nothing: this process runs no missions."""
