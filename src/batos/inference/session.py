"""Paid calls of one mission: each is looked up in the journal first, and written there before its answer is used."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Protocol

from batos.concurrency.threads import count_cancellations, finish_despite_cancel
from batos.events import Events
from batos.image.ids import iso, utc_now
from batos.inference import journaled_requests, marks
from batos.inference.canonical import EncodedMessages
from batos.inference.cost import LEAST_RATIO, Cost, Spending, SpendingLimits
from batos.inference.journal import Journal, Record
from batos.inference.journaled_requests import PLAIN_KEY, journal_request, plain_key, prompt_bytes, with_warning
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.inference.ollama.chat import REPEATED
from batos.inference.vram.call_scheduler import ALL, SharedCard
from batos.inference.vram.placement import Placement
from batos.protocol.errors import BatosError, ContextOverflow, InternalError, ModelMissing, Refused, Runaway
from batos.protocol.event_payloads import (
    INFERENCE_END,
    INFERENCE_FIRST_TOKEN,
    INFERENCE_START,
    InferenceEnd,
    InferenceFirstToken,
    InferenceStart,
)

#: Seconds between two saves of an unfinished answer.
PARTIAL_EVERY: Final = 2.0


class Thinks(Protocol):
    """The part of the bridge that a session needs."""

    def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Coroutine[Any, Any, Answer]:
        """Make a chat call."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A call's place in the cycle: the sample path, who hears its tokens, and who that they no longer stand."""

    path: str
    on_token: Callable[[str], None] | None = None
    on_again: Callable[[str], None] | None = None

    def again(self, tail: str, why: str) -> Step:
        """Return the step at which the same is asked again, and tell whoever heard the answer before the reason."""
        if self.on_again is not None:
            self.on_again(why)
        return replace(self, path=f"{self.path}/{tail}")

    def stand(self, text: str, why: str) -> None:
        """Send only this text, which stands, to whoever heard the answer, with the reason."""
        if self.on_again is not None and self.on_token is not None:
            self.on_again(why)
            self.on_token(text)


