"""The one repair of an answer with faults: its faulty sentences are left out by rule, or the model writes it again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from batos.gate import checks, occurrence
from batos.gate.answer_reader import AttributedSentence
from batos.gate.checks import GateFault, GateVerdict
from batos.gate.ground import Draft, Ground, tell
from batos.inference.cost import is_spent
from batos.minds import answers_by_rule
from batos.minds.calls import answers
from batos.minds.calls.questions import WORDLESS, Question
from batos.minds.combine.changes import own_words, share
from batos.minds.context import MindContext
from batos.minds.question_kind import kind_of
from batos.minds.results import JudgedAnswer, MindAnswer, Synthesis
from batos.objects.prototype import Interpreter
from batos.protocol.errors import Refused

#: The check that finds words of the prompt, which no answer is better with.
FOREIGN: Final = frozenset({"prompt"})
#: Checks that find a sentence to rest on nothing: without it the answer is right.
UNFOUNDED: Final = frozenset(
    {"carried", "days", "documents", "names", "numbers", "prompt", "quotations", "subjects", "superseded"}
)
#: Findings of a value that no document has or gives to what was asked, and the most sentences of an answer withheld.
_ABSENT: Final = frozenset({"number", "day", "name"})
VALUES: Final = _ABSENT | {"stray", "subject", "unnamed"}
MOST_WITHHELD: Final = 2
#: The share of an answer's words that its faultless sentences have at least where the others are left out, and the
#: share of theirs that an answer which was written again has at least.
LEAST_LEFT, LEAST_KEPT = 0.5, 0.8
#: Reasons for which an answer is withdrawn.
LEFT_OUT, REVISING = "sentences at fault are left out", "the gate found a fault; it is being revised"
CORRECTED: Final = "a sum is worked out again"
#: The reasons for which what is said around code, or around a number, is left out.
ALONE: Final = "only the code was asked for"
NUMBER_ALONE: Final = "only the number was asked for"
#: The reason for which an answer is withheld.
WITHHELD: Final = "no document says it"
#: The fault of a revision that says less than the answer, and its reason.
LOST: Final = GateFault("kept", "it leaves out what had no fault")

#: Words by which a person wants code, or data, and nothing beside it; they end what is asked.
_ONLY_CODE = re.compile(
    r"(?:\b(?:only|just|nothing but) (?:the |a |its |your )?(?:\w+ )?(?:code|json|function|script|command|query)"
    r"|\b(?:code|json) only|\b(?:without|no) (?:any )?(?:explanations?|prose|other text)"
    r"|\b(?:nur|ausschließlich|nichts als) (?:den |das |die |der )?(?:\w+-)?(?:quell)?(?:code|json|funktion|skript)"
    r"|\b(?:nur|ausschließlich) (?:den |der )?befehl|\bohne (?:jede )?(?:erklärung|erläuterung)(?:en)?"
    r"|\b(?:uniquement|seulement|rien que) (?:le |la |du )?(?:code|json|fonction|script|commande)"
    r"|\bsans explications?|\b(?:solo|sólo|solamente|únicamente) (?:el |la )?(?:código|json|función|script|comando)"
    r"|\bsin explicaci(?:ón|ones)|\b(?:solo|soltanto) (?:il |la )?(?:codice|json|funzione)|\bsenza spiegazion[ei]"
    r"|\b(?:só|somente|apenas) (?:o |a )?(?:código|json|função)|\balleen (?:de |het )?(?:code|json|functie)"
    r"|\bтолько (?:код|json|функци[юя])|(?:只|仅)(?:要|给|输出|返回|写)?(?:代码|JSON)|(?:コード|JSON)(?:だけ|のみ))"
    r"(?=\W*(?:please|bitte|aus|zurück|s['’]il (?:te|vous) pla[iî]t|por favor)?\W*(?:$|[.!?;,:。！？、(をで書出示返]))",
    re.IGNORECASE,
)
#: Words by which a person wants a number and nothing beside it; they end what is asked.
_ONLY_NUMBER = re.compile(
    r"(?:\b(?:only|just|nothing but) (?:the |a |one |as a )?(?:bare )?(?:number|figure|digits?)"
    r"|\b(?:number|figure|digits?) only|\b(?:nur|ausschließlich) (?:die |eine |als )?(?:zahl|ziffern?)"
    r"|\b(?:uniquement|seulement|rien que) (?:le |un )?(?:nombre|chiffre)"
    r"|\b(?:solo|sólo|solamente|únicamente) (?:el |un )?número|\b(?:solo|soltanto) (?:il )?numero"
    r"|\b(?:só|somente|apenas) (?:o )?número|\balleen (?:het )?getal|\bтолько (?:число|цифр[ауы])"
    r"|(?:只|仅)(?:要|给|写|输出|返回|回答)?数字|数字(?:だけ|のみ))"
    r"(?=\W*(?:please|bitte|s['’]il (?:te|vous) pla[iî]t|por favor)?\W*(?:$|[.!?;,:。！？、(をで書答]))",
    re.IGNORECASE,
)
#: A number as it is written, with its sign, its thousands and its decimals.
_NUMBER = re.compile(r"(?:(?<!\S)[-−])?\d+(?:[.,'’\u00a0\u202f]\d+)*")
#: Signs that an explanation is wanted as well.
_EXPLAINS = re.compile(
    r"\b(?:explain|describe|understand|why|erklär(?!ung)|erläuter(?!ung)|beschreib|versteh|warum|weshalb|wieso|expliqu|pourquoi"
    r"|explica\b|expliqu|explícame|por qué|spiega\b|perché|почему|объясни)|解释|说明|为什么|説明して|なぜ",
    re.IGNORECASE,
)
#: The beginnings of a sentence that orders something, though it ends with a question mark.
_POLITE = re.compile(
    r"\W*(?:can|could|would|will|kannst|könntest|können|peux|pouvez|pourrais|puedes|podrías)\b", re.IGNORECASE
)
_FENCE = re.compile(r"^[^\S\n]*```", re.MULTILINE)
_BLOCK = re.compile(r"^```[^`\n]*\n.*?^ {0,3}```[^\S\n]*$", re.MULTILINE | re.DOTALL)

#: A name and nothing else: a word with a capital in it, or two to four words that begin with one.
_BARE_NAME = re.compile(r"(?:[A-Z][a-z]+[A-Z]\w*|[A-ZÀ-Þ]\w+(?: [A-ZÀ-Þ]\w+){1,3})[.!]?")
#: The signs of a question about a program, whose values are worked out and stand nowhere.
_PROGRAM = re.compile(r"\w\(|`|\w_\w")
#: A row of a table, and a line of which a removal left nothing but its mark.
_ROW, _BARE = re.compile(r"^\s*\||\s\|\s", re.MULTILINE), re.compile(r"\s*(?:[-*+•]|\(?\d{1,3}[.)])?\s*")


async def mend(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question | None, ground: Ground
) -> None:
    """Put a better answer in the place of one that is not final: its sums are corrected, the other faults repaired.

    Where only code or only a number was asked for, only that is left. The answer of one call has no question that a
    revision could go on from: words of the prompt are left out of it.
    """
    if question is None:
        await leave_out(context, synthesis, ground, FOREIGN)
    await correct_sums(context, synthesis, ground)
    await keep_alone(context, synthesis, ground)
    if question is not None and not synthesis.standing.verdict.ok:
        await repair(interpreter, context, synthesis, question, ground)


async def repair(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, ground: Ground
) -> None:
    """Put a better answer in the place of the standing one, if there is one: the answer is never made worse.

    Where what is at fault are a few sentences that rest on nothing, the answer stands without them, and no call is
    made. Else the model writes it once more, and that stands only if it has fewer faults and still says what had none.
    Where the budget has no call left the model is not asked: the answer is paid for.
    """
    mendable = all(each.check in UNFOUNDED and each.sentence for each in synthesis.standing.verdict.faults)
    is_left = not (mendable and await leave_out(context, synthesis, ground, UNFOUNDED))
    if is_left and context.mission.steps.number("SYNTHESIZING", "repair", "revisions"):
        await _rewrite(interpreter, context, synthesis, question, ground)


async def leave_out(context: MindContext, synthesis: Synthesis, ground: Ground, of: frozenset[str]) -> bool:
    """Let the answer stand without the sentences that some checks find fault with; False where that mends nothing."""
    shorter = without_faulty(synthesis.standing, of)
    return bool(shorter) and await _stand_if_better(context, synthesis, ground, shorter, "revision", LEFT_OUT)


async def correct_sums(context: MindContext, synthesis: Synthesis, ground: Ground) -> None:
    """Let the answer stand with the right results of its sums, where it states wrong ones: computing them is ours."""
    before = synthesis.standing
    if any(each.code == "sum" for each in before.verdict.faults) and (
        right := occurrence.correct_sums(Draft(before.answer.answer, ground))
    ):
        await _stand_if_better(context, synthesis, ground, right, "answer", CORRECTED)


async def keep_alone(context: MindContext, synthesis: Synthesis, ground: Ground) -> None:
    """Let the code or the number of an answer stand without what is said around it, where only that was asked for."""
    before, asked, path = synthesis.standing, context.mind.question, answers.revising_path(context)
    said = before.answer.answer
    code = code_alone(said) if wants_code_alone(asked) else ""
    alone, why = (code, ALONE) if code else (number_alone(said, asked), NUMBER_ALONE)
    if alone and alone != said.strip():
        context.decide_by_rule(path, "answer", why)
        synthesis.revised = before.verdict
        synthesis.drafts.append(await answers.judge(context, synthesis, replace(before.answer, answer=alone), ground))
        answers.tell_again(context, path, alone, why)


def wants_code_alone(question: str) -> bool:
    """Test if somebody orders code and nothing beside it; who asks about code wants to be told something.

    >>> wants_code_alone("Write mean(x). Only the code."), wants_code_alone("Why does it return only the code?")
    (True, False)
    """
    return _is_ordered(_ONLY_CODE, question)


def _is_ordered(alone: re.Pattern[str], question: str) -> bool:
    """Test if a question orders one thing alone: by these words, and not in a question about them."""
    found = alone.search(question)
    if found is None or _EXPLAINS.search(question):
        return False
    end = re.compile(r"[.!?。！？\n]|$").search(question, found.end())
    begin = max(question.rfind(each, 0, found.start()) for each in ".!?。！？\n") + 1
    return end is None or end[0] not in "?？" or not end[0] or _POLITE.match(question, begin) is not None


def number_alone(answer: str, question: str) -> str:
    """Return the one number that an answer says beyond the question, where a number alone was asked for; else "".

    >>> number_alone("The locker number of Viktor is 28.", "What is the locker number of Viktor? Number only.")
    '28'
    """
    if not _is_ordered(_ONLY_NUMBER, question):
        return ""
    asked = set(_NUMBER.findall(question))
    said = {each for each in _NUMBER.findall(answer) if each not in asked}
    return said.pop() if len(said) == 1 else ""


def code_alone(answer: str) -> str:
    """Return the blocks of code of an answer; "" where there are none, or one has no end or is indented.

    >>> code_alone("Here it is:\\n\\n```python\\nx = 1\\n```\\n\\nThis sets x.")
    '```python\\nx = 1\\n```'
    """
    return "" if _FENCE.search(_BLOCK.sub("", answer)) else "\n\n".join(_BLOCK.findall(answer))


async def _stand_if_better(
    context: MindContext, synthesis: Synthesis, ground: Ground, text: str, decision: str, why: str
) -> bool:
    """Let a text that a rule made of the answer stand in its place; False where it has no fewer faults."""
    before = synthesis.standing
    after = await answers.judge(context, synthesis, replace(before.answer, answer=text), ground)
    if len(after.verdict.faults) >= len(before.verdict.faults):
        return False
    path = answers.revising_path(context)
    context.decide_by_rule(path, decision, why)
    synthesis.revised = before.verdict
    synthesis.drafts.append(after)
    answers.tell_again(context, path, text, why)
    answers.tell_citations(context, path, after.answer.citations, ground.evidence)
    return True


async def withhold(context: MindContext, synthesis: Synthesis, ground: Ground) -> None:
    """Let the answer to a question of fact say that the documents do not say it, where all that it says is ungrounded.

    That is so if each of its few sentences has a value that no document gives to what was asked. Only
    questions to files, and to the person's own memory, are treated so: the model may know what no document says.
    """
    before, asked = synthesis.standing, context.mind.question
    to_documents = context.mission.passages or answers_by_rule.is_of_own_world(asked)
    asks_fact = kind_of(asked) == "fact" and not _PROGRAM.search(asked)
    if not (to_documents and asks_fact and is_ungrounded(before)):
        return
    path, text = answers.revising_path(context), tell("withheld", {}, checks.fault_language(asked))
    context.decide_by_rule(path, "answer", WITHHELD)
    synthesis.revised = before.verdict
    synthesis.drafts.append(await answers.judge(context, synthesis, MindAnswer(text, is_ruled=True), ground))
    answers.tell_again(context, path, text, WITHHELD)


def is_ungrounded(judged: JudgedAnswer) -> bool:
    """Test if each of the few sentences of an answer that state something has a value that no document gives.

    A sentence of which documents carry a clause says more than what none has: `It was Kiel, a port of Prussia.`
    """
    sentences = judged.attribution.sentences
    partly = {each.text for each in sentences if each.parts}
    faulty = {
        each.sentence
        for each in judged.verdict.faults
        if (each.code in VALUES and not (each.code in _ABSENT and each.sentence in partly))
        or (each.code == "carried" and _BARE_NAME.fullmatch(each.sentence.strip()))
    } - {""}
    stating = [each for each in sentences if each.state != "not_checkable" or each.text in faulty]
    return 0 < len(stating) <= len(sentences) <= MOST_WITHHELD and all(each.text in faulty for each in stating)


def without_faulty(judged: JudgedAnswer, checks: frozenset[str]) -> str:
    """Return an answer without the sentences that some checks find fault with; "" where leaving them out is no repair.

    That is so if one stands in a table or in code, or if less than half of the answer would be left.
    """
    spans = list(_faulty(judged, checks))
    text = judged.answer.answer
    if any(text[each.start :].startswith("```") or _ROW.search(each.text) for each in spans):
        return ""
    kept = _without(text, spans)
    return kept if spans and len(own_words(kept)) >= LEAST_LEFT * len(own_words(text)) else ""


def is_better(after: JudgedAnswer, before: JudgedAnswer, question: str) -> bool:
    """Test if an answer that was written again has fewer faults, and still says most of what had none."""
    kept, brought = share(_without(before.answer.answer, _faulty(before)), after.answer.answer, question)
    return len(after.verdict.faults) < len(before.verdict.faults) and kept >= LEAST_KEPT * brought


def _faulty(judged: JudgedAnswer, checks: frozenset[str] | None = None) -> Iterator[AttributedSentence]:
    """Yield the sentences that a fault is in, of some checks or of any."""
    faults = judged.verdict.faults
    named = {each.sentence for each in faults if each.sentence and (checks is None or each.check in checks)}
    return (each for each in judged.attribution.sentences if each.text in named)


def _without(text: str, sentences: Iterable[AttributedSentence]) -> str:
    """Return a text without some of its sentences, and without the lines of which this leaves the mark of a list."""
    for each in sorted(sentences, key=lambda each: -each.start):
        begins, tail = text.rfind("\n", 0, each.start) + 1, text[each.end :]
        before, (rest, _, below) = text[begins : each.start], tail.partition("\n")
        text = text[:begins] + (below if _BARE.fullmatch(before + rest) else before + tail.lstrip(" "))
    return text.strip()


async def _rewrite(
    interpreter: Interpreter, context: MindContext, synthesis: Synthesis, question: Question, ground: Ground
) -> None:
    before, path = synthesis.standing, answers.revising_path(context)
    synthesis.revised = before.verdict
    try:
        said = await answers.revise(interpreter, context, synthesis, question, REVISING)
    except WORDLESS as wordless:
        synthesis.discarded = GateVerdict((), (GateFault("schema", wordless.message),))
    except Refused as refused:
        if not is_spent(refused):
            raise
        synthesis.discarded = GateVerdict((), (GateFault("budget", refused.message),))
    else:
        after = await answers.judge(context, synthesis, said, ground)
        if is_better(after, before, context.mind.question):
            synthesis.drafts.append(after)
            return
        fewer = len(after.verdict.faults) < len(before.verdict.faults)
        synthesis.discarded = GateVerdict((), (LOST,)) if fewer else after.verdict
    answers.tell_again(context, path, before.answer.answer, "the revision is no better; the answer before it stands")
    answers.tell_citations(context, path, before.answer.citations, ground.evidence)
