"""Missions that are a message: the message is answered by a slot, a method, an intent or a kernel function."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from batos.agency.payloads import payload_of
from batos.conversations import conversations
from batos.gate.checks import GateVerdict
from batos.image import ownership, roots
from batos.image.records import least_trust
from batos.image.roots import Root
from batos.inference.decide import FreeText
from batos.memory.evidence import Evidence
from batos.methods.execution.api_calls import ApiAnswer
from batos.methods.execution.resolution import ResolvedMessage, SlotMessage, ToIntent, resolve, summon
from batos.methods.execution.write_buffer import WriteBuffer, data_of, list_shared, trust_of, with_references
from batos.methods.generation import attempt, growth
from batos.minds import context_building, prompt, provenance, states
from batos.minds.calls import answers, decisions, questions
from batos.minds.calls.questions import WORDLESS
from batos.minds.combine import combination
from batos.minds.context import MindContext
from batos.minds.parts import mapping
from batos.minds.parts.interpret import shape_of, task_of
from batos.minds.results import JudgedAnswer, MindAnswer, PartResult, Synthesis, Task
from batos.missions.interpreter import INFER, START, AddressedMessage, MissionInterpreter, address, checked_question
from batos.objects.method import Intent, Method, Primitive
from batos.objects.mirror import as_json
from batos.objects.prototype import UvmObject, label, own_slots, send
from batos.protocol.brief import Message, MissionBrief
from batos.protocol.errors import MessageNotUnderstood, ObjectError
from batos.routing.router import Route

#: The most characters of a result that is an answer.
LONGEST: Final = 256 * 1024
#: The persona for messages that need none.
_STEWARD: Final = "ALFRED"


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
    if growth.is_wish(brief) or attempt.absent_intent(root, message) is not None:
        return brief, _route(brief.persona or _STEWARD, message)
    addressed = address(root, message, brief.user)
    if addressed.found.value == Primitive(START):
        return brief.model_copy(update={"text": addressed.text}), None
    return brief, _route(brief.persona or _thinker(root, addressed.receiver), message)


def check(root: Root, brief: MissionBrief) -> None:
    """Refuse a message that nothing answers, or that asks for an effect that no sink takes: it would be no mission.

    Raises: NotFound, MessageNotUnderstood, ObjectError: as `direct`; or the payload of the effect is wrong.
    """
    message = brief.message
    if message is None or brief.origin.door == ownership.DOOR or attempt.absent_intent(root, message) is not None:
        return
    value = address(root, message, brief.user).found.value
    if isinstance(value, Primitive) and value.name.startswith("effect."):
        try:
            payload_of(value.name, message.arguments)
        except ObjectError as error:
            raise error.advise("Name a plain file below the granted folder, and give a text.") from None


def _route(persona: str, message: Message) -> Route:
    """Return the route of a message: a reflex of this persona."""
    return Route((persona,), "reflex", 1.0, f"a message to {message.receiver}", {persona: 1.0})


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


async def deliver(context: MindContext, interpreter: MissionInterpreter, message: Message) -> None:
    """Answer the brief's message in a cycle of one step, which writes the result onto the thought.

    The step answers by what the message resolves to, and the state COMPLETE judges and writes as in every cycle.
    """
    root, thought = context.mission.root, context.mission.thought
    absent = attempt.absent_intent(root, message)
    if absent is not None:
        await summon(context, message.receiver, absent)
    addressed = address(root, message, context.mission.brief.user)
    if context_building.is_persona(addressed.receiver):
        context = context_building.as_persona(context, addressed.receiver)
    interpreter = interpreter.in_voice(context)
    synthesis = states.open_synthesis(interpreter.cycle)
    result = await _answer(_Step(context, interpreter, synthesis, addressed))
    if result is not None:
        synthesis.drafts.append(result.draft or _as_text(result.value))
        await states.complete(context, interpreter, interpreter.cycle, ())
        thought.lineage_trust = least_trust(thought.lineage_trust, result.trust)
    told = {"receiver": label(addressed.receiver), "holder": label(addressed.found.holder)}
    answer = {"result": thought.answer if result is None else result.value}
    thought.provenance = {**thought.provenance, "message": {**told, **message.model_dump(mode="json"), **answer}}


@dataclass(frozen=True, slots=True)
class _Step:
    """The one step of a message's cycle: the mind that answers, its synthesis, and the addressed message."""

    context: MindContext
    interpreter: MissionInterpreter
    synthesis: Synthesis
    addressed: AddressedMessage

    @property
    def message(self) -> Message:
        """Return the message of the brief."""
        return self.addressed.message

    def asking(self, question: str) -> _Step:
        """Return the same step, of a mind that is asked this."""
        context = self.context.asking(checked_question(self.message.selector, question))
        return replace(self, context=context, interpreter=self.interpreter.in_voice(context))