@dataclass(slots=True)
class Session:
    """The calls of one mission. `earlier` are the records it may be served from: its own and its ancestors'.

    Whatever a prompt was composed from, no mark of a chat template is in it when it leaves here (marks.py).
    """

    mission: str
    journal: Journal
    bridge: Thinks
    digests: Mapping[str, str]
    limits: SpendingLimits
    events: Events
    earlier: Sequence[Record] = ()
    clock: Callable[[], datetime] = utc_now
    #: The mission's cost so far, with its earlier runs, and the seconds that these took; the limits apply to the sums.
    cost: Cost = field(default_factory=Cost)
    elapsed: float = 0.0
    keys: list[str] = field(default_factory=list)
    #: Prompt bytes and tokens of each model's answered calls: what the estimate of the next prompt learns from.
    measured: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Digest of each model that answered, by name.
    models: dict[str, str] = field(default_factory=dict)
    #: Further marks of each model beside the usual ones, by the model's name.
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: The card that it shares with all sessions, where its calls have their turns; None: they need none.
    card: SharedCard | None = None
    #: The priority of its calls: the higher go first.
    priority: int = 0
    #: Where each model that was looked at lies, by name.
    placements: dict[str, Placement] = field(default_factory=dict)
    #: Seconds that only ever grow: the budget's clock, and that of what is saved of an unfinished answer.
    ticks: Callable[[], float] = time.monotonic
    partial_every: float = PARTIAL_EVERY
    #: Called before each call is paid: may raise to keep the mission from it, when those under way are journaled.
    check_stop: Callable[[], None] = lambda: None
    #: A hint for the prompts of unpaid calls: the reason why an earlier attempt failed.
    warning: str = ""
    #: So many whole minds of the mission think at a time: one that has begun is not interrupted by the next.
    minds: asyncio.Semaphore = field(init=False)
    #: Paid answers, by their key without a warning.
    _paid: dict[str, Record] = field(init=False)
    #: The digests that each model had when something was paid, oldest first; under "" those of the mission's own
    #: answers: what it paid for is its own also when it thinks with another model by now.
    _former: dict[str, list[str]] = field(init=False)
    _flying: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    #: Calls that are being paid: begun and not yet in the journal.
    _under_way: int = 0
    _quiet: asyncio.Event = field(default_factory=asyncio.Event)
    #: Tokens of the answers that were paid for here, by path.
    _spent: dict[str, int] = field(default_factory=dict)
    #: Answers, their tokens, prompts counted, and the seconds that Ollama thought, by path, whoever paid for them.
    _told: dict[str, Spending] = field(default_factory=dict)
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.ticks() - self.elapsed
        self.minds = asyncio.Semaphore(ALL if self.card is None else self.card.many)
        self._paid, self._former = {}, {}
        for record in self.earlier:
            if record.state == "done":
                self._paid[plain_key(record)] = record
                former = self._former.setdefault("" if record.mission == self.mission else record.model, [])
                if record.digest not in former:
                    former.append(record.digest)

    async def think(self, request: ChatRequest, step: Step) -> Answer:
        """Return the answer to a request at a step: from the journal if it was paid for, else from Ollama, once.

        Raises: Refused: the budget is spent. TimedOut: the deadline passed. Everything that the bridge raises.
        """
        told = EncodedMessages(marks.messages(request.messages, self.marks.get(request.model, ())))
        request = replace(request, messages=told)
        shown = journal_request(request)
        # A paid answer is found by the digest that its model had then, even after the model was changed.
        for former in (*self._former.get("", ()), *self._former.get(request.model, ())):
            paid = self._paid.get(journaled_requests.journal_key(former, shown, step.path))
            if paid is not None:
                return self._serve_from_journal(paid, step)
        digest = self.digests.get(request.model)
        if digest is None:
            raise ModelMissing(request.model)
        key = journaled_requests.journal_key(digest, shown, step.path)
        while key in self._flying:
            # Only one call for a key is made at a time; if that one fails or is cancelled, this one is made.
            await asyncio.wait({self._flying[key]})
        if key in self._paid:
            return self._serve_from_journal(self._paid[key], step)
        landed = self._flying[key] = asyncio.get_running_loop().create_future()
        try:
            if self.card is None:
                return await self._pay_with_warning(request, step, key, digest)
            waits = self.card.turn(request, digest, self.mission, self.priority, self._remaining_seconds())
            async with waits as turn:
                listening = replace(step, on_token=turn.listening(step.on_token))
                answer = await self._pay_with_warning(request, listening, key, digest)
                turn.note_load(answer.load_seconds)
                return answer
        except TimeoutError as error:
            raise self.limits.time_error() from error
        finally:
            del self._flying[key]
            landed.set_result(None)

    async def _pay_with_warning(self, request: ChatRequest, step: Step, key: str, digest: str) -> Answer:
        """Pay for a call that says why an earlier attempt failed; where that does not fit, for the plain call."""
        plain = Record(
            key, self.mission, step.path, request.model, digest, journal_request(request), "open", iso(self.clock())
        )
        if not self.warning:
            return await self._pay_unless_stopped(request, step, plain)
        told = replace(request, messages=with_warning(request.messages, self.warning))
        shown = {**journal_request(told), PLAIN_KEY: key}
        try:
            record = replace(plain, key=journaled_requests.journal_key(digest, shown, step.path), request=shown)
            return await self._pay_unless_stopped(told, step, record)
        except ContextOverflow:
            return await self._pay_unless_stopped(request, step, plain)

    def follow(self, earlier: Session) -> None:
        """Go on with what an earlier session of the same run spent: its calls and its time count against the limits."""
        self.cost, self._began = earlier.cost, earlier._began

    @property
    def paid_count(self) -> int:
        """Return the number of answers that the journal has for this mission and its ancestors."""
        return len(self._paid)

    def waste(self, path: str) -> None:
        """Count the answer paid for at this path as wasted."""
        self.cost.waste(self._spent.get(path, 0))

    def spending_at(self, place: str) -> Spending:
        """Sum up what was used at a place in the cycle and within it, whoever paid for it."""
        found = [told for path, told in self._told.items() if path.startswith((f"{place}#", f"{place}/"))]
        return sum(found, Spending())

    @property
    def usage(self) -> tuple[int, int]:
        """Count how many answers were used so far, and their tokens, prompts counted, whoever paid for them."""
        told = sum(self._told.values(), Spending())
        return told.answers, told.tokens

    def _serve_from_journal(self, paid: Record, step: Step) -> Answer:
        if paid.response is None:
            raise InternalError(f"the journal calls the answer at {paid.path!r} paid for, and has no answer")
        answer = Answer(**paid.response)
        self.cost.reuse()
        self._note_use(paid, answer)
        if step.on_token is not None:
            step.on_token(answer.text)
        self._emit_end(paid.path, paid.model, answer, from_journal=True)
        return answer

    def _note_use(self, record: Record, answer: Answer) -> None:
        fresh = record.key not in self.keys
        self.keys.append(record.key)
        self.models[record.model] = record.digest
        if fresh:  # a method that is run once more asks the same once more, and that costs nothing
            told = Spending(1, answer.prompt_tokens + answer.answer_tokens, answer.thinking_seconds)
            self._told[record.path] = self._told.get(record.path, Spending()) + told
        if answer.done_reason != REPEATED:  # the tokens of whose prompt are an estimate
            size, tokens = self.measured.get(record.model, (0, 0))
            self.measured[record.model] = (size + prompt_bytes(record.request), tokens + answer.prompt_tokens)

    def _emit_end(self, path: str, model: str, answer: Answer, *, from_journal: bool) -> None:
        self.events.emit(
            INFERENCE_END,
            InferenceEnd(
                mission=self.mission,
                path=path,
                model=model,
                prompt_tokens=answer.prompt_tokens,
                answer_tokens=answer.answer_tokens,
                seconds=round(answer.total_seconds, 3),
                from_journal=from_journal,
            ),
        )

    async def _pay_unless_stopped(self, request: ChatRequest, step: Step, record: Record) -> Answer:
        """Pay, or raise if a stop was asked for or the budget is spent, once the calls under way have ended.

        Whoever raises has the others cancelled, and what is cut is paid for and of no use.
        """
        try:
            self.check_stop()
            self._check_limits()
        except BaseException:
            while self._under_way:
                self._quiet.clear()
                await self._quiet.wait()
            raise
        self._under_way += 1
        try:
            return await self._pay(request, step, record)
        finally:
            self._under_way -= 1
            self._quiet.set()

    async def _pay(self, request: ChatRequest, step: Step, record: Record) -> Answer:
        self._check_prompt(record)
        self.events.emit(INFERENCE_START, InferenceStart(mission=self.mission, path=step.path, model=request.model))
        self.cost.begin_call()
        listener, cancelled = _Listener(self, step, record), count_cancellations()
        try:
            async with asyncio.timeout(self._remaining_seconds()):
                answer = await self.bridge.think(request, listener)
        except (Exception, asyncio.CancelledError) as error:  # whatever it is, the call was made
            await listener.leave()
            await self._record_failure(record, error, listener)
            if isinstance(error, TimeoutError):
                raise self.limits.time_error() from error
            raise
        if answer.done_reason == REPEATED:
            answer = replace(answer, prompt_tokens=journaled_requests.estimate_tokens(record, self.measured))
            record = replace(record, partial=listener.text)
            step.stand(answer.text, "the model repeated itself")
        elif listener.count() and listener.text != answer.text:
            step.stand(answer.text, "the model was thinking, and no mark said so")
        response = {name: getattr(answer, name) for name in Answer.__dataclass_fields__}
        tokens = {"prompt": answer.prompt_tokens, "answer": answer.answer_tokens}
        done = replace(record, state="done", response=response, tokens=tokens, ended=iso(self.clock()))
        self._charge(step.path, answer)
        await finish_despite_cancel(asyncio.ensure_future(self._keep(done, listener)))
        if count_cancellations() > cancelled:  # it came behind the answer's last line
            raise asyncio.CancelledError
        self._note_use(done, answer)
        self._emit_end(step.path, request.model, answer, from_journal=False)
        # Only now: what was paid for is written down, however long the daemon takes to say where it lies.
        await self._look(record, answer)
        return answer

    async def _keep(self, done: Record, listener: _Listener) -> None:
        """Write an answer that was paid for, so that it is there for whoever asks again."""
        await listener.leave()
        await self.journal.write(done)
        self._paid[plain_key(done)] = done

    async def _look(self, record: Record, answer: Answer) -> None:
        if self.card is not None:
            options = record.request["options"]
            if found := await self.card.look(record.model, record.digest, options, answer.load_seconds):
                self.placements[record.model] = found

    def _charge(self, path: str, answer: Answer) -> None:
        self._spent[path] = answer.answer_tokens
        self.cost.charge(answer)

    async def _record_failure(self, record: Record, error: BaseException, listener: _Listener) -> None:
        """Record a call that failed: a cut answer was paid for all the same, by estimate a token for each piece."""
        reason: Mapping[str, object] = {"code": "cancelled", "message": str(error)}
        if not isinstance(error, TimeoutError | asyncio.CancelledError):
            ours = error if isinstance(error, BatosError) else InternalError(f"{type(error).__name__}: {error}")
            reason = ours.as_dict()
        wasted = error.wasted if isinstance(error, Runaway) else listener.count()
        prompt = journaled_requests.estimate_tokens(record, self.measured)
        cut = replace(
            record,
            tokens={"prompt": prompt, "answer": wasted} if wasted else {},
            state="cut" if listener.count() else "failed",
            partial=listener.text or None,
            response={"error": reason},
            ended=iso(self.clock()),
        )
        self.cost.add_failure(cut)
        await self.journal.write(cut)

    def _remaining_seconds(self) -> float:
        return self.limits.seconds - (self.ticks() - self._began)

    def _check_limits(self) -> None:
        self.limits.refuse_spent(self.cost)
        if self._remaining_seconds() <= 0:
            raise self.limits.time_error()

    def _check_prompt(self, record: Record) -> None:
        """Refuse a prompt that certainly does not fit, and a mission's first that its budget certainly cannot pay."""
        least, window = int(LEAST_RATIO * prompt_bytes(record.request)), record.request["options"].get("num_ctx")
        if window is not None and least > window:
            said = f"the prompt has at least {least} tokens and the window holds {window}; it was not sent"
            raise ContextOverflow(None, window, said)
        if not self.cost.calls and least > self.limits.tokens:
            raise Refused(
                f"the first prompt alone has at least {least} tokens, and the mission may spend {self.limits.tokens}",
                field="budget.tokens",
                remedy="Ask again with a larger budget, or raise mission_tokens in batos.toml. Nothing was spent.",
            )


