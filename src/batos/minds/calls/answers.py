"""The mission's answer: a text that is streamed, checked by the gate, and revised once if there is a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from batos.concurrency.threads import offload
from batos.gate import attribution, checks, ground
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution, Attributor, GrowingAttribution, SentenceVectors, attribute
from batos.gate.evidence_index import CONVERSATION, Citation, EvidenceIndex, index_of
from batos.gate.ground import OWN_NAMES, Draft, Ground
from batos.gate.languages import stems
from batos.inference.decide import FreeText, ReplyShape, SpokenText, V
from batos.memory.evidence import Evidence
from batos.minds import answers_by_rule, computed_results, prompt
from batos.minds.calls import decisions
from batos.minds.calls.questions import ModelReply, Question, infer
from batos.minds.context import MindContext
from batos.minds.results import JudgedAnswer, MindAnswer, PartResult, Synthesis
from batos.objects.prototype import Interpreter
from batos.protocol.event_payloads import (
    MISSION_CITATION,
    MISSION_RETRACTED,
    MISSION_TOKEN,
    MissionCitation,
    MissionRetracted,
    MissionToken,
)

#: The most faults that a revision is told.
MOST_TOLD: Final = 5


def ground_of(context: MindContext, synthesis: Synthesis, given: str = "") -> Ground:
    """Gather what the answer may rest on; a mind within another is asked what that one made of the mission's question.

    `given` is what a protocol was told beside the answer.
    """
    asked = "\n".join(filter(None, (context.mission.brief.text if context.mind.inner else "", given)))
    # A note or an offer, which a rule wrote, is no answer from documents.
    recalled = Evidence() if context.trace.told else synthesis.recalled.merge(context.trace.seen)
    today, computed = context.mission.shared.asked_at[:10], computed_results.line_of(context, context.mind.question)
    return Ground(context.mind.question, recalled, OWN_NAMES, asked=asked, today=today, computed=computed)


def attributor_of(synthesis: Synthesis, ground: Ground) -> Attributor:
    """Return the attributor that a synthesis keeps for a ground, or a new one for another question or evidence."""
    kept = synthesis.attributor
    if kept is None or (kept.question, kept.index) != (ground.question, ground.index):
        kept = synthesis.attributor = Attributor(ground.question, ground.index)
    return kept


async def say(interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question) -> MindAnswer:
    """Ask for the mission's answer; its text is told as it grows."""
    inner = context.mind.inner
    question, shape = replace(question, is_exact=not inner), decisions.answer_shape(inner=inner)
    spoken = await infer_streamed(interpreter, context, synthesis, question, shape)
    return MindAnswer(spoken.text, was_cut=spoken.was_cut)


def stand(context: MindContext, synthesis: Synthesis, part: PartResult, path: str) -> MindAnswer:
    """Make a part's answer the mission's, word for word, and send it to the listener at once, with its citations."""
    said = part.answer.strip()
    tell(context, path, said)
    tell_citations(context, path, part.citations, ground_of(context, synthesis).evidence)
    return MindAnswer(said, part.citations, was_cut=part.was_cut)


async def revise(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, why: str
) -> MindAnswer:
    """Ask once more with the faults as the only addition; the answer before is withdrawn for the reason `why`."""
    before = synthesis.standing
    faults = [fault.what for fault in before.verdict.faults[:MOST_TOLD]]
    order = ground.repair("again", {}, checks.fault_language(context.mind.question))
    then = prompt.revision(context.mind.voice, before.answer.answer, faults, order)
    retract(context, question.path, why)
    again = replace(question, path=revising_path(context), then=then)
    return await say(interpreter, context, synthesis, again)


def revising_path(context: MindContext) -> str:
    """Return the path of the call that revises a mind's answer."""
    return f"{context.mind.name}/revising#0"


async def infer_streamed(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, shape: FreeText
) -> SpokenText:
    """Ask for a text and stream it, except for a mind within another; what is streamed in the end is the text.

    The evidence is indexed meanwhile, so that the citations of each sentence are told when it ends.
    """
    if context.mind.inner:
        return (await infer_kept(interpreter, context, synthesis, question, shape))[0]
    if (most := context.mission.brief.max_tokens) is not None:
        shape = shape.at_most(most)
    teller = _Teller(context, question.path, synthesis)
    indexing = asyncio.ensure_future(teller.index())
    heard = replace(question, on_token=teller.on_token, on_again=teller.again)
    try:
        spoken, _ = await infer_kept(interpreter, context, synthesis, heard, shape)
    finally:
        await indexing
    teller.settle(spoken.text)
    return spoken


async def infer_kept(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, decision: ReplyShape[V]
) -> tuple[V, ModelReply]:
    """Ask for a decision or a text. Evidence that did not fit its prompt is left out from now on."""
    value, replied = await infer(interpreter, context, synthesis.evidence, question, decision)
    synthesis.evidence = replied.evidence
    synthesis.shortened = max(synthesis.shortened, replied.shortened)
    return value, replied