async def _answer(step: _Step) -> _Result | None:
    """Return the result of the message; None if a cycle ran, which has written its answer itself."""
    receiver, found, selector = step.addressed.receiver, step.addressed.found, step.message.selector
    if isinstance(found.value, Intent | Method):
        return await _run_behaviour(step)
    if isinstance(found.value, Primitive) and found.value.name == INFER:
        return await _infer_text(step)
    if isinstance(found.value, Primitive):
        return await _run_primitive(step, found.value.name)
    args = step.message.arguments
    answer = await send(step.interpreter, receiver, selector, *args)
    kept = None if args else WriteBuffer(user=step.context.mission.brief.user).find(receiver, selector)
    if not args and kept is None:
        raise MessageNotUnderstood(step.message.receiver, selector)
    if kept is not None:
        step.context.trace.note_reads(list_shared([(kept.holder, selector)]))
    return _Result(as_json(answer if kept is None else kept.value), trust_of(own_slots(found.holder), selector))


async def _run_behaviour(step: _Step) -> _Result:
    """Run the method that answers, or interpret the intent, with the mission's files and conversation as evidence."""
    receiver, found, arguments = step.addressed.receiver, step.addressed.found, step.message.arguments
    args = tuple(data_of(each, "an argument") for each in arguments)
    sent = SlotMessage(receiver, found.holder, found.value, step.message.selector, args)
    message = await resolve(step.context, sent)
    if isinstance(message, ToIntent):
        _need_persona(step)
        step, text = step.asking(message.text), message.text
        task = task_of(step.context.mind.voice, message.intent, text)
        await _recall_evidence(step, text, task, shape_of(message.intent.kind))
        return await _interpret_message(step, message)
    if step.context.mission.passages or step.context.mission.past.count:
        question = step.context.mind.question
        await _recall_evidence(step, question, prompt.method_task("", question), decisions.PART)
    ran = await step.interpreter.run(message)
    if isinstance(ran, PartResult):
        return await _spoken_result(step, message, ran)
    value, draft = with_references(ran.value), None
    if isinstance(value, str) and message.kind in ("facet", "protocol"):
        draft = await _judge(step, MindAnswer(value.strip()))
    return _Result(value, ran.trust, draft)


async def _interpret_message(step: _Step, message: ToIntent) -> _Result:
    """Return the model's answer to the text of an intent; where it has no words of use, the answer of a rule."""
    try:
        part = await step.interpreter.interpret(message)
    except WORDLESS as wordless:
        return await _ruled_result(step, message, wordless.message)
    if message.kind != "protocol" and decisions.echoes(part.answer, message.text):
        return await _ruled_result(step, message, "the reply is the question again")
    return await _spoken_result(step, message, part)


