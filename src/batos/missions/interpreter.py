"""What messages mean while a mission runs: kernel functions by name, methods run in the cell, intents interpreted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import structlog

from batos.concurrency.offload import offload
from batos.conversations import compaction, conversations
from batos.errors import CellMissing, InternalError, ObjectError
from batos.image.records import least_trusted
from batos.memory.evidence import Evidence
from batos.memory.recall import recall
from batos.methods.execution import method_results, method_run, resolution, usage
from batos.methods.execution.invocation import Invocation, InvocationResult
from batos.methods.execution.plain_data import data_of
from batos.methods.execution.resolution import Resolution
from batos.methods.execution.write_buffer import WriteBuffer
from batos.minds import provenance, states
from batos.minds.calls import questions, sample_paths
from batos.minds.context import MindContext
from batos.minds.machine import Machine
from batos.minds.parts.interpret import SubQuery, interpret
from batos.minds.results import PartResult
from batos.objects.message import send
from batos.objects.method import Intent
from batos.objects.prototype import Found, UvmObject, label, own_slots

_log = structlog.get_logger("batos.object")

#: The first turn and how many, where a message does not say; and at most.
_PAGE, _MOST_TURNS = (1, 20), 100
#: How much more work it is to load a byte of a turn than to read it.
_LOADING = 4

Kernel: TypeAlias = Callable[["MissionInterpreter", UvmObject, tuple[Any, ...]], Awaitable[Any]]
Derive: TypeAlias = Callable[[Callable[[Any], Any]], Awaitable[Any]]


class MissionInterpreter:
    """The interpreter of one mind of a running mission; facets share the evidence of its cycle.

    `sheet` is what the methods of a mind within another write on; None: the mission's own mind's go into the image.
    """

    def __init__(
        self, context: MindContext, cycle: UvmObject, derive: Derive | None = None, sheet: WriteBuffer | None = None
    ) -> None:
        self.context = context
        self.cycle = cycle
        self._derive = derive
        self._sheet = sheet

    def within(self, context: MindContext, cycle: UvmObject) -> MissionInterpreter:
        """Make one that interprets for a mind within this one; what its methods write is its own until it is joined."""
        return MissionInterpreter(context, cycle, self._derive, WriteBuffer(self._sheet, context.mission.brief.user))

    def merge_writes(self) -> str | None:
        """Lay down what this mind's methods wrote, now that it has its answer; None: it is laid.

        Else what it rested on and others have changed since, in words: nothing is laid.
        """
        moved = None if self._sheet is None else self._sheet.stale_read()
        if moved is None and self._sheet is not None:
            self.context.trace.changed(self._sheet.merge_down())
        return moved

    def in_voice(self, context: MindContext) -> MissionInterpreter:
        """One that interprets for the same mind with another voice or other options."""
        return MissionInterpreter(context, self.cycle, self._derive, self._sheet)

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change what is derived from the image's truth (a view of turns) in a short commit of its own."""
        if self._derive is None:
            raise InternalError("there is nothing to change a view with")
        return await self._derive(change)

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run the kernel function of that name; ObjectError if this kernel has none."""
        state = states.STATES.get(name)
        if state is not None:
            return await state(self.context, self, receiver, args)
        kernel = KERNEL.get(name)
        if kernel is None:
            raise ObjectError(
                f"this version has no kernel function {name!r}",
                remedy="Send a message that it has, or use a version that has this one.",
            )
        return await kernel(self, receiver, args)

    async def intent(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """A message to an intent: a method is made of it and run, or it is interpreted: its text guides `infer_`."""
        return await self._run_behaviour(receiver, found, selector, args)

    async def method(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """A message to a method: it runs in the cell, or, as its control, its intent is interpreted."""
        return await self._run_behaviour(receiver, found, selector, args)

    async def _run_behaviour(self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...]) -> Any:
        """As a mind needs it: a facet's PartResult, a protocol's text; of any other what it returned, as plain data."""
        choice = await resolution.resolve(self.context, receiver, found, selector, args)
        if choice.method is None and not args:
            raise ObjectError(f"{selector!r} of {label(receiver)} is an intent and needs to be told what about")
        number = 0
        if choice.kind == "facet":
            # What a mind sends with a sub-query is its number, which is the kernel's own.
            args, number = args[:1], int(args[1]) if len(args) > 1 else 0
        errand = self.invocation(receiver, found, selector, args, choice)
        errand = replace(errand, number=number)
        if choice.method is None:
            return await self.interpret_intent(errand, choice)
        ran = await self.run_method(errand, choice, method_results.check_result)
        return self._result(errand, ran) if isinstance(ran, InvocationResult) else ran

    def invocation(
        self, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...], choice: Resolution
    ) -> Invocation:
        """A message to behaviour, as it sets out: beside the evidence of this cycle, trusted no more than that is."""
        synthesis = states.work(self.cycle)
        # What a protocol is told was made from all that came before it; parts are asked beside one another.
        before = self.context.trace.trusts if choice.kind == "protocol" else ()
        return Invocation(
            context=self.context,
            interpreter=self,
            receiver=receiver,
            holder=found.holder,
            selector=selector,
            method=choice.method,
            args=tuple(data_of(each, "an argument") for each in args),
            path=sample_paths.method(choice.kind, self.context.mind.name, selector),
            evidence=synthesis.evidence,
            trust=least_trusted(provenance.lineage_trust(synthesis.recalled), *before),
            intent=choice.intent,
            kind=choice.kind,
            mind=self._sheet,
        )

    async def run_method(
        self, errand: Invocation, choice: Resolution, takes: method_run.Takes = method_run.accept_any
    ) -> Any:
        """Return what the method gave; where there is no cell, what its intent gives, if policy lets that be."""
        try:
            return await method_run.run(errand, takes)
        except CellMissing:
            could = resolution.interpretable(errand.receiver, choice.intent, errand.args)
            if not could or self.context.mind.policy.interpret == "never":
                raise
            return await self.interpret_intent(errand, choice, usage.CELLLESS)

    async def interpret_intent(self, errand: Invocation, choice: Resolution, how: str = "") -> Any:
        """Interpret an intent: its text guides `infer_`. Return a part's result, of a protocol its text."""
        part = await usage.of_intent(errand, choice, self._interpret(errand), how)
        return part.answer if choice.kind == "protocol" else part

    async def _interpret(self, errand: Invocation) -> PartResult:
        intent = errand.intent
        assert intent is not None
        synthesis = states.work(self.cycle)
        asked = SubQuery(errand.selector, intent, str(errand.args[0]), errand.number)
        return await interpret(self, self.context, synthesis.evidence, asked, synthesis)

    def _result(self, errand: Invocation, ran: InvocationResult) -> Any:
        """What a method gave, in the shape that a mind takes from such a slot."""
        if errand.kind == "facet":
            intent = errand.intent or Intent("", name=errand.selector)
            asked = SubQuery(errand.selector, intent, str(errand.args[0]), errand.number)
            return method_results.part(self.context, ran, asked, errand.evidence)
        if errand.kind == "protocol":
            said = method_results.text(ran.value, errand.selector)
            path = sample_paths.protocol(self.context.mind.name, errand.selector)
            self.context.io.events.emit("mission.token", mission=self.context.mission.id, path=path, text=said)
            return said
        return method_results.as_plain(ran)


