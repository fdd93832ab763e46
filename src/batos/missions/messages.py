"""Missions that are a message: the message is answered by a slot, a method, an intent or a kernel function."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeGuard

from pydantic import JsonValue

from batos.brief import TEXT_LIMIT, Message, MissionBrief
from batos.conversations import conversations
from batos.errors import MessageNotUnderstood, ObjectError
from batos.gate.checks import GateVerdict
from batos.image import roots
from batos.image.lookup import find_object
from batos.image.records import least_trusted
from batos.image.roots import Root
from batos.inference.decisions.schema import Decision
from batos.memory.evidence import Evidence
from batos.methods.execution import method_results, resolution
from batos.methods.execution.invocation import InvocationResult
from batos.methods.execution.resolution import Resolution
from batos.methods.execution.write_buffer import WriteBuffer, trust_of
from batos.methods.generation import absent_objects
from batos.minds import context_building, prompt, provenance, states
from batos.minds.calls import answers, decisions
from batos.minds.calls.questions import room_for_evidence
from batos.minds.combine import weave
from batos.minds.context import MindContext
from batos.minds.parts.interpret import task_of
from batos.minds.results import JudgedAnswer, MindAnswer, PartResult, Synthesis
from batos.missions.interpreter import MissionInterpreter
from batos.objects.message import send
from batos.objects.method import Intent, Method, Primitive
from batos.objects.mirror import as_json
from batos.objects.prototype import Found, UvmObject, delegation, is_reserved, label, lookup, own_slots
from batos.routing.router import Route

#: The most characters of a result that is an answer.
LONGEST: Final = 256 * 1024
#: The default and the largest size in bytes of the evidence that a message asks for.
ROOM, MOST_ROOM = 4_000, 64_000
#: The persona for messages that need none.
_STEWARD: Final = "ALFRED"

_START = "orchestrator.start_cognitive_cycle_for"
_INFER = "llm.infer"
_DATA = "Send plain data: text, numbers, lists, objects."


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a message: plain data and its trust class; the judged answer if it is in words."""

    value: Any
    trust: str = "user"
    draft: JudgedAnswer | None = None


def direct(root: Root, brief: MissionBrief) -> tuple[MissionBrief, Route | None]:
    """Return the brief as its mission works on it, and the route of a message; None if the router has to choose.

    A message that starts a cycle goes to the router like any question, with its argument as the question.

    Raises: NotFound, MessageNotUnderstood, ObjectError: nothing can answer the message.
    """
    message = brief.message
    if message is None:
        return brief, None
    if absent_objects.is_absent(root, message):
        who = brief.persona or _STEWARD
        return brief, Route((who,), "reflex", 1.0, f"a message to {message.receiver}", {who: 1.0})
    receiver = _receiver(root, message, brief.user)
    found = _find_slot(receiver, message)
    if found.value == Primitive(_START):
        return brief.model_copy(update={"text": _text(message)}), None
    persona = brief.persona or _thinker(root, receiver)
    return brief, Route((persona,), "reflex", 1.0, f"a message to {message.receiver}", {persona: 1.0})


def _thinker(root: Root, receiver: UvmObject) -> str:
    """Return the persona that thinks for a message.

    This is the receiver if it is a persona, the lead of a conversation's newest turn, or else the steward.
    """
    if context_building.is_persona(receiver):
        return str(receiver.name)
    name = own_slots(receiver).get("name")
    if isinstance(name, str) and root[roots.CONVERSATIONS].get(name) is receiver:
        return conversations.lead(root, receiver) or _STEWARD
    return _STEWARD


async def deliver(context: MindContext, interpreter: MissionInterpreter) -> None:
    """Send the brief's message, and write its result onto the thought."""
    message = context.mission.brief.message
    assert message is not None
    if absent_objects.is_absent(context.mission.root, message):
        await absent_objects.summon(context, message)
    receiver = _receiver(context.mission.root, message, context.mission.brief.user)
    found = _find_slot(receiver, message)
    if context_building.is_persona(receiver):
        context = context_building.as_persona(context, receiver)
    interpreter = interpreter.in_voice(context)
    synthesis = states.open_synthesis(interpreter.cycle)
    result = await _answer(_Sent(context, interpreter, synthesis, receiver, found, message))
    if result is not None:
        synthesis.drafts.append(result.draft or _as_text(result.value))
        await states.complete(context, interpreter, interpreter.cycle, ())
        thought = context.mission.thought
        thought.lineage_trust = least_trusted(thought.lineage_trust, result.trust)
    told = {"receiver": label(receiver), "holder": label(found.holder), **message.model_dump(mode="json")}
    told["result"] = context.mission.thought.answer if result is None else result.value
    context.mission.thought.provenance = {**context.mission.thought.provenance, "message": told}


