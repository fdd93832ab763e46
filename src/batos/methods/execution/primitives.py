"""The primitives that a method, or a person's message, may send to its mission: inference, memory, effects, the log."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from batos.agency.payloads import payload_of
from batos.agency.records import effect_records, look_up_records
from batos.agency.records.effect_records import EffectData
from batos.agency.records.schedule_records import DOOR
from batos.gate import attribution
from batos.memory.evidence import Evidence
from batos.memory.exchanges import IndexedDocument
from batos.memory.records import memory_records
from batos.methods.execution.resolution import LONGEST_LINE, Invocation, Thought, ToMethod
from batos.methods.execution.write_buffer import describe_type
from batos.minds import context_building, prompt, states
from batos.minds.calls import answers, questions
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MindContext
from batos.minds.parts.interpret import describe_intent, shape_of, task_of
from batos.minds.results import Task
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, label, own_slots, reference
from batos.protocol.brief import NO_MEMORY
from batos.protocol.errors import NotFound, ObjectError
from batos.records.methods import is_interpretable

_log = structlog.get_logger("batos.object")

#: The kernel's functions that stage effects.
OPERATIONS: Final = frozenset(name for kind in effect_records.SELECTORS.values() for name in kind.values())
#: The most effects of one mission.
MOST_EFFECTS: Final = 64
#: The answers of a message to a capability: it happens after the commit, or it happened in this lineage before.
STAGED, REPEATED = "staged", "repeated"
#: The most characters of a method's question; a longer one fits no model's window.
LONGEST_PROMPT: Final = 64 * 1024
#: The default and the largest size in bytes of the evidence that `recall_` returns.
ROOM, MOST_ROOM = 4_000, 64_000
#: The most characters of a document's title and of its text, and the most documents of a mission.
MOST_TITLE, MOST_TEXT, MOST_DOCUMENTS = 200, 64 * 1024, 256
#: The most texts of one `embed_`, and the most characters of each.
MOST_EMBEDDED, MOST_EMBEDDED_TEXT = 64, 8_000
#: The answer of `forget_`.
ASKED: Final = "asked"
#: The options that a method may set, with their bounds; only the codex sets the others.
OPTIONS: Final[Mapping[str, tuple[float, float]]] = {
    "seed": (0, 2**31 - 1),
    "temperature": (0.0, 2.0),
    "top_k": (1, 1_000),
    "top_p": (0.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A method's question to the model: the arguments of `infer_(prompt, system=None, **options)`."""

    prompt: str
    system: str | None
    options: Mapping[str, int | float]


def parse_question(args: Sequence[object], kwargs: Mapping[str, object]) -> ModelQuestion:
    """Return the question in the arguments of `infer_`.

    Raises: ObjectError: an argument is wrong; the message names it.
    """
    given = bind_arguments(lambda prompt, system=None, **options: None, "infer_", args, kwargs)
    text, system, options = given["prompt"], given.get("system"), given.get("options", {})
    for name, value in (("prompt", text), ("system", system)):
        if not isinstance(value, str) and not (name == "system" and value is None):
            raise ObjectError(f"`infer_` takes its {name} as text, not as {describe_type(value)}")
        if value is not None and len(value) > LONGEST_PROMPT:
            raise ObjectError(f"`infer_` takes a {name} of at most {LONGEST_PROMPT:,} characters, not {len(value):,}")
    if not text.strip():
        raise ObjectError("`infer_` was asked nothing: its prompt is empty")
    return ModelQuestion(
        text, system, {name: _option(name, value) for name, value in options.items() if value is not None}
    )


def _option(name: str, value: object) -> int | float:
    """Return an option's value if a method may set it so.

    Raises: ObjectError: the option is unknown or out of its bounds.
    """
    if name not in OPTIONS:
        raise ObjectError(f"`infer_` takes no option {name[:40]!r}: it takes {', '.join(OPTIONS)}")
    least, most = OPTIONS[name]
    whole = isinstance(least, int)
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not least <= value <= most:
        raise ObjectError(f"`infer_` takes {name} from {least} to {most}, not {str(value)[:40]}")
    number: int | float = value
    return number


async def think(invocation: Invocation[ToMethod], target: UvmObject, number: int, question: ModelQuestion) -> Thought:
    """Ask the model, with the mission's evidence beside the question, and return its answer.

    `number` counts the calls of this run from 0. The answer is in the voice of `target`, the object to which the method
    sent `infer_`, if that is a persona; otherwise in the voice of the mission.
    """
    context = in_voice_of(invocation.context, target)
    thinking = replace(context.mind.thinking, options={**context.mind.thinking.options, **question.options})
    context = context.with_mind(thinking=thinking)
    intent = invocation.message.intent if target is invocation.message.receiver else None
    call = Question(questions.call_path(invocation.path, number), _task(context, intent, question))
    interpreter, evidence = invocation.interpreter.in_voice(context), invocation.evidence
    spoken, _ = await infer(interpreter, context, evidence, call, shape_of(invocation.message.kind))
    found = await answers.attribute_aside(spoken.text, question.prompt, evidence)
    return Thought(spoken.text, attribution.citations_of(found), not attribution.finds_nothing(found))


