"""The quality gate: named pure checks of an answer, all computed, none a model's opinion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from batos.gate import figures, history, languages
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution, Attributor, SentenceVectors
from batos.gate.ground import Draft, Spot
from batos.gate.occurrence import days, documents, names, numbers
from batos.gate.quotations import quotations, without_quotations
from batos.mission_documents import FaultDocument, VerdictDocument

#: Shortest and longest answer that can be one, in characters.
SHORTEST, LONGEST = 2, 4_000
#: Characters of a sentence that a fault shows.
_SHOWN = 240

#: Marks of a prompt or of the grammar around an answer, which never belong to an answer.
_MARKUP = re.compile(
    r"<\|[a-z_]{2,24}\|>|</?think>|\[/?INST\]|</?s>|<(?:start|end)_of_turn>|</?document\b[^>\n]{0,80}>", re.IGNORECASE
)
_ENDED = re.compile(r"[.!?…:;。！？\"”»›」』)\]}`*_|~’']\s*\Z")
_ASKS_FOR_DATA = re.compile(r"json|yaml|\bcode\b|\bapi\b|script|schema|dict|program", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GateFault:
    """A concrete fault: which check, and what to mend, as the model is told it."""

    check: str
    what: str

    def as_dict(self) -> FaultDocument:
        """Return the fault as provenance stores it."""
        return FaultDocument(check=self.check, what=self.what)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The names of the checks that were made, and every fault that they found."""

    checked: tuple[str, ...]
    faults: tuple[GateFault, ...]

    @property
    def ok(self) -> bool:
        """Test if no fault was found."""
        return not self.faults

    def as_dict(self) -> VerdictDocument:
        """Return the verdict as provenance stores it."""
        faults = [fault.as_dict() for fault in self.faults]
        return VerdictDocument(ok=self.ok, checked=list(self.checked), faults=faults)


Check: TypeAlias = Callable[[Draft], Iterator[Spot]]


def length(draft: Draft) -> Iterator[Spot]:
    """Check that an answer is not empty and not too long."""
    size = len(draft.answer.strip())
    if size < SHORTEST:
        yield Spot("The answer is empty.")
    elif size > LONGEST:
        yield Spot(f"The answer has {size} characters; keep it under {LONGEST}.")


def schema(draft: Draft) -> Iterator[Spot]:
    """Check that the answer is whole text: no JSON, no marks of a prompt, and not cut within a sentence."""
    text = draft.answer.strip()
    if _is_data(text) and not _ASKS_FOR_DATA.search(draft.ground.question):
        yield Spot("The answer is JSON; write it as text.")
    found = _MARKUP.search(languages.prose(text))
    if found and found[0] not in draft.ground.text:
        yield Spot(f"The answer has the mark {found[0]!r} in it; leave it out.")
    if draft.was_cut and not _ENDED.search(text):
        yield Spot("The answer stops in the middle; say it in fewer words.")


def _is_data(text: str) -> bool:
    if not (text[:1] in "{[" and text[-1:] in "}]"):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def language(draft: Draft) -> Iterator[Spot]:
    """Check that the answer is in the language of the question, as far as scripts and small words tell."""
    question, answer = draft.ground.question, languages.prose(without_quotations(draft.answer))
    if languages.names_language(question):
        return
    asked, said = languages.main_scripts(question), languages.main_scripts(answer)
    strange = said - asked - draft.ground.scripts - {"LATIN"}
    if strange and strange == said:
        yield Spot("The answer is in another script than the question; answer in the question's language.")
    elif asked and "LATIN" not in asked and said == {"LATIN"} and languages.scripts(answer).total() >= 20:
        yield Spot("The answer is not in the question's language; answer in the language of the question.")
    else:
        asked_in, said_in = languages.guess(question), languages.guess(answer)
        if asked_in and said_in and asked_in != said_in:
            yield Spot(f"The answer is in {said_in}; answer in {asked_in}, the language of the question.")


#: The checks by the name that provenance stores, in the order in which they are made.
CHECKS: Mapping[str, Check] = {
    "length": length,
    "schema": schema,
    "documents": documents,
    "quotations": quotations,
    "numbers": numbers,
    "days": days,
    "names": names,
    "language": language,
}


#: The check that reads the attribution; its faults take in those of other checks that speak of the same sentence.
CARRIED = "carried"
#: The check of sentences that rest on nothing but statements that do not simply hold; made where some were shown.
SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an answer, and the sentences that it rests on."""

    verdict: GateVerdict
    attribution: Attribution


def judge(draft: Draft, vectors: SentenceVectors | None = None, *, attributor: Attributor | None = None) -> Judgement:
    """Run the checks, find what carries the answer, and return both; a sentence that nothing carries has one fault.

    An `attributor` of the same ground that has read sentences of the answer before spares reading them again.
    """
    attributor = attributor or Attributor(draft.ground.question, draft.ground.index)
    attribution = attributor.attribute(draft.answer, vectors)
    bare = _each_once(attribution.select("not_carried")) if draft.ground.passages else ()
    also: dict[AttributedSentence, list[str]] = {each: [] for each in bare}
    faults: list[GateFault] = []
    for name, check in CHECKS.items():
        for spot in check(draft):
            sentence = next((each for each in bare if _speaks_of(spot, each)), None)
            if sentence is None:
                faults.append(GateFault(name, spot.what))
            else:
                also[sentence].append(spot.what)
    faults += [GateFault(CARRIED, _carried_fault(each, tuple(dict.fromkeys(also[each])))) for each in bare]
    checked = (*CHECKS, CARRIED)
    if any(each.standing for each in draft.ground.passages):
        checked = (*checked, SUPERSEDED)
        faults += [GateFault(SUPERSEDED, _history_fault(each)) for each in history.told_as_current(attribution, draft)]
    return Judgement(GateVerdict(checked, tuple(dict.fromkeys(faults))), attribution)


def _each_once(sentences: Sequence[AttributedSentence]) -> tuple[AttributedSentence, ...]:
    """Return sentences without their repetitions: a model that repeats itself is told once, and so is a reader."""
    first: dict[str, AttributedSentence] = {}
    for each in sentences:
        first.setdefault(each.text, each)
    return tuple(first.values())


def _speaks_of(spot: Spot, sentence: AttributedSentence) -> bool:
    """Test if a finding is about words of a sentence, or about a quotation that goes on beyond it."""
    said, line = (" ".join(text.split()) for text in (spot.said, figures.plain(sentence.text)))
    return bool(said) and (said in line or said in " ".join(sentence.text.split()) or said.startswith(line))


def _carried_fault(sentence: AttributedSentence, also: Sequence[str]) -> str:
    told = [f'No document carries this sentence: "{_clip(sentence.text)}"', *also]
    if sentence.nearest is not None:
        told.append(f'The nearest that is said: "{_clip(sentence.nearest.quote)}"')
    return " ".join((*told, "Say what is said there, or leave the sentence out."))


def _history_fault(sentence: AttributedSentence) -> str:
    quote = _clip(sentence.carriers[0].quote)
    return (
        f'This sentence rests on what no longer holds, or never did: "{_clip(sentence.text)}" The documents mark it:'
        f' "{quote}" Say what holds now, or that it is of the past.'
    )


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
