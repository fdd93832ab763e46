"""The interpreter of messages in a mission: finds the receiver, runs kernel functions and methods, and interprets."""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeGuard

import structlog
from pydantic import JsonValue

from batos.agency.lookup import find_object
from batos.agency.records.look_up_records import PRIMITIVES
from batos.concurrency.threads import offload
from batos.conversations import compaction, conversations
from batos.image.records import least_trust
from batos.image.roots import Root
from batos.memory.evidence import Evidence
from batos.memory.search.recall import recall
from batos.methods.execution import method_run, primitives
from batos.methods.execution.api_calls import answer_message
from batos.methods.execution.primitives import MOST_ROOM, ROOM
from batos.methods.execution.resolution import (
    Invocation,
    InvocationResult,
    SlotMessage,
    To,
    ToIntent,
    ToMethod,
    resolve,
)
from batos.methods.execution.scoring import interpret_intent
from batos.methods.execution.write_buffer import WriteBuffer, data_of, with_references
from batos.methods.generation import growth
from batos.minds import context_building, look_ups, provenance, states
from batos.minds.calls import answers, questions
from batos.minds.context import MindContext
from batos.minds.machine import Machine
from batos.minds.results import PartResult
from batos.missions import effect_messages
from batos.objects.prototype import FoundSlot, UvmObject, delegation, is_reserved, label, lookup, own_slots, send
from batos.protocol.brief import TEXT_LIMIT, Message
from batos.protocol.errors import CellMissing, InternalError, MessageNotUnderstood, ObjectError
from batos.records.tools import CALL

_log = structlog.get_logger("batos.object")

#: The default of the first turn and of the number of turns, and the largest number.
_PAGE, _MOST_TURNS = (1, 20), 100
#: The work of loading a byte of a turn, as a multiple of reading one.
_LOADING = 4

Kernel: TypeAlias = Callable[["MissionInterpreter", UvmObject, tuple[Any, ...]], Awaitable[Any]]
Derive: TypeAlias = Callable[[Callable[[Any], Any]], Awaitable[Any]]


