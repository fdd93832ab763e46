"""A question to the model within the window: composed, fitted, shortened once if need be, on its sample path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from batos.inference.decide import Deciding, LimitedText, ReplyShape, V, decide, no_fault
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.session import Step
from batos.memory.evidence import Evidence
from batos.memory.segmentation import whole_sentences
from batos.minds import computed_results, prompt
from batos.minds.context import MindContext, Thinking
from batos.minds.prompt import Message, SharedContext
from batos.minds.results import Task
from batos.objects.method import IntentKind
from batos.objects.prototype import Interpreter, send
from batos.protocol.errors import AnswerCut, AnswerUnreadable, ContextOverflow, DecisionInvalid, Runaway

#: Errors that say only that the words of a model were of no use, when it was asked twice: a rule decides then.
WORDLESS: Final = (AnswerCut, AnswerUnreadable, DecisionInvalid, Runaway)


@dataclass(frozen=True, slots=True)
class Question:
    """The question of one step of a cycle; `then` is appended to the prompt (a revision).

    `on_token` gets the reply as it grows, `on_again` the reason if that text is withdrawn. `shorter` returns the task
    with so many bytes less, and the number of shortened parts; None if nothing may be shortened. A question that
    `is_short` is the task alone: no persona, form of the reply or time. Beside passages the words of one that
    `is_exact` are the likeliest ones, and always those of one that `is_choice`. `fault` returns the reason why a valid
    reply is of no use, "" if it is of use.
    """

    path: str
    task: Task
    then: tuple[Message, ...] = ()
    on_token: Callable[[str], None] | None = None
    on_again: Callable[[str], None] | None = None
    shorter: Callable[[int], tuple[Task, int]] | None = None
    is_short: bool = False
    is_exact: bool = False
    is_choice: bool = False
    fault: Callable[[Any], str] = no_fault


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply's text as the model gave it, and what its prompt had to do without."""

    text: str
    evidence: Evidence
    shortened: int


@dataclass(frozen=True, slots=True)
class _Call:
    """The request, in the parts that can be shortened."""

    shared: SharedContext
    question: Question
    guide: str
    #: The line that was computed for the question, shown before it.
    computed: str = ""
    shortened: int = 0
    #: The most characters of evidence that a lean prompt shows; None: as many as are in focus.
    most: int | None = None

    def messages(self, context: MindContext) -> tuple[Message, ...]:
        if self.question.is_short:
            return prompt.compose_short(self.shared, context.mind.voice, self.question.task)
        task = replace(_with_guide(self.question.task, self.guide), computed=self.computed)
        return prompt.compose(self.shared, context.mind.voice, task, self.question.then, self.most)

    def note_form(self, context: MindContext) -> None:
        """Note the form of the call, and in lean form the part of the evidence that it was shown."""
        context.trace.forms[context.mind.thinking.model] = context.mind.voice.form
        if is_from_text(context, self.shared.evidence, self.question):
            found = self.shared.select(self.question.task.query, self.most)
            context.trace.note_focus(self.question.path, found.passages, found.omitted)

    def _with_less_evidence(self, context: MindContext, excess: int) -> _Call:
        """Leave out evidence; a lean prompt shows few sentences of it, so that its turns go first."""
        evidence = self.shared.evidence
        if context.mind.voice.form == "full":
            return replace(self, shared=self.shared.with_evidence(evidence.lighten(context.mission.brief.text, excess)))
        call = replace(self, shared=self.shared.with_evidence(evidence.without_turns(excess)))
        freed = prompt.size(self.messages(context)) - prompt.size(call.messages(context))
        if freed >= excess or not evidence.passages:
            return call
        shown = sum(len(each.text) for each in self.shared.select(self.question.task.query, self.most).passages)
        return replace(call, most=max(0, shown - (excess - freed)))

    def lighter(self, context: MindContext, most: int) -> _Call:
        """Shorten the call to so many bytes if possible: recalled passages first, then old turns, then parts."""
        call = self
        excess = prompt.size(call.messages(context)) - most
        if excess > 0:
            call = call._with_less_evidence(context, excess)
            excess = prompt.size(call.messages(context)) - most
        if excess > 0 and call.question.shorter is not None:
            task, shortened = call.question.shorter(excess)
            call = replace(call, question=replace(call.question, task=task), shortened=shortened)
        return call


