"""The host of one run: what a method sends is checked here again and answered; what it wrote so far is taken over."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from batos.cell.host import Raised, Sent, Writes
from batos.cell.values import Plain, Ref, Value, same
from batos.errors import (
    CellKilled,
    CellMissing,
    CovenantViolation,
    MessageNotUnderstood,
    MethodFailed,
    NotFound,
    ObjectError,
)
from batos.image import whose
from batos.image.records import least_trusted
from batos.methods.execution import interpretation, name_rules, primitives
from batos.methods.execution.invocation import DEEPEST, Invocation, InvocationResult, Thought
from batos.methods.execution.plain_data import Data, data_of
from batos.methods.execution.receiver_view import View
from batos.methods.execution.resolution import resolve
from batos.methods.execution.write_buffer import BufferedSlot, WriteBuffer
from batos.minds import provenance
from batos.minds.calls import sample_paths
from batos.objects.method import Intent, Method, Primitive
from batos.objects.prototype import Found, UvmObject, label

#: Runs an errand to its end.
Runner: TypeAlias = Callable[[Invocation], Awaitable[InvocationResult]]

_WRAPPED: Final = re.compile(r"^(?:\w+ raised RuntimeError: )+|(?: \(line \d+\))+$")
_RECALLS: Final = ("traits.recall", "catalog.search")


class _Given(NamedTuple):
    """The arguments of a message, as data."""

    args: tuple[Data, ...]
    kwargs: Mapping[str, Data]


class MethodHost:
    """Answers one run. What the method may catch is answered as `raised`; what ends the run is raised, and stays."""

    def __init__(self, errand: Invocation, sheet: WriteBuffer, view: View, run: Runner) -> None:
        self._errand = errand
        self._sheet = sheet
        self._view = view
        self._run = run
        self._inferred = 0
        self._places: Counter[str] = Counter()
        #: What was taken over since the method was last shown its slots.
        self._taken = Writes()
        self._trust = errand.trust
        #: What the model said to it, and to the methods that it sent messages to, in order.
        self.thoughts: list[Thought] = []
        self._ended: BaseException | None = None

    @property
    def trust(self) -> str:
        """The least of all that the run has seen so far."""
        return least_trusted("model", self._trust, self._view.trust)

    def _saw(self, trust: str) -> None:
        self._trust = least_trusted(self._trust, trust)

    # -- what the cell asks

    async def send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> Sent:
        """Send a message of the method's."""
        return await self._answered(lambda: self._send(to, selector, args, kwargs, pending))

    async def read(self, of: Ref, slot: str) -> Sent:
        """A slot of another object."""
        return await self._answered(lambda: self._read(of, slot))

    async def _answered(self, work: Callable[[], Awaitable[Sent]]) -> Sent:
        """What fails one message may be caught; what no method could mend ends the run, however often it asks."""
        if self._ended is not None:
            raise self._ended
        try:
            return await work()
        except MessageNotUnderstood as error:
            return Sent(raised=Raised("AttributeError", error.message))
        except (CellKilled, CellMissing, _Unmarked) as error:
            self._ended = error
            raise
        except (MethodFailed, ObjectError) as error:
            return Sent(raised=Raised("RuntimeError", _cause(error.message)))
        except BaseException as error:
            self._ended = error
            raise

    # -- messages

    async def _send(
        self, to: Ref | None, selector: str, args: list[Plain], kwargs: dict[str, Plain], pending: Writes
    ) -> Sent:
        self._errand.tally.send()
        name = name_rules.check_selector(selector)
        given = _Given(tuple(data_of(args, "an argument")), data_of(kwargs, "an argument"))
        target = self._errand.receiver if to is None else self._other(to)
        kept = self._sheet.find(target, name)
        if kept is None:
            raise MessageNotUnderstood(label(target), name)
        if isinstance(kept.value, Primitive):
            return await self._kernel(target, name, kept.value, given)
        if isinstance(kept.value, Intent | Method):
            return await self._behave(target, name, kept, given, pending)
        if given.args or given.kwargs:
            raise ObjectError(f"{name!r} of {label(target)} is a value and takes no arguments")
        return self._value(target, name)

    async def _read(self, of: Ref, slot: str) -> Sent:
        return self._value(self._other(of), name_rules.check_read(slot))

    def _other(self, ref: Ref) -> UvmObject:
        """Return another object that the method was shown; MethodFailed if it comes from another user's words."""
        context = self._errand.context
        found = self._view.table.object(ref)
        try:
            whose.check(context.mission.root, found, context.mission.brief.user)
        except NotFound as error:
            raise MethodFailed(error.message) from None
        return found

    def _value(self, target: UvmObject, slot: str) -> Sent:
        kept = self._sheet.read(target, slot)
        if kept is None:
            raise MessageNotUnderstood(label(target), slot)
        self._saw(kept.trust)
        return Sent(self._view.table.shown(kept.value))

    async def _kernel(self, target: UvmObject, selector: str, primitive: Primitive, given: _Given) -> Sent:
        """The few functions of the kernel that take plain data from a method."""
        if primitive.name == "llm.infer":
            question = primitives.parse_question(*given)
            # Counted before anything waits: the order of sending is the same in every attempt, also under gather.
            number, self._inferred = self._inferred, self._inferred + 1
            thought = await primitives.think(self._errand, target, number, question)
            self._thought([thought], provenance.lineage_trust(self._errand.evidence))
            return Sent(thought.answer)
        if primitive.name in _RECALLS:
            found = await primitives.recall(self._errand, *given)
            self._saw(provenance.lineage_trust(found))
            return Sent([*primitives.recalled_texts(found)])
        if primitive.name == "traits.log":
            primitives.log(self._errand, *given)
            return Sent()
        raise ObjectError(f"{selector!r} of {label(target)} is the kernel's own ({primitive.name}): no method sends it")

    async def _behave(
        self, target: UvmObject, selector: str, kept: BufferedSlot, given: _Given, pending: Writes
    ) -> Sent:
        """A message to a method, or to an intent: that becomes a method, or is interpreted."""
        errand = self._errand
        if errand.depth >= DEEPEST:
            raise MethodFailed(f"messages are nested {DEEPEST} deep, and {selector!r} would be one more")
        path = sample_paths.within(errand.path, selector, self._places[selector])
        self._places[selector] += 1
        flushed = self._flush(pending, runs=isinstance(kept.value, Method))
        context = primitives.in_voice_of(errand.context, target)
        told = (*given.args, *given.kwargs.values())
        choice = await resolve(context, target, Found(kept.holder, kept.value, 0), selector, told)
        self._flush(pending, runs=choice.method is not None)
        onward = replace(
            errand,
            context=context,
            interpreter=errand.interpreter.voiced(context),
            receiver=target,
            holder=kept.holder,
            selector=selector,
            method=choice.method,
            args=given.args,
            kwargs=given.kwargs,
            path=path,
            trust=self.trust,
            intent=choice.intent,
            kind=choice.kind,
            below=self._sheet,
            depth=errand.depth + 1,
        )
        if choice.method is None:
            thought = await interpretation.thought_of(onward, choice)
            self._thought([thought], provenance.lineage_trust(errand.evidence))
            return Sent(thought.answer, self._shown() if flushed else None)
        # In a task of its own: fifty methods in one another would be one chain of frames that each resumption climbs.
        ran = await asyncio.ensure_future(self._run(onward))
        self._thought(ran.thoughts, ran.trust)
        return Sent(self._view.table.shown(ran.value), self._shown())

    def _thought(self, thoughts: Iterable[Thought], trust: str) -> None:
        self.thoughts.extend(thoughts)
        self._saw(trust)

    # -- what was written so far

    def _flush(self, pending: Writes, *, runs: bool) -> bool:
        """Take over what was written and marked so far; says whether anything was.

        What is not marked stays with the method, unless another method is about to run, which would not see it.
        """
        if pending and pending.marked:
            self.take(pending)
            return True
        if pending and runs:
            raise _Unmarked(
                "it changed its receiver and sent a message that runs another method before it marked the change",
                remedy="Write `self._p_changed = True` after the change and before the message.",
            )
        return False

    def take(self, writes: Writes) -> None:
        """Take over marked writes; what was taken over before, and is the same still, is not written again.

        CovenantViolation: they are not marked. MethodFailed: a slot that no method writes. Then nothing is taken.
        """
        if writes and not writes.marked:
            raise CovenantViolation("it changed its receiver and did not mark that: nothing of it is kept")
        before = self._taken.values
        fresh = {
            slot: value for slot, value in writes.values.items() if slot not in before or not same(before[slot], value)
        }
        self._view.take(Writes(fresh, writes.deleted - self._taken.deleted, marked=True), self.trust)
        self._taken = Writes({**before, **writes.values}, self._taken.deleted | writes.deleted, marked=True)

    def _shown(self) -> Mapping[str, Value]:
        """The slots again, for the method to go on with."""
        self._taken = Writes()
        return self._view.shown()


def _cause(message: str) -> str:
    """What failed in the innermost method: each around it would say so once more, until nothing else is left."""
    return _WRAPPED.sub("", message)


class _Unmarked(CovenantViolation):
    """Found while the method runs: it could not go on with a view that others would not share."""