class MissionInterpreter:
    """The interpreter of one mind of a running mission; its facets share the evidence of its cycle.

    `buffer` is the write buffer of a mind within another. None means the mission's own mind, whose methods write into
    the image.
    """

    def __init__(
        self, context: MindContext, cycle: UvmObject, derive: Derive | None = None, buffer: WriteBuffer | None = None
    ) -> None:
        self.context = context
        self.cycle = cycle
        self._derive = derive
        self._buffer = buffer

    def within(self, context: MindContext, cycle: UvmObject) -> MissionInterpreter:
        """Return an interpreter for a mind within this one.

        The writes of its methods stay in a buffer until `merge_writes`.
        """
        return MissionInterpreter(context, cycle, self._derive, WriteBuffer(self._buffer, context.mission.brief.user))

    def merge_writes(self) -> str | None:
        """Merge the writes of this mind's methods, now that the mind has its answer, and return None.

        If another mind changed a slot that they read, nothing is merged, and the slot is returned in words.
        """
        moved = None if self._buffer is None else self._buffer.stale_read()
        if moved is None and self._buffer is not None:
            method_run.merge_writes(self._buffer, self.context.trace)
        return moved

    def in_voice(self, context: MindContext) -> MissionInterpreter:
        """Return an interpreter for the same mind with another voice or other options."""
        return MissionInterpreter(context, self.cycle, self._derive, self._buffer)

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change data derived from the image's records, such as summaries, in a short commit of its own."""
        if self._derive is None:
            raise InternalError("there is nothing to change a view with")
        return await self._derive(change)

    async def primitive(self, receiver: UvmObject, name: str, args: tuple[Any, ...]) -> Any:
        """Run a kernel function by its name. Raises: ObjectError: this kernel has no such function."""
        state = (growth.GROWING if growth.is_wish(self.context.mission.brief) else states.STATES).get(name)
        if state is not None:
            return await state(self.context, self, receiver, args)
        kernel = KERNEL.get(name)
        if kernel is None:
            raise ObjectError(
                f"this version has no kernel function {name!r}",
                remedy="Send a message that it has, or use a version that has this one.",
            )
        return await kernel(self, receiver, args)

    async def intent(self, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...]) -> Any:
        """Answer a message to an intent or a method: by a method, made now if need be, or by the intent's text.

        A facet answers with a PartResult, a protocol with a text, any other slot with plain data.
        """
        given = tuple(data_of(each, "an argument") for each in args)
        sent = SlotMessage(receiver, found.holder, found.value, selector, given, is_numbered=True)
        message = await resolve(self.context, sent)
        if isinstance(message, ToMethod):
            answer = await self.run(message, method_run.check_result)
            if isinstance(answer, InvocationResult):
                return self._result(message, answer)
        else:
            answer = await self.interpret(message)
        return answer.answer if message.kind == "protocol" else answer

    method = intent

    async def interpret(self, message: ToIntent) -> PartResult:
        """Answer a message by the text of its intent, with the evidence of this cycle."""
        return await interpret_intent(self._invocation(message), states.synthesis_of(self.cycle))

    async def run(
        self, message: ToMethod, takes: method_run.Takes = method_run.accept_any
    ) -> InvocationResult | PartResult:
        """Run the method that answers a message, with the evidence of this cycle.

        Without a cell the method's intent is interpreted, if policy allows: the result is a PartResult then.

        Raises: CellMissing: there is no cell, and the intent cannot or may not be interpreted.
        """
        try:
            return await method_run.run(self._invocation(message), takes)
        except CellMissing:
            spoken = message.without_cell()
            if spoken is None or self.context.mind.policy.interpret == "never":
                raise
        return await self.interpret(spoken)

    def _invocation(self, message: To) -> Invocation[To]:
        """Return the invocation for a message, with the evidence of this cycle.

        Its trust class is no higher than that of the evidence.
        """
        synthesis = states.synthesis_of(self.cycle)
        # A protocol's text depends on all earlier runs; parts are asked independently of each other.
        before = self.context.trace.trusts if message.kind == "protocol" else ()
        return Invocation(
            context=self.context,
            interpreter=self,
            message=message,
            path=questions.method_path(message.kind, self.context.mind.name, message.selector),
            evidence=synthesis.evidence,
            trust=least_trust(provenance.lineage_trust(synthesis.recalled), *before),
            mind=self._buffer,
        )

    def _result(self, message: ToMethod, ran: InvocationResult) -> Any:
        """Return a method's result in the form that a mind needs from its kind of slot."""
        if message.kind == "facet":
            return method_run.part_of_result(self.context, ran, message, states.synthesis_of(self.cycle).evidence)
        if message.kind == "protocol":
            said = method_run.text_of_result(ran.value, message.selector)
            answers.tell(self.context, questions.protocol_path(self.context.mind.name, message.selector), said)
            return said
        return with_references(ran.value)