@dataclass(frozen=True, slots=True)
class _Sent:
    """A message being answered: its receiver, the slot found there, and the context."""

    context: MindContext
    interpreter: MissionInterpreter
    synthesis: Synthesis
    receiver: UvmObject
    found: Found
    message: Message

    def asking(self, question: str) -> _Sent:
        """Return the same message, of a mind that is asked this."""
        context = self.context.asking(question)
        return replace(self, context=context, interpreter=self.interpreter.in_voice(context))


async def _answer(sent: _Sent) -> _Result | None:
    """Return the result of the message; None if a cycle ran, which has written its answer itself."""
    value = sent.found.value
    if isinstance(value, Intent | Method):
        return await _run_behaviour(sent)
    if isinstance(value, Primitive) and value.name == _INFER:
        return await _infer_text(sent)
    if isinstance(value, Primitive):
        return await _run(sent, value.name)
    args, selector = sent.message.arguments, sent.message.selector
    answer = await send(sent.interpreter, sent.receiver, selector, *args)
    kept = None if args else WriteBuffer(user=sent.context.mission.brief.user).find(sent.receiver, selector)
    if not args and kept is None:
        raise MessageNotUnderstood(sent.message.receiver, selector)
    return _Result(as_json(answer if kept is None else kept.value), trust_of(own_slots(sent.found.holder), selector))


async def _run_behaviour(sent: _Sent) -> _Result:
    """Run the method that answers, or interpret the intent."""
    args = sent.message.arguments
    choice = await resolution.resolve(sent.context, sent.receiver, sent.found, sent.message.selector, args)
    if choice.method is None:
        return await _interpret(sent, choice)
    context = sent.context
    if context.mission.passages or context.mission.past.count:
        await _recall_evidence(
            sent, context.mind.question, prompt.method_task("", context.mind.question), decisions.PART
        )
    invocation = sent.interpreter.invocation(sent.receiver, sent.found, sent.message.selector, args, choice)
    ran = await sent.interpreter.run_method(invocation, choice)
    if not isinstance(ran, InvocationResult):
        return await _spoken_result(sent, ran)
    value, draft = method_results.as_plain(ran), None
    if isinstance(value, str) and choice.kind in ("facet", "protocol"):
        cited = tuple(each for thought in ran.thoughts for each in thought.citations)
        draft = await _judge(sent, MindAnswer(value.strip(), cited))
    return _Result(value, ran.trust, draft)


async def _interpret(sent: _Sent, choice: Resolution) -> _Result:
    """Interpret an intent in one call, with the mission's files and conversation as evidence."""
    text, intent = _text(sent.message), choice.intent
    _need_persona(sent)
    assert intent is not None
    sent = sent.asking(text)
    decision = decisions.CHANGED if intent.kind == "protocol" else decisions.PART
    await _recall_evidence(sent, text, task_of(sent.context.mind.voice, intent, text), decision)
    invocation = sent.interpreter.invocation(sent.receiver, sent.found, sent.message.selector, (text,), choice)
    return await _spoken_result(sent, await sent.interpreter.interpret_intent(invocation, choice))


async def _spoken_result(sent: _Sent, answer: Any) -> _Result:
    """Return the result of an interpreted intent."""
    if isinstance(answer, PartResult):
        said = answers.stand(sent.context, answer, f"{sent.context.mind.name}/{sent.message.selector}")
        return _Result({"answer": said.answer, "known": answer.known}, draft=await _judge(sent, said))
    return _Result(str(answer), draft=await _judge(sent, MindAnswer(str(answer).strip())))


async def _judge(sent: _Sent, said: MindAnswer) -> JudgedAnswer:
    """Return the answer with the gate's verdict on it."""
    return await answers.judge(sent.synthesis, said, answers.ground_of(sent.context, sent.synthesis))


async def _infer_text(sent: _Sent) -> _Result:
    """Answer `infer_` with a text, as a reflex of the persona. The primitive itself takes no plain data."""
    _need_persona(sent)
    text = _text(sent.message)
    sent = sent.asking(text)
    await _recall_evidence(sent, text, prompt.reflex_task(sent.context.mind.voice, text), decisions.WOVEN)
    said = await weave.reflex(sent.interpreter, sent.context, sent.synthesis)
    return _Result(said.answer, draft=await _judge(sent, said))


async def _recall_evidence(sent: _Sent, text: str, task: str, decision: Decision[Any]) -> None:
    """Recall the evidence that fits beside the message's one call, and put it into the synthesis."""
    room = room_for_evidence(sent.context, [(task, decision)])
    recalled = await states.recall(sent.context, sent.interpreter, text, room)
    sent.synthesis.recalled = sent.synthesis.evidence = recalled


