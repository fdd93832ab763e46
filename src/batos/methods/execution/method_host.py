"""The host of a run: checks and answers each message that the method sends from the cell, and takes over its writes."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from batos.agency.look_ups.granted import order_of
from batos.cell.values import MessageAnswer, Plain, RaisedError, Ref, Value, Writes, same
from batos.image import ownership
from batos.image.records import least_trust
from batos.methods.execution import primitives, receiver_view
from batos.methods.execution.api_calls import call_api
from batos.methods.execution.receiver_view import View
from batos.methods.execution.resolution import (
    DEEPEST,
    Invocation,
    InvocationResult,
    SlotMessage,
    Thought,
    To,
    ToIntent,
    ToMethod,
    resolve,
    summon,
)
from batos.methods.execution.scoring import interpret_intent
from batos.methods.execution.write_buffer import BufferedSlot, Data, WriteBuffer, data_of
from batos.minds import look_ups, provenance
from batos.minds.calls import questions
from batos.minds.context import MindContext
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import UvmObject, label
from batos.protocol.errors import (
    CellKilled,
    CellMissing,
    CovenantViolation,
    MessageNotUnderstood,
    MethodFailed,
    NotFound,
    ObjectError,
)
from batos.records.tools import CALL

#: Runs an invocation to its end.
Runner: TypeAlias = Callable[[Invocation[ToMethod]], Awaitable[InvocationResult]]

#: The prefixes and line numbers that each method around the innermost one adds to the message of its failure.
_WRAPPED: Final = re.compile(r"^(?:\w+ raised RuntimeError: )+|(?: \(line \d+\))+$")
_RECALLS: Final = ("traits.recall", "catalog.search")


class _PlainArguments(NamedTuple):
    """The arguments of a message as plain data."""

    args: tuple[Data, ...]
    kwargs: Mapping[str, Data]


class MethodHost:
    """Answers the requests of one run.

    An error that the method may catch is returned as `raised`; any other ends the run.
    """

    def __init__(self, invocation: Invocation[ToMethod], buffer: WriteBuffer, view: View, run: Runner) -> None:
        self._invocation = invocation
        self._buffer = buffer
        self._view = view
        self._run = run
        self._inferred = 0
        self._places: Counter[str] = Counter()
        #: The writes taken over since the method was last shown its slots.
        self._taken = Writes()
        self._trust = invocation.trust
        #: The model's answers to the method and to the methods that it sent messages to, in order.
        self.thoughts: list[Thought] = []
        self._ended: BaseException | None = None

    @property
    def trust(self) -> str:
        """Return the trust class of the run: the least of everything that it has seen so far."""
        return least_trust("model", self._trust, self._view.trust)

    def _lower_trust(self, trust: str) -> None:
        """Lower the trust class of the run to that of something it has seen."""
        self._trust = least_trust(self._trust, trust)

    # -- what the cell asks

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Answer a message that the method sends; `pending` are the slots that it has changed so far.

        `to` is None for the receiver itself.
        """
        return await self._answer(lambda: self._send(to, selector, args, kwargs, pending))

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Return the value of another object's slot."""
        return await self._answer(lambda: self._read(of, slot))

    async def _answer(self, work: Callable[[], Awaitable[MessageAnswer]]) -> MessageAnswer:
        """Return the answer of `work`, or its error if the method may catch that.

        MessageNotUnderstood, MethodFailed and ObjectError may be caught. Any other error ends the run: it is raised
        now, and again for each later request of this run.
        """
        if self._ended is not None:
            raise self._ended
        try:
            return await work()
        except MessageNotUnderstood as error:
            return MessageAnswer(raised=RaisedError("AttributeError", error.message))
        except (CellKilled, CellMissing, _Unmarked) as error:
            self._ended = error
            raise
        except (MethodFailed, ObjectError) as error:
            return MessageAnswer(raised=RaisedError("RuntimeError", _WRAPPED.sub("", error.message)))
        except BaseException as error:
            self._ended = error
            raise

    # -- messages

    async def _send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> MessageAnswer:
        """Check a message, find its slot, and answer it by the kind of the slot: primitive, intent or method, value."""
        self._invocation.limits.send()
        name = receiver_view.check_selector(selector)
        given = _PlainArguments(tuple(data_of(args, "an argument")), data_of(kwargs, "an argument"))
        target = self._invocation.message.receiver if to is None else self._other(to)
        kept = self._buffer.find(target, name)
        if kept is None:
            raise MessageNotUnderstood(label(target), name)
        if kept.value == Primitive(CALL):
            return await self._call_api(target, name, given)
        if isinstance(kept.value, Primitive):
            return await self._kernel(target, name, kept.value, given)
        if isinstance(kept.value, Intent | Method):
            return await self._behave(target, name, kept, given, pending)
        if given.args or given.kwargs:
            raise ObjectError(f"{name!r} of {label(target)} is a value and takes no arguments")
        return self._value(target, name)

    async def _read(self, of: Ref, slot: str) -> MessageAnswer:
        """Check the slot's name and return its value."""
        owner, name = self._other(of), receiver_view.check_read(slot)
        kept = self._buffer.read(owner, name)
        if kept is not None and isinstance(kept.value, Intent) and kept.value.kind == "prototype":
            await summon(self._invocation.context, name, kept.value)
        return self._value(owner, name)

    def _other(self, ref: Ref) -> UvmObject:
        """Return the object of a number.

        Raises: MethodFailed: the object belongs to another user, or the number was never given.
        """
        context = self._invocation.context
        found = self._view.table.object(ref)
        try:
            ownership.check(context.mission.root, found, context.mission.brief.user)
        except NotFound as error:
            raise MethodFailed(error.message) from None
        return found

    def _value(self, target: UvmObject, slot: str) -> MessageAnswer:
        """Return a slot's value and note its trust. Raises: MessageNotUnderstood: there is no such slot."""
        kept = self._buffer.read(target, slot)
        if kept is None:
            raise MessageNotUnderstood(label(target), slot)
        self._lower_trust(kept.trust)
        return MessageAnswer(self._view.table.to_cell(kept.value))

    async def _kernel(
        self, target: UvmObject, selector: str, primitive: Primitive, given: _PlainArguments
    ) -> MessageAnswer:
        """Call one of the kernel's primitives that a method may send: inference, vectors, memory or log.

        Raises: ObjectError: the primitive is none of these, or the arguments are wrong.
        """
        if primitive.name == "llm.infer":
            question = primitives.parse_question(*given)
            # Count before any await: so the numbers are the same in every attempt, under gather too.
            number, self._inferred = self._inferred, self._inferred + 1
            thought = await primitives.think(self._invocation, target, number, question)
            self._thought([thought], provenance.lineage_trust(self._invocation.evidence))
            return MessageAnswer(thought.answer)
        if primitive.name in _RECALLS:
            found = await primitives.recall(self._invocation, *given)
            self._lower_trust(provenance.lineage_trust(found))
            return MessageAnswer([*primitives.recalled_texts(found)])
        if primitive.name in ("catalog.index", "catalog.forget"):
            return MessageAnswer(self._remember(primitive.name, given))
        if primitive.name == "llm.embed":
            vectors: list[Any] = await primitives.embed(self._invocation.context, self._place(selector), *given)
            return MessageAnswer(vectors)
        if primitive.name == "traits.capability":
            capability = primitives.find_capability(self._invocation.context, given.args)
            return MessageAnswer(self._view.table.to_cell(capability))
        if primitive.name in primitives.OPERATIONS:
            context, staged, message = self._invocation.context, self._buffer.effects, self._invocation.message
            asked_by = f"{label(message.receiver)}.{message.selector} at {self._invocation.path}"
            return MessageAnswer(primitives.stage(context, target, primitive.name, given.args, staged, asked_by))
        if primitive.name.startswith(look_ups.LOOK_UP):
            self._lower_trust("external")
            order = order_of(selector, given.args, by_person=False)
            looked_up: Any = await look_ups.look_up(self._invocation.context, target, order, self._place(selector))
            return MessageAnswer(looked_up)
        if primitive.name == "traits.log":
            primitives.log(self._invocation, *given)
            return MessageAnswer()
        raise ObjectError(f"{selector!r} of {label(target)} is the kernel's own ({primitive.name}): no method sends it")

    async def _call_api(self, target: UvmObject, selector: str, given: _PlainArguments) -> MessageAnswer:
        """Call an operation of a described API. Raises: ObjectError: it answered with a failure; and as `call_api`."""
        path = self._place(selector)
        args = [dict(given.kwargs)] if given.kwargs else [*given.args]
        answer = await call_api(self._invocation.context, target, selector, args, path)
        self._lower_trust("external")
        if answer.failure:
            raise ObjectError(f"{selector!r} of {label(target)} answered: {answer.failure}")
        return MessageAnswer(self._view.table.to_cell(answer.value))

    def _place(self, selector: str) -> str:
        """Return the place in the journal of the next call by this selector."""
        path = questions.path_within(self._invocation.path, selector, self._places[selector])
        self._places[selector] += 1
        return f"{path}#0"

    def _remember(self, name: str, given: _PlainArguments) -> str | None:
        """Note a document that is remembered, or documents of which a person is asked whether they are forgotten."""
        if name == "catalog.forget":
            return primitives.forget(self._invocation.context, *given)
        is_evidence = not self.thoughts  # no model's word becomes what is known
        primitives.index_document(self._invocation.context, *given, self.trust, is_evidence=is_evidence)
        return None

    async def _behave(
        self, target: UvmObject, selector: str, kept: BufferedSlot, given: _PlainArguments, pending: Writes
    ) -> MessageAnswer:
        """Answer a message to a method, or to an intent: the intent becomes a method first, or is interpreted.

        Raises: MethodFailed: DEEPEST methods are nested already. CovenantViolation: a method would run while a change
        is not marked.
        """
        invocation = self._invocation
        if invocation.depth >= DEEPEST:
            raise MethodFailed(f"messages are nested {DEEPEST} deep, and {selector!r} would be one more")
        path = questions.path_within(invocation.path, selector, self._places[selector])
        self._places[selector] += 1
        flushed = self._flush(pending, runs=isinstance(kept.value, Method))
        context = primitives.in_voice_of(invocation.context, target)
        sent = SlotMessage(target, kept.holder, kept.value, selector, given.args, given.kwargs)
        message = await resolve(context, sent)
        self._flush(pending, runs=isinstance(message, ToMethod))
        if isinstance(message, ToIntent):
            part = await interpret_intent(self._inner(context, message, path))
            thought = Thought(part.answer, part.citations, not part.open)
            self._thought([thought], provenance.lineage_trust(invocation.evidence))
            return MessageAnswer(thought.answer, self._reload_slots() if flushed else None)
        # Use a task of its own: fifty nested methods would be one chain of frames, which each resumption walks.
        ran = await asyncio.ensure_future(self._run(self._inner(context, message, path)))
        self._thought(ran.thoughts, ran.trust)
        return MessageAnswer(self._view.table.to_cell(ran.value), self._reload_slots())

    def _inner(self, context: MindContext, message: To, path: str) -> Invocation[To]:
        """Return the invocation of a message that the method sends: one level deeper, within the same limits."""
        return Invocation(
            context=context,
            interpreter=self._invocation.interpreter.in_voice(context),
            message=message,
            path=path,
            evidence=self._invocation.evidence,
            trust=self.trust,
            below=self._buffer,
            mind=self._invocation.mind,
            depth=self._invocation.depth + 1,
            limits=self._invocation.limits,
        )

    def _thought(self, thoughts: Iterable[Thought], trust: str) -> None:
        """Add answers of the model to the run, and note their trust."""
        self.thoughts.extend(thoughts)
        self._lower_trust(trust)

    # -- what was written so far

    def _flush(self, pending: Writes, *, runs: bool) -> bool:
        """Take over the writes that are pending and marked, and return True if there were any.

        Writes that are not marked stay with the method. If `runs`, another method is about to run and would not see
        them.

        Raises: CovenantViolation: another method is about to run, and the writes are not marked.
        """
        if pending and pending.is_marked:
            self.take(pending)
            return True
        if pending and runs:
            raise _Unmarked(
                "it changed its receiver and sent a message that runs another method before it marked the change",
                remedy="Write `self._p_changed = True` after the change and before the message.",
            )
        return False

    def take(self, writes: Writes) -> None:
        """Take over marked writes, all or none.

        A value that was taken over before and is unchanged is not written again.

        Raises: CovenantViolation: the writes are not marked. MethodFailed: a method may not write one of the slots.
        """
        if writes and not writes.is_marked:
            raise CovenantViolation("it changed its receiver and did not mark that: nothing of it is kept")
        before = self._taken.values
        fresh = {
            slot: value for slot, value in writes.values.items() if slot not in before or not same(before[slot], value)
        }
        self._view.take(Writes(fresh, writes.deleted - self._taken.deleted, is_marked=True), self.trust)
        self._taken = Writes({**before, **writes.values}, self._taken.deleted | writes.deleted, is_marked=True)

    def _reload_slots(self) -> Mapping[str, Value]:
        """Return the receiver's slots anew, for the method to continue with."""
        self._taken = Writes()
        return self._view.slot_values()


class _Unmarked(CovenantViolation):
    """Raised while the method runs: it cannot continue with changes that the methods it calls would not see."""