class _Teller:
    """Hears a reply and tells it without the blanks around it, and the citations of each sentence as it ends.

    A reply that is asked for again is retracted.
    """

    def __init__(self, context: MindContext, path: str, synthesis: Synthesis) -> None:
        self._context = context
        self._path = path
        self._synthesis = synthesis
        self._ground = ground_of(context, synthesis)
        self._told: list[str] = []
        self._blanks = ""
        self._heard: GrowingAttribution | None = None
        self._indexed = False

    async def index(self) -> None:
        """Index the evidence, in a thread if it is long; without passages there is nothing to be cited."""
        if self._ground.passages:
            await offload(4 * sum(len(passage.text) for passage in self._ground.passages), lambda: self._ground.index)
            self._indexed = True

    def on_token(self, piece: str) -> None:
        text = self._blanks + piece if self._told else piece.lstrip()
        bare = text.rstrip()
        self._blanks = text[len(bare) :] if bare or self._told else ""
        if bare:
            self._cite(bare)
            _tell_lead(self._context, self._path)
            self._context.trace.note_words(self._path, bare)
            self._told.append(bare)
            # A literal, not a call of the type: that takes 100 ns more, for each token.
            told: MissionToken = {"mission": self._context.mission.id, "path": self._path, "text": bare}
            self._context.io.events.emit(MISSION_TOKEN, told)

    def again(self, why: str) -> None:
        self._told, self._blanks, self._heard = [], "", None
        retract(self._context, self._path, why)

    def settle(self, text: str) -> None:
        """Tell the text anew if what was told is more than it, and the citations that were not told yet."""
        if "".join(self._told) != text:
            self._told, self._heard = [text], None
            tell_again(self._context, self._path, text, "the text as it stands is shorter than what was streamed")
        self._cite("")
        if self._heard is not None:
            self._tell(self._heard.finish())

    def _cite(self, piece: str) -> None:
        """Tell the citations of the sentences that end before a piece; they wait until the evidence is indexed."""
        if not self._indexed:
            return
        if self._heard is None:
            self._heard = GrowingAttribution(attributor_of(self._synthesis, self._ground))
            piece = "".join((*self._told, piece))
        self._tell(self._heard.add(piece))

    def _tell(self, sentences: tuple[AttributedSentence, ...]) -> None:
        found = attribution.citations_of(Attribution(sentences)) if sentences else ()
        tell_citations(self._context, self._path, found, self._ground.evidence)


def tell(context: MindContext, path: str, text: str) -> None:
    """Send a whole text to the listener, except that of a mind within another."""
    if not context.mind.inner:
        _tell_lead(context, path)
        context.trace.note_words(path, text)
        context.io.events.emit(MISSION_TOKEN, MissionToken(mission=context.mission.id, path=path, text=text))


def _tell_lead(context: MindContext, path: str) -> None:
    """Send the line that stands before the answer, if there is one, before its first words."""
    if not context.trace.streamed and (lead := answers_by_rule.lead_of(context)):
        context.trace.note_words(path, lead)
        context.io.events.emit(MISSION_TOKEN, MissionToken(mission=context.mission.id, path=path, text=lead))


def tell_citations(context: MindContext, path: str, found: Iterable[Citation], evidence: Evidence) -> None:
    """Send citations to the listener, each with its file, except those of a mind within another."""
    if not context.mind.inner:
        for each in attribution.in_files(found, evidence):
            context.trace.stream_cited.add((each["document"], each["span"][0]))
            told = MissionCitation(mission=context.mission.id, path=path, **each)
            context.io.events.emit(MISSION_CITATION, told)


def settle_stream(context: MindContext, synthesis: Synthesis) -> None:
    """Tell what a stream has not told of the answer that stands: the text of a method, the citations of a rule's text.

    An answer of which nothing was streamed is told with the mission's end.
    """
    trace, said = context.trace, synthesis.standing.answer
    if not trace.stream_path:
        return
    if not trace.streamed:
        tell(context, trace.stream_path, said.answer)
    left = [each for each in said.citations if (each.document, each.start) not in trace.stream_cited]
    if left:
        tell_citations(context, trace.stream_path, left, ground_of(context, synthesis).evidence)


def tell_again(context: MindContext, path: str, text: str, why: str) -> None:
    """Withdraw what was streamed, and send the answer that stands to the listener again."""
    retract(context, path, why)
    tell(context, path, text)


def retract(context: MindContext, path: str, why: str) -> None:
    """Withdraw the text that was streamed, for a reason; what follows is streamed under this path.

    Nothing is streamed of a mind within another.
    """
    if not context.mind.inner:
        context.trace.note_withdrawal(path, why)
        told = MissionRetracted(mission=context.mission.id, path=path, reason=why)
        context.io.events.emit(MISSION_RETRACTED, told)


def shown_answer(part: PartResult) -> str:
    """Return a part's answer as another prompt shows it."""
    return "(no answer)" if part.open else part.answer