async def _ruled_result(step: _Step, message: ToIntent, why: str) -> _Result:
    """Return what the evidence says, or that nothing was found; of a protocol the text that it was given, unchanged."""
    context = step.context
    path = questions.intent_path(message.intent.kind, context.mind.name, message.selector)
    if message.kind == "protocol":
        context.decide_by_rule(path, "reply", why)
        step.synthesis.combined["ruled"] = why
        answers.tell_again(context, path, message.text, why)
        return _Result(message.text, draft=await _judge(step, MindAnswer(message.text.strip(), is_ruled=True)))
    answers.retract(context, path, why)
    draft = await _judge(step, combination.answer_by_rule(context, step.synthesis, path, why))
    return _Result({"answer": draft.answer.answer, "known": bool(draft.answer.citations)}, draft=draft)


async def _spoken_result(step: _Step, message: ResolvedMessage, part: PartResult) -> _Result:
    """Return the result of an interpreted intent: a protocol's is its text."""
    if message.kind == "protocol":
        return _Result(part.answer, draft=await _judge(step, MindAnswer(part.answer.strip())))
    said = answers.stand(step.context, step.synthesis, part, f"{step.context.mind.name}/{message.selector}")
    return _Result({"answer": said.answer, "known": part.is_known}, draft=await _judge(step, said))


async def _judge(step: _Step, said: MindAnswer) -> JudgedAnswer:
    """Return the answer with the gate's verdict on it."""
    return await answers.judge(step.context, step.synthesis, said, answers.ground_of(step.context, step.synthesis))


async def _infer_text(step: _Step) -> _Result:
    """Answer `infer_` with a text, as a reflex of the persona. The primitive itself takes no plain data."""
    _need_persona(step)
    text = step.addressed.text
    step = step.asking(text)
    await _recall_evidence(step, text, prompt.reflex_task(step.context.mind.voice, text), decisions.WHOLE)
    said = await combination.reflex(step.interpreter, step.context, step.synthesis)
    return _Result(said.answer, draft=await _judge(step, said))


async def _recall_evidence(step: _Step, text: str, task: Task, shape: FreeText) -> None:
    """Recall the evidence that fits beside the message's one call, and put it into the synthesis."""
    rooms = mapping.rooms_beside(step.context, task, shape)
    recalled = await states.recall(step.context, step.interpreter, text, *rooms)
    step.synthesis.recalled = step.synthesis.evidence = recalled


async def _run_primitive(step: _Step, name: str) -> _Result | None:
    """Run a kernel function whose arguments can be plain data.

    Raises: ObjectError: the function takes other arguments.
    """
    args = step.addressed.arguments_of(name)
    answer = await step.interpreter.primitive(step.addressed.receiver, name, args)
    if name == START:
        return None
    if isinstance(answer, Evidence):
        step.synthesis.recalled = step.synthesis.evidence = answer
        return _Result(_evidence(answer), provenance.lineage_trust(answer))
    if isinstance(answer, ApiAnswer):
        return _api_result(step, answer)
    trust = answer.pop("trust", "model") if isinstance(answer, dict) else "model"
    return _Result(as_json(answer), trust)


def _api_result(step: _Step, answer: ApiAnswer) -> _Result:
    """Return the value of a described API's operation. Raises: ObjectError: it answered with a failure."""
    if answer.failure:
        what = f"{step.message.receiver}.{step.message.selector} answered: {answer.failure}"
        raise ObjectError(what, remedy=f"It was asked at {answer.address}.")
    value = "\n".join(filter(None, (answer.body, answer.note))) if answer.is_raw else as_json(answer.value)
    return _Result(value, "external")


def _as_text(value: object) -> JudgedAnswer:
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


def _need_persona(step: _Step) -> None:
    """Raise ObjectError if the receiver is no persona."""
    if not context_building.is_persona(step.addressed.receiver):
        raise ObjectError(
            f"{step.message.receiver} is no persona, and cannot answer {step.message.selector!r}",
            remedy="Send it to a persona, as brick_prototype_obj is one.",
        )


def _evidence(found: Evidence) -> dict[str, object]:
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