async def _log_line(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> None:
    """Log a line for an object."""
    _log.info("object", mission=interpreter.context.mission.id, receiver=label(receiver), text=" ".join(map(str, args)))


async def _search(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> Evidence:
    """Recall evidence for a query from the mission's files, from memory and its conversation, within `room` bytes.

    A third argument is the room for turns, which are recalled beside the passages then.
    """
    query, room, *turns = str(args[0]), *map(int, args[1:3])
    context = interpreter.context
    # Loading turns takes longer than reading their text: those of a long conversation are loaded in a thread.
    size = sum(len(passage.text) for passage in context.mission.passages) + _LOADING * (
        room if context.mission.past.count else 0
    )
    given = (*context.mission.passages, *(each.passage() for each in context.trace.indexed if each.is_evidence))
    found = await context_building.find_passages(context, query)
    pinned = [each for each in found if each.is_pinned]
    candidates = (*pinned, *given, *found[len(pinned) :])
    return await offload(size, lambda: recall(candidates, context.mission.past, query, room, *turns))


async def _index(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> None:
    """Note a document that a person's message gives to be remembered."""
    trust = least_trust("user", *interpreter.context.trace.trusts)
    primitives.index_document(interpreter.context, args, {}, trust, is_evidence=True)


async def _forget(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> str:
    """Note documents of which a person is asked whether they may be forgotten."""
    return primitives.forget(interpreter.context, args, {})


async def _capability(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> UvmObject:
    """Return a capability that the mission's brief names."""
    return primitives.find_capability(interpreter.context, args)


def _effect(operation: str) -> Kernel:
    """Return the kernel function for an effect of a person's message."""
    return lambda interpreter, receiver, args: effect_messages.act(interpreter.context, receiver, operation, args)


async def _start_cycle(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> UvmObject:
    """Run the orchestrator's cycle for the mission's brief, from IDLE to IDLE."""
    context = interpreter.context.asking(str(args[0]))
    await Machine(receiver, interpreter.in_voice(context), context).run(interpreter.cycle)
    return interpreter.cycle


async def _turns(interpreter: MissionInterpreter, receiver: UvmObject, args: tuple[Any, ...]) -> dict[str, object]:
    """Return a page of a conversation's turns for its user, with the lowest trust class of these turns."""
    context = interpreter.context
    name = own_slots(receiver).get("name", label(receiver))
    place = (*args, *_PAGE[len(args) :])
    page = conversations.page(
        context.mission.root, name, place[0], min(place[1], _MOST_TURNS), context.mission.brief.user
    )
    return {**page, "trust": least_trust("user", *(turn["trust"] for turn in page["turns"]))}


KERNEL: Final[dict[str, Kernel]] = {
    "traits.log": _log_line,
    "traits.recall": lambda interpreter, receiver, args: send(
        interpreter, interpreter.context.mission.root["knowledge_catalog_obj"], "search_", *args
    ),
    "catalog.search": _search,
    "catalog.index": _index,
    "catalog.forget": _forget,
    "llm.embed": lambda interpreter, receiver, args: primitives.embed(interpreter.context, "embed#0", args, {}),
    "traits.capability": _capability,
    CALL: lambda interpreter, receiver, args: answer_message(interpreter.context, receiver, args),
    **{operation: _effect(operation) for operation in sorted(primitives.OPERATIONS)},
    **dict.fromkeys(
        PRIMITIVES.values(),
        lambda interpreter, receiver, args: look_ups.answer_message(interpreter.context, receiver, *args),
    ),
    "llm.infer": lambda interpreter, receiver, args: questions.ask(interpreter.context, *args),
    "orchestrator.start_cognitive_cycle_for": _start_cycle,
    "conversation.turns": _turns,
    "conversation.compact": compaction.compact,
    "conversation.recompact": compaction.recompact,
}


#: The kernel functions that begin a cycle, and that ask a persona's model.
START: Final = "orchestrator.start_cognitive_cycle_for"
INFER: Final = "llm.infer"

_DATA: Final = "Send plain data: text, numbers, lists, objects."


@dataclass(frozen=True, slots=True)
class AddressedMessage:
    """A message with its receiver and the slot that answers it."""

    message: Message
    receiver: UvmObject
    found: FoundSlot

    @property
    def text(self) -> str:
        """Return the single text argument. Raises: ObjectError: the arguments are others, or the text is too long."""
        return _text(self.message)

    def arguments_of(self, primitive: str) -> tuple[Any, ...]:
        """Return the arguments as this kernel function takes them.

        Raises: ObjectError: the function takes others, or no plain data.
        """
        convert = _ARGUMENTS.get(primitive)
        if convert is None:
            raise ObjectError(
                f"{self.message.selector!r} of {self.message.receiver} is the kernel's own ({primitive}) "
                "and takes no plain data",
                remedy="It is a step of a cycle: ask a question, and the cycle runs it.",
            )
        return convert(self.message)


def address(root: Root, message: Message, user: str) -> AddressedMessage:
    """Return a user's message with its receiver and the slot that answers the selector.

    Raises: NotFound: there is no such object, or it belongs to another user. MessageNotUnderstood: there is no such
    slot; the remedy names similar ones.
    """
    receiver = find_object(root, message.receiver, user)
    found = lookup(receiver, message.selector)
    if found is None:
        raise _not_understood_error(receiver, message)
    return AddressedMessage(message, receiver, found)


def _not_understood_error(receiver: UvmObject, message: Message) -> MessageNotUnderstood:
    """Return the error of a selector that nothing answers; its remedy names similar selectors."""
    known = {name for holder in delegation(receiver) for name in own_slots(holder) if not is_reserved(name)}
    near = difflib.get_close_matches(message.selector, sorted(known), 3, 0.5)
    listed = f"`batos inspect {message.receiver}` lists its own messages; it inherits those of its parents."
    remedy = f"Did you mean {' or '.join(near)}?" if near else listed
    return MessageNotUnderstood(message.receiver, message.selector).advise(remedy)


def checked_question(selector: str, text: str) -> str:
    """Return a text that becomes a mind's question. Raises: ObjectError: the text is too long for one."""
    if len(text) > TEXT_LIMIT:
        raise ObjectError(f"{selector!r} takes at most {TEXT_LIMIT} characters, not {len(text)}")
    return text


def _text(message: Message) -> str:
    """Return the single text argument of a message. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    if len(args) != 1 or not isinstance(args[0], str) or not args[0].strip():
        raise ObjectError(f"{message.selector!r} takes one text", remedy=_DATA)
    return checked_question(message.selector, args[0])


def _query(message: Message) -> tuple[str, int]:
    """Return the query and the size in bytes for a recall. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    room = args[1] if len(args) == 2 else ROOM
    if not args or len(args) > 2 or not isinstance(args[0], str) or not _whole(room) or not 0 <= room <= MOST_ROOM:
        raise ObjectError(f"{message.selector!r} takes a text and, if need be, bytes up to {MOST_ROOM}", remedy=_DATA)
    return args[0], room


def _arguments(message: Message) -> tuple[JsonValue, ...]:
    """Return the arguments as they are: the function checks them itself."""
    return tuple(message.arguments)


def _none(message: Message) -> tuple[()]:
    """Return no arguments. Raises: ObjectError: the message has some."""
    if message.arguments:
        raise ObjectError(f"{message.selector!r} takes no arguments")
    return ()


def _places(message: Message) -> tuple[int, ...]:
    """Return the first turn's position and the number of turns, as far as given.

    Raises: ObjectError: the arguments are others.
    """
    args = message.arguments
    if len(args) > 2 or not all(_whole(each) for each in args):
        raise ObjectError(f"{message.selector!r} takes the first turn's position and how many turns", remedy=_DATA)
    return tuple(each for each in args if _whole(each))


def _whole(value: JsonValue) -> TypeGuard[int]:
    """Test if the value is an integer of at most 32 bits."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31


#: Kernel functions that a message may run, each with the function that converts its arguments from plain data.
_ARGUMENTS: Final[Mapping[str, Callable[[Message], tuple[Any, ...]]]] = {
    CALL: _arguments,
    "traits.log": _arguments,
    "traits.recall": _query,
    "catalog.search": _query,
    "catalog.index": _arguments,
    "catalog.forget": _arguments,
    "llm.embed": _arguments,
    **dict.fromkeys(sorted(primitives.OPERATIONS), _arguments),
    **dict.fromkeys(PRIMITIVES.values(), lambda message: (message.selector, *message.arguments)),
    START: lambda message: (_text(message),),
    "conversation.turns": _places,
    "conversation.compact": _none,
    "conversation.recompact": _none,
}