async def infer(
    interpreter: Interpreter, context: MindContext, evidence: Evidence, question: Question, decision: ReplyShape[V]
) -> tuple[V, ModelReply]:
    """Send `infer_` to the persona: what answers is pLLM_obj, or whatever the persona puts in its place."""
    answered: tuple[V, ModelReply] = await send(
        interpreter, context.mind.persona, "infer_", evidence, question, decision
    )
    return answered


async def ask(
    context: MindContext, evidence: Evidence, question: Question, decision: ReplyShape[V]
) -> tuple[V, ModelReply]:
    """Return the model's decision or text: the primitive behind `infer_`.

    A prompt that by estimate leaves no space for the answer is shortened before it is sent, and once more by the
    daemon's counts if the estimate was wrong.

    Raises: ContextOverflow, AnswerCut: even then it does not fit; the error says what was left out.
    """
    deciding = _deciding(context, evidence, question, decision)
    answer = context.mind.thinking.reserved_tokens(decision)
    computed = computed_results.line_of(context, question.task.query)
    call = _Call(context.mission.shared.with_evidence(evidence), question, deciding.decision.guide, computed)
    call = call.lighter(context, prompt.room(context.mind.thinking.window, answer, context.ratio))
    messages = call.messages(context)
    try:
        value, text = await decide(deciding, messages)
    except (ContextOverflow, AnswerCut) as overflow:
        if isinstance(overflow, AnswerCut):
            if question.is_short:
                raise  # a short answer that is cut goes on without end, whatever room it has
            answer = max(answer, min(overflow.wanted, context.mind.thinking.window // 2))
        call = call.lighter(context, _counted_room(context.mind.thinking, answer, overflow, prompt.size(messages)))
        if call.messages(context) == messages:
            value, text = _salvage(deciding, overflow, call)
        else:
            try:
                value, text = await decide(deciding, call.messages(context))
            except (ContextOverflow, AnswerCut) as again:
                value, text = _salvage(deciding, again, call)
    call.note_form(context)
    return value, ModelReply(text, call.shared.evidence, call.shortened)


def is_from_text(context: MindContext, evidence: Evidence, question: Question) -> bool:
    """Test if a small model is shown the sentences in focus, from which its answer is to follow."""
    return context.mind.voice.form == "lean" and bool(question.task.query and evidence.passages)


def _deciding(context: MindContext, evidence: Evidence, question: Question, decision: ReplyShape[V]) -> Deciding[V]:
    thinking = context.mind.thinking
    decision = decision.in_mode(thinking.mode)
    is_limited = isinstance(decision, LimitedText)
    limit = thinking.needed_tokens(decision) if is_limited else thinking.answer_tokens(decision)
    options = {**thinking.options, "num_predict": limit}
    # A small model decides best by its likeliest words, and what documents say is no matter of chance.
    is_decided = decision.format is not None and (context.mind.voice.form == "lean" or question.is_choice)
    if context.mission.brief.temperature is None and (is_decided or (question.is_exact and evidence.passages)):
        options["temperature"] = 0.0
    request = ChatRequest(
        thinking.model,
        (),
        options,
        schema=decision.format,
        think=thinking.thinks,
        keep=whole_sentences,
        from_text=is_from_text(context, evidence, question),
    )
    step = Step(question.path, question.on_token, question.on_again)
    return Deciding(context.io.session, request, decision, thinking.mode, step, prompt.Continuation(), question.fault)


def _counted_room(thinking: Thinking, answer: int, overflow: ContextOverflow | AnswerCut, size: int) -> int:
    """Return the bytes that fit by the daemon's counts, and always less than the refused prompt."""
    window = overflow.window or thinking.window
    tokens = overflow.prompt_tokens or 2 * window
    return min(size - 1, prompt.room(window, answer, tokens / max(1, size)))


def _salvage(deciding: Deciding[V], error: ContextOverflow | AnswerCut, call: _Call) -> tuple[V, str]:
    """Return the value of an answer that was cut, if it has one. Raises the error where it has none."""
    if isinstance(error, AnswerCut):
        kept = deciding.decision.salvage(error.text, last=True)
        if kept is not None:
            return kept, error.text
    raise _too_long(error, call) from error


def _too_long(overflow: ContextOverflow | AnswerCut, call: _Call) -> ContextOverflow | AnswerCut:
    """Return the same error with a message that says what was left out of the prompt."""
    gone = call.shared.evidence
    left_out = f"{gone.omitted_passages} passages, {gone.omitted_turns} turns, {call.shortened} parts shortened"
    told = f"{overflow.message}; left out already: {left_out}; rules, persona and question never are"
    if isinstance(overflow, AnswerCut):
        return AnswerCut(overflow.prompt_tokens, overflow.answer_tokens, overflow.window, overflow.wanted, told)
    return ContextOverflow(overflow.prompt_tokens, overflow.window, told)


def _with_guide(task: Task, guide: str) -> Task:
    """Return a task with the description of its reply; free text has none."""
    return replace(task, text=prompt.with_guide(task.text, guide)) if guide else task


def room_for_evidence(context: MindContext, tasks: Sequence[tuple[Task, ReplyShape[Any]]]) -> int:
    """Return the bytes that evidence may take so that each of these tasks still fits beside it; never negative."""
    return max(0, min(_room_beside(context, task, decision) for task, decision in tasks))


def _room_beside(context: MindContext, task: Task, decision: ReplyShape[Any]) -> int:
    thinking = context.mind.thinking
    task = _with_guide(task, decision.in_mode(thinking.mode).guide)
    bare = prompt.size(prompt.compose(context.mission.shared, context.mind.voice, task)) + prompt.EVIDENCE_SIZE
    return prompt.room(thinking.window, thinking.reserved_tokens(decision), context.ratio) - bare


def facet_path(mind: str, slot: str) -> str:
    """Return the path of a facet's call.

    >>> facet("council/brick", "guide_facet_")
    'council/brick/delegating/guide#0'
    """
    return f"{mind}/delegating/{slot.removesuffix('_facet_')}#0"


def protocol_path(mind: str, slot: str) -> str:
    """Return the path of a key protocol's call.

    >>> protocol("brick", "absurd_synthesis_protocol_")
    'brick/protocol/absurd_synthesis#0'
    """
    return f"{mind}/protocol/{slot.removesuffix('_protocol_')}#0"


def intent_path(kind: IntentKind, mind: str, slot: str) -> str:
    """Return the path of the call that interprets an intent of this kind.

    >>> of_kind("protocol", "brick", "absurd_synthesis_protocol_")
    'brick/protocol/absurd_synthesis#0'
    """
    return protocol_path(mind, slot) if kind == "protocol" else facet_path(mind, slot)


def method_path(kind: IntentKind, mind: str, selector: str) -> str:
    """Return the place of a method that a mind sends a message to; its calls to the model are numbered from 0 after it.

    >>> method("facet", "brick", "guide_facet_"), method("tool", "brick", "gadget_")
    ('brick/delegating/guide', 'brick/gadget')
    """
    if kind in ("facet", "protocol"):
        return intent_path(kind, mind, selector).removesuffix("#0")
    return f"{mind}/{selector.rstrip('_')}"


def path_within(place: str, selector: str, number: int) -> str:
    """Return the place of a message that a method at `place` sends; from the second of a selector on with its number.

    >>> within("brick/delegating/guide", "outline_", 0), within("brick/delegating/guide", "outline_", 1)
    ('brick/delegating/guide/outline', 'brick/delegating/guide/outline~1')
    """
    counted = f"~{number}" if number else ""
    return f"{place}/{selector.rstrip('_')}{counted}"


def call_path(place: str, number: int) -> str:
    """Return the path of a method's call to the model, by its number from 0.

    >>> call("brick/delegating/guide", 1)
    'brick/delegating/guide#1'
    """
    return f"{place}#{number}"