def in_voice_of(context: MindContext, receiver: UvmObject) -> MindContext:
    """Return the context with the receiver's voice if the receiver is another persona, otherwise unchanged."""
    if receiver is context.mind.persona or not context_building.is_persona(receiver):
        return context
    return context_building.as_persona(context, receiver)


def _task(context: MindContext, intent: Intent | None, question: ModelQuestion) -> Task:
    """Return the task of the prompt. Without a system text the method asks as its intent would be interpreted.

    A tool has no voice: its question is the whole task.
    """
    if question.system is not None or intent is None or not is_interpretable(intent):
        return prompt.method_task(question.system or "", question.prompt)
    if intent.kind == "protocol":
        # The method's prompt already contains the answer, so the prompt is the task.
        return prompt.protocol_task(context.mind.voice, describe_intent(intent), question.prompt, fenced=False)
    return task_of(context.mind.voice, intent, question.prompt)


async def recall(invocation: Invocation[ToMethod], args: Sequence[object], kwargs: Mapping[str, object]) -> Evidence:
    """Recall the evidence for a query within `room` bytes, and note it as seen by the mission.

    Raises: ObjectError: the arguments are wrong, or the persona's `recall_` answers no evidence.
    """
    given = bind_arguments(lambda query, room=ROOM: None, "recall_", args, kwargs)
    query, room = given["query"], given.get("room", ROOM)
    if not isinstance(query, str) or not query.strip() or len(query) > LONGEST_PROMPT:
        raise ObjectError("`recall_` takes a text: what is looked for")
    if not isinstance(room, int) or isinstance(room, bool) or not 0 <= room <= MOST_ROOM:
        raise ObjectError(f"`recall_` takes bytes from 0 to {MOST_ROOM:,}, not {str(room)[:40]}")
    found = await states.recall(invocation.context, invocation.interpreter, query, room)
    invocation.context.trace.seen.append(found)
    return found


def recalled_texts(found: Evidence) -> list[str]:
    """Return the evidence as a method gets it: a text for each passage, each summary of older turns, and each turn."""
    passages = [f"{each.name}: {each.text}" for each in found.passages]
    older = [each.text for each in found.view]
    turns = [f"{each.question}\n{each.answer}" for each in found.turns]
    return [*passages, *older, *turns]