class _Listener:
    """Hears an answer's tokens: passes them on and saves the unfinished text from time to time."""

    def __init__(self, session: Session, step: Step, record: Record) -> None:
        self._session = session
        self._step = step
        self._record = record
        self._pieces: list[str] = []
        self._began = self._saved = session.ticks()
        self._saving: asyncio.Task[None] | None = None

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def count(self) -> int:
        return len(self._pieces)

    def __call__(self, piece: str) -> None:
        now = self._session.ticks()
        if not self._pieces:
            self._session.events.emit(
                INFERENCE_FIRST_TOKEN,
                InferenceFirstToken(
                    mission=self._session.mission, path=self._step.path, seconds=round(now - self._began, 3)
                ),
            )
        self._pieces.append(piece)
        if now - self._saved >= self._session.partial_every and (self._saving is None or self._saving.done()):
            self._saved = now
            self._saving = asyncio.ensure_future(self._session.journal.write(replace(self._record, partial=self.text)))
        if self._step.on_token is not None:
            self._step.on_token(piece)

    async def leave(self) -> None:
        """Wait for the running save, so that an older text never overwrites a newer one.

        Errors of the save are ignored: what is written next tells more than the unfinished text.
        """
        if self._saving is not None:
            await asyncio.wait({self._saving})
            self._saving.exception()