async def _run(sent: _Sent, name: str) -> _Result | None:
    """Run a kernel function whose arguments can be plain data.

    Raises: ObjectError: the function takes other arguments.
    """
    message, checked = sent.message, ARGUMENTS.get(name)
    if checked is None:
        raise ObjectError(
            f"{message.selector!r} of {message.receiver} is the kernel's own ({name}) and takes no plain data",
            remedy="It is a step of a cycle: ask a question, and the cycle takes it.",
        )
    answer = await sent.interpreter.primitive(sent.receiver, name, checked(message))
    if name == _START:
        return None
    if isinstance(answer, Evidence):
        sent.synthesis.recalled = sent.synthesis.evidence = answer
        return _Result(_evidence(answer), provenance.lineage_trust(answer))
    trust = answer.pop("trust", "model") if isinstance(answer, dict) else "model"
    return _Result(as_json(answer), trust)


def _as_text(value: Any) -> JudgedAnswer:
    """Return data as an answer that needs no verdict.

    Raises: ObjectError: the text has more than LONGEST characters.
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    if len(text) > LONGEST:
        raise ObjectError(
            f"the answer has {len(text)} characters, at most {LONGEST} are one",
            remedy="Ask for a part of it, or look with `batos inspect OBJECT.SLOT`.",
        )
    return JudgedAnswer(MindAnswer(text), GateVerdict((), ()))


def _need_persona(sent: _Sent) -> None:
    """Raise ObjectError if the receiver is no persona."""
    if not context_building.is_persona(sent.receiver):
        raise ObjectError(
            f"{sent.message.receiver} has no voice to answer {sent.message.selector!r} with",
            remedy="Send it to a persona, as brick_prototype_obj is one.",
        )


def _receiver(root: Root, message: Message, user: str) -> UvmObject:
    """Return the object that a message is for. Raises: NotFound: there is none, or it belongs to another user."""
    return find_object(root, message.receiver, user)


def _find_slot(receiver: UvmObject, message: Message) -> Found:
    """Return the slot that answers the selector.

    Raises: MessageNotUnderstood: there is none; its remedy names similar ones.
    """
    selector = message.selector
    found = lookup(receiver, selector)
    if found is None:
        error = MessageNotUnderstood(message.receiver, selector)
        known = {name for holder in delegation(receiver) for name in own_slots(holder) if not is_reserved(name)}
        near = difflib.get_close_matches(selector, sorted(known), 3, 0.5)
        listed = f"`batos inspect {message.receiver}` lists what it has; what it inherits is its parents'."
        error.remedy = f"Did you mean {' or '.join(near)}?" if near else listed
        raise error
    return found


# -- arguments of kernel functions, as plain data may be them


def _text(message: Message) -> str:
    """Return the single text argument of a message. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    if len(args) != 1 or not isinstance(args[0], str) or not args[0].strip():
        raise ObjectError(f"{message.selector!r} takes one text: what it is about", remedy=_DATA)
    if len(args[0]) > TEXT_LIMIT:
        raise ObjectError(f"{message.selector!r} takes at most {TEXT_LIMIT} characters, not {len(args[0])}")
    return args[0]


def _query(message: Message) -> tuple[str, int]:
    """Return the query and the size in bytes for a recall. Raises: ObjectError: the arguments are others."""
    args = message.arguments
    room = args[1] if len(args) == 2 else ROOM
    if not args or len(args) > 2 or not isinstance(args[0], str) or not _whole(room) or not 0 <= room <= MOST_ROOM:
        raise ObjectError(f"{message.selector!r} takes a text and, if need be, bytes up to {MOST_ROOM}", remedy=_DATA)
    return args[0], room


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
ARGUMENTS: Final[Mapping[str, Callable[[Message], tuple[Any, ...]]]] = {
    "traits.log": lambda message: message.arguments,
    "traits.recall": _query,
    "catalog.search": _query,
    _START: lambda message: (_text(message),),
    "conversation.turns": _places,
    "conversation.compact": _none,
    "conversation.recompact": _none,
}


def _evidence(found: Evidence) -> dict[str, Any]:
    """Return recalled evidence as plain data."""
    return {
        "passages": [
            {"document": each.number, "name": each.name, "start": each.start, "text": each.text}
            for each in found.passages
        ],
        "older": [{"turns": [each.first, each.last], "text": each.text} for each in found.view],
        "turns": [{"mission": each.mission, "question": each.question, "answer": each.answer} for each in found.turns],
        "omitted": {"passages": found.omitted_passages, "turns": found.omitted_turns},
    }