def log(invocation: Invocation[ToMethod], args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Log a line of a method as data.

    A long line is cut to LONGEST_LINE characters; lines after MOST_LINES are dropped.
    """
    if not invocation.limits.log():
        return
    text = " ".join(str(each) for each in (*args, *kwargs.values()))
    _log.info(
        "object",
        mission=invocation.context.mission.id,
        receiver=label(invocation.message.receiver),
        oid=reference(invocation.message.receiver),
        selector=invocation.message.selector,
        text=text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 1]}…",
    )


# -- memory, for a method or a person's message


def index_document(
    context: MindContext, args: Sequence[object], kwargs: Mapping[str, object], trust: str, *, is_evidence: bool
) -> None:
    """Note a document that is remembered once the mission is done. Of one text in a mission the first counts.

    `trust` is the class of everything that the text was made from. A text that is not evidence is found by a recall,
    and never shown to a mission as something that was given.

    Raises: ObjectError: an argument is wrong, there are too many documents, or the mission keeps nothing in memory.
    """
    given = bind_arguments(lambda title, text: None, "index_document_", args, kwargs)
    title, text = _check_text("title", given["title"], MOST_TITLE), _check_text("text", given["text"], MOST_TEXT)
    policy = context.mission.brief.policy
    if policy is not None and policy.memory == NO_MEMORY:
        raise ObjectError("`index_document_`: this mission keeps nothing in memory (`--no-memory`)")
    document = IndexedDocument(title, text, trust, is_evidence)
    if any(each.text == text for each in context.trace.indexed):
        return
    if len(context.trace.indexed) >= MOST_DOCUMENTS:
        raise ObjectError(f"a mission remembers at most {MOST_DOCUMENTS} documents of methods")
    context.trace.indexed.append(document)


def forget(context: MindContext, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Note documents of which a person is asked whether they may be forgotten, and return "asked".

    Ids, sources, or the mission that left them name documents; all are the mission's user's, and in its scope.

    Raises: ObjectError: an argument is wrong, or there is no such document.
    """
    named = bind_arguments(lambda documents: None, "forget_", args, kwargs)["documents"]
    several = [named] if isinstance(named, str) else named
    if not isinstance(several, list | tuple) or not 1 <= len(several) <= MOST_DOCUMENTS:
        raise ObjectError(f"`forget_` takes the name of a document, or a list of 1 to {MOST_DOCUMENTS} names")
    reach = context_building.reach_of(context.mission.brief)
    found: list[str] = []
    for name in several:
        if not isinstance(name, str) or reach is None or reach.scopes is None:
            raise ObjectError("`forget_` takes names of documents, in a mission that uses memory")
        try:
            documents = memory_records.find_documents(context.mission.root, name, context.mission.brief.user)
        except NotFound as error:
            raise ObjectError(f"`forget_`: {error.message}") from None
        found += [own_slots(each)["name"] for each in documents if own_slots(each)["scope"] in reach.scopes]
    if not found:
        raise ObjectError("`forget_`: these documents are of another scope than the mission's")
    context.trace.note_forgetting(found)
    return ASKED


async def embed(
    context: MindContext, path: str, args: Sequence[object], kwargs: Mapping[str, object]
) -> list[list[float]] | list[float]:
    """Return the vector of a text, or those of a list of texts; `path` is their place in the journal.

    Raises: ObjectError: an argument is wrong, or no embedder gives a vector.
    """
    texts = bind_arguments(lambda texts: None, "embed_", args, kwargs)["texts"]
    several = [texts] if isinstance(texts, str) else texts
    if not isinstance(several, list | tuple) or not 1 <= len(several) <= MOST_EMBEDDED:
        raise ObjectError(f"`embed_` takes a text, or a list of 1 to {MOST_EMBEDDED} texts")
    checked = [_check_text("text", each, MOST_EMBEDDED_TEXT, "embed_") for each in several]
    meanings = context.io.meanings
    vectors = None if meanings is None else await meanings.vectors(checked, path)
    if vectors is None:
        raise ObjectError("`embed_`: there is no embedder, or it gives no vector")
    found = [[float(number) for number in vector] for vector in vectors]
    return found[0] if isinstance(texts, str) else found


def _check_text(name: str, value: object, most: int, selector: str = "index_document_") -> str:
    if not isinstance(value, str) or not value.strip():
        raise ObjectError(f"`{selector}` takes its {name} as a text that is not empty")
    if len(value) > most:
        raise ObjectError(f"`{selector}` takes a {name} of at most {most:,} characters, not {len(value):,}")
    return value


def bind_arguments(shape: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Bind the arguments to the parameters of `shape`. Raises: ObjectError: they do not fit."""
    signature = inspect.signature(shape)
    try:
        return dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        taken = ", ".join(str(each).partition(":")[0].partition("=")[0] for each in signature.parameters.values())
        raise ObjectError(f"`{name}` takes ({taken}): {error}") from None


# -- effects on the world: a capability is found, an effect staged


def find_capability(context: MindContext, args: Sequence[object]) -> UvmObject:
    """Return a capability by the name of its grant.

    Raises: ObjectError: the mission's brief does not name the grant, or it is revoked.
    """
    name = args[0] if len(args) == 1 else None
    if not isinstance(name, str):
        raise ObjectError("`capability_` takes the name of a grant")
    found = effect_records.find_capability(context.mission.root, name)
    unattended = context.mission.brief.origin.door == DOOR
    if found is not None and look_up_records.is_usable(found, context.mission.brief.user, unattended=unattended):
        return found
    found = effect_records.find_capability(context.mission.root, name, context.mission.brief.user)
    if name not in (context.mission.brief.grants or ()) or found is None:
        raise _not_granted_error(name)
    return found


def stage(
    context: MindContext,
    capability: UvmObject,
    operation: str,
    args: Sequence[Any],
    staged: list[EffectData],
    asked_by: str = "",
) -> str:
    """Add an effect to those that this run stages, and return `staged`, or `repeated` for one that its lineage had.

    `asked_by` is the method and step that asks for it; "" is a person's own message, or the order in a question.

    The effect happens once the mission is committed, and not at all if it is not.

    Raises: ObjectError: the brief does not name the grant, an argument is wrong, or there are too many effects.
    """
    if not effect_records.is_capability(capability):
        raise ObjectError(f"{reference(capability)} is no capability")
    name = own_slots(capability)["name"]
    if reference(find_capability(context, [name])) != reference(capability):
        raise _not_granted_error(name)
    payload = dict(payload_of(operation, args))
    fingerprint = effect_records.fingerprint_of(reference(capability), operation, payload)
    if any(each["fingerprint"] == fingerprint for each in (*context.trace.effects, *staged)):
        return REPEATED
    if len(context.trace.effects) + len(staged) >= MOST_EFFECTS:
        raise ObjectError(f"a mission has at most {MOST_EFFECTS} effects on the world")
    if effect_records.find_equal(context.mission.root, context.mission.id, fingerprint) is not None:
        return REPEATED
    oid, nonce = reference(capability), effect_records.nonce_of(capability)
    order = context.mission.order
    is_own = not asked_by and (context.mission.brief.message is not None or (order is not None and bool(order.text)))
    staged.append(
        EffectData(
            grant=name, oid=oid, operation=operation, payload=payload, nonce=nonce, fingerprint=fingerprint,
            asked_by=asked_by, trust="user" if is_own else "",
        )
    )  # fmt: skip
    return STAGED


def _not_granted_error(name: str) -> ObjectError:
    return ObjectError(
        f"this mission holds no capability {name[:64]!r}",
        remedy="`batos grants list` lists grants; name one with --grant.",
    )