async def _log_line(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> None:
    _log.info("object", mission=interpreter.context.mission.id, receiver=label(receiver), text=" ".join(map(str, args)))


async def _recall(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Any:
    return await send(interpreter, interpreter.context.mission.root["knowledge_catalog_obj"], "search_", *args)


async def _search(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Evidence:
    """Until there is memory: the mission's own files and its conversation, within `room` bytes."""
    query, room = str(args[0]), int(args[1])
    context = interpreter.context
    # Loading turns takes longer than reading their text: a short conversation's are loaded here, a long one's aside.
    size = sum(len(passage.text) for passage in context.mission.passages) + _LOADING * (
        room if context.mission.past.count else 0
    )
    return await offload(size, lambda: recall(context.mission.passages, context.mission.past, query, room))


async def _infer(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Any:
    """A question with its evidence and the decision that it is to be answered by."""
    evidence, question, decision = args
    return await questions.ask(interpreter.context, evidence, question, decision)


async def _start_cycle(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> UvmObject:
    """Run the cycle of a mind from IDLE to IDLE again, with the question that the orchestrator is given."""
    context = interpreter.context.asking(str(args[0]))
    await Machine(receiver, interpreter.in_voice(context), context).run(interpreter.cycle)
    return interpreter.cycle


async def _turns(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> dict[str, Any]:
    """A page of a conversation's turns, for its user; as trusted as the least of them."""
    context = interpreter.context
    name = own_slots(receiver).get("name", label(receiver))
    place = (*args, *_PAGE[len(args) :])
    page = conversations.page(
        context.mission.root, name, place[0], min(place[1], _MOST_TURNS), context.mission.brief.user
    )
    return {**page, "trust": least_trusted("user", *(turn["trust"] for turn in page["turns"]))}


KERNEL: Final[dict[str, Kernel]] = {
    "traits.log": _log_line,
    "traits.recall": _recall,
    "catalog.search": _search,
    "llm.infer": _infer,
    "orchestrator.start_cognitive_cycle_for": _start_cycle,
    "conversation.turns": _turns,
    "conversation.compact": compaction.compact,
    "conversation.recompact": compaction.recompact,
}