async def judge(context: MindContext, synthesis: Synthesis, said: MindAnswer, ground: Ground) -> JudgedAnswer:
    """Return an answer with its citations, the sub-queries that it leaves open, and the gate's verdict on it.

    An answer that does not say what was computed for its question is made to say it first.
    Where words leave a sentence alone and there is an embedder, the sentence is also compared by its meaning.
    """
    said = said if said.is_structured else _with_result(context, said)
    attributor = attributor_of(synthesis, ground)
    said_beside = prompt.instructions(context.mission.shared, context.mind.voice)
    judged = await judge_alone(said, ground, attributor=attributor, instructions=said_beside)
    vectors = await find_meanings(context, judged.attribution, ground)
    if vectors is not None:
        judged = await judge_alone(said, ground, vectors, attributor=attributor, instructions=said_beside)
    # The answer of one part alone answers the one question that all parts were given.
    if synthesis.combined.get("winner") is not None or not synthesis.parts:
        return judged
    numbers = frozenset(part.number for part in synthesis.parts)
    unanswered = (
        numbers if judged.answer.unanswered else frozenset(each.number for each in synthesis.parts if each.open)
    )
    return replace(judged, answer=replace(judged.answer, unanswered=unanswered))


def _with_result(context: MindContext, said: MindAnswer) -> MindAnswer:
    """Return an answer that says what was computed for its question; one that did not is told again."""
    text = computed_results.with_result(context, said.answer)
    if text == said.answer:
        return said
    path, why = context.trace.stream_path, "the answer did not say what was computed"
    context.decide_by_rule(path or context.mind.name, "result", why)
    if path:
        tell_again(context, path, text, why)
    return replace(said, answer=text)


async def judge_alone(
    said: MindAnswer,
    ground: Ground,
    vectors: SentenceVectors | None = None,
    *,
    attributor: Attributor | None = None,
    instructions: str = "",
) -> JudgedAnswer:
    """Return an answer to the question itself with its citations and the gate's verdict on it.

    `instructions` is what the prompt said beside the ground.

    The gate runs in a thread for a long answer or long evidence: the checks cost more than reading.
    """
    size = 24 * len(said.answer) + 4 * sum(len(passage.text) for passage in ground.passages)
    draft = Draft(said.answer, ground, said.was_cut, instructions, said.is_structured)
    judged = await offload(size, lambda: checks.judge(draft, vectors, attributor=attributor))
    found = judged.attribution
    silent = not said.answer.strip() or attribution.finds_nothing(found)
    answer = replace(
        said,
        citations=attribution.citations_of(found),
        unanswered=frozenset({1} if silent else ()),
        is_known=not silent and attribution.is_known(found, ground.evidence),
        gist=attribution.gist_of(said.answer, found),
    )
    return JudgedAnswer(answer, judged.verdict, found)


async def attribute_aside(answer: str, question: str, evidence: Evidence) -> Attribution:
    """Find what carries an answer, in a thread for long evidence."""
    size = 24 * len(answer) + 4 * sum(len(passage.text) for passage in evidence.passages)
    return await offload(size, lambda: attribute(answer, question, index_of(evidence)))


# -- the vectors of an answer's sentences that words leave alone, and of the evidence nearest to them


#: Sentences of the answer and of the evidence that are embedded.
MOST_SAID, MOST_EVIDENCE = 8, 24
#: The end of the path of the vectors.
PATH: Final = "judging#0"


async def find_meanings(context: MindContext, found: Attribution, ground: Ground) -> SentenceVectors | None:
    """Return vectors for the sentences whose words are in no document; None where there is nothing to compare.

    A mind within another has none: its answer is judged again in what it is joined to.
    """
    said = [number for number, each in enumerate(found.sentences) if each.reason == "words"][:MOST_SAID]
    if not said or context.mind.inner or context.io.meanings is None:
        return None
    index = ground.index
    places = _nearest(index, " ".join(found.sentences[number].text for number in said))
    texts = [found.sentences[number].text for number in said] + [index.sentences[at].quote for at in places]
    vectors = await context.io.meanings.vectors(texts, f"{context.mind.name}/{PATH}")
    if vectors is None:
        return None
    of_said = dict(zip(said, vectors, strict=False))
    of_evidence = dict(zip(places, vectors[len(said) :], strict=True))
    nothing: Sequence[float] = ()
    return SentenceVectors(
        [of_said.get(number, nothing) for number in range(len(found.sentences))],
        [of_evidence.get(at, nothing) for at in range(len(index.sentences))],
    )


def _nearest(index: EvidenceIndex, text: str) -> list[int]:
    """Return the places of the documents' sentences that share most with a text, at most MOST_EVIDENCE of them."""
    shared = index.hits(stems(text, index.language))
    places = [at for at, each in enumerate(index.sentences) if each.document != CONVERSATION]
    return sorted(sorted(places, key=lambda at: (-shared.get(at, 0.0), at))[:MOST_EVIDENCE])
