"""The quality gate: named pure checks of an answer, all computed, none a model's opinion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from batos.gate import figures, ground, languages
from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution, Attributor, SentenceVectors, answer_sentences
from batos.gate.contrast import given_to_another
from batos.gate.counts import other_counts, single_entries
from batos.gate.ground import Draft, Spot
from batos.gate.occurrence import days, documents, names, numbers, written_sums
from batos.gate.quotations import quotations, without_quotations
from batos.gate.unfounded import absent_subjects, find_inventions, find_repeated, stray
from batos.memory.claims import cues
from batos.memory.segmentation import clip_line, words
from batos.protocol.mission_documents import FaultDocument, VerdictDocument

#: Shortest and longest answer that can be one, in characters.
SHORTEST, LONGEST = 2, 4_000
#: So many words in a row that the instructions have too are copied from them.
COPIED = 7
#: Characters of a sentence that a fault shows.
_SHOWN = 240
#: The language that faults are told in by the script of a question whose words do not tell it.
_LANGUAGE_OF = {"CJK": "Chinese", "CYRILLIC": "Russian"}

#: Marks of a prompt or of the grammar around an answer, which never belong to an answer.
_MARKUP = re.compile(
    r"<\|[a-z_]{2,24}\|>|</?think>|\[/?INST\]|</?s>|<(?:start|end)_of_turn>|</?document\b[^>\n]{0,80}>", re.IGNORECASE
)
_ENDED = re.compile(r"[.!?…:;。！？\"”»›」』)\]}`*_|~’']\s*\Z")
_ASKS_FOR_DATA = re.compile(r"json|yaml|\bcode\b|\bapi\b|script|schema|dict|program", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GateFault:
    """A concrete fault: which check, and what to mend, as the model is told it in the question's language.

    `code` and `values` are what ground.toml words it by, `told` what a person reads, and `sentence` the sentence of
    the answer that the fault is in, if it is in one.
    """

    check: str
    what: str
    code: str = ""
    values: tuple[tuple[str, str], ...] = ()
    told: str = ""
    sentence: str = ""

    @classmethod
    def make(cls, check: str, spot: Spot, language: str, sentence: str = "") -> GateFault:
        """Return a finding of a check as a fault, worded in a language by its English name."""
        values = (("said", spot.said), *spot.values) if spot.said else spot.values
        shown = {name: clip_line(value, _SHOWN) for name, value in values}
        what, told = (word(spot.code, shown, language) for word in (ground.repair, ground.tell))
        return cls(check, what, spot.code, values, told, sentence)

    def as_dict(self) -> FaultDocument:
        """Return the fault as provenance stores it."""
        told = FaultDocument(check=self.check, what=self.what)
        if self.code:
            told |= {"told": self.told, "values": {"code": self.code, **dict(self.values)}}
        return told


#: A verdict in a word: nothing is said to have passed where nothing of what the answer states could be checked.
State: TypeAlias = Literal["passed", "faulty", "unchecked"]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The names of the checks that were really made, and every fault that they found."""

    checked: tuple[str, ...]
    faults: tuple[GateFault, ...]

    @property
    def ok(self) -> bool:
        """Test if no fault was found."""
        return not self.faults

    @property
    def state(self) -> State:
        """Return the verdict in a word; an answer of which only the form could be checked is `unchecked`."""
        if self.faults:
            return "faulty"
        return "unchecked" if FORM.issuperset(self.checked) else "passed"

    def as_dict(self) -> VerdictDocument:
        """Return the verdict as provenance stores it."""
        faults = [fault.as_dict() for fault in self.faults]
        return VerdictDocument(ok=self.ok, state=self.state, checked=list(self.checked), faults=faults)


#: Returns what is wrong, or None where there was nothing to check.
Check: TypeAlias = Callable[[Draft], Sequence[Spot] | None]


def length(draft: Draft) -> list[Spot]:
    """Check that an answer is not empty and not too long; JSON by a schema is as long as that lets it be."""
    if draft.is_structured:
        return []
    size = len(draft.answer.strip())
    if size < SHORTEST:
        return [Spot("empty")]
    return [Spot("long", "", (("size", str(size)), ("most", str(LONGEST))))] if size > LONGEST else []


def schema(draft: Draft) -> list[Spot]:
    """Check that the answer is whole text: no JSON, no marks of a prompt, and not cut within a sentence.

    An answer by a schema has it already.
    """
    if draft.is_structured:
        return []
    text = draft.answer.strip()
    spots = []
    if _is_data(text) and not _ASKS_FOR_DATA.search(draft.ground.question):
        spots.append(Spot("json"))
    found = _MARKUP.search(languages.prose(text))
    if found and found[0] not in draft.ground.text:
        spots.append(Spot("mark", found[0]))
    if draft.was_cut and not _ENDED.search(text):
        spots.append(Spot("cut"))
    return spots


def _is_data(text: str) -> bool:
    if not (text[:1] in "{[" and text[-1:] in "}]"):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def language(draft: Draft) -> list[Spot] | None:
    """Check that the answer is in the language of the question, as far as scripts and small words tell.

    Words that stand so in a document are no answer in its language: a title, a name.
    """
    question, answer = draft.ground.question, languages.prose(without_quotations(draft.answer))
    if languages.names_language(question) or not answer.strip():
        return None
    asked, said = languages.main_scripts(question), languages.main_scripts(answer)
    strange = said - asked - draft.ground.scripts - {"LATIN"}
    if strange and strange == said:
        return [Spot("script")]
    if asked and "LATIN" not in asked and said == {"LATIN"} and languages.scripts(answer).total() >= 20:
        return [Spot("script")]
    asked_in = languages.guess(question)
    said_in = languages.guess(answer) or (languages.other_than(answer, asked_in) if asked_in else None)
    if not asked_in or not said_in:
        return None
    if asked_in == said_in or answer.strip() in draft.ground.text:
        return []
    return [Spot("language" if asked_in in ground.table() else "script")]


def prompt(draft: Draft) -> list[Spot] | None:
    """Check that the answer says no run of words of the instructions as if documents said it.

    Without documents the words may be the answer: who asks who speaks is told so.
    """
    ours = draft.instructions
    if not ours or not draft.ground.passages:
        return None
    texts = [draft.answer[start:end] for start, end in answer_sentences(draft.answer)]
    copied = {each: found for each in texts if (found := _runs(each) & _runs_of_orders(ours))}
    # All evidence is read only where a run has to be looked up there.
    known = _runs(draft.ground.text) if copied else frozenset()
    return [Spot("leak", each) for each in texts if each in copied and copied[each] - known]


@lru_cache(maxsize=8)
def _runs_of_orders(instructions: str) -> frozenset[tuple[str, ...]]:
    return _runs(instructions)


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    found = words(text)
    return frozenset(tuple(found[at : at + COPIED]) for at in range(len(found) - COPIED + 1))


#: The checks by the name that provenance stores, in the order in which they are made.
CHECKS: Mapping[str, Check] = {
    "length": length,
    "schema": schema,
    "prompt": prompt,
    "documents": documents,
    "quotations": quotations,
    "sums": written_sums,
    "numbers": numbers,
    "days": days,
    "names": names,
    "subjects": given_to_another,
    "totals": single_entries,
    "relative_days": find_repeated,
    "language": language,
    "counts": other_counts,
}
#: The checks of an answer's form alone, which say nothing of what it states.
FORM = frozenset({"length", "schema", "prompt", "language", "counts"})

#: The check that reads the attribution: a sentence was found in documents, or nothing there speaks of it.
CARRIED = "carried"
#: The check of sentences that rest on nothing but statements that do not simply hold; made where some were shown.
SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an answer, and the sentences that it rests on."""

    verdict: GateVerdict
    attribution: Attribution


def fault_language(question: str) -> str:
    """Return the language that faults are told in, by its English name: the question's; "" if that is unknown."""
    return languages.guess(question) or _LANGUAGE_OF.get(_script(question), "")


def judge(draft: Draft, vectors: SentenceVectors | None = None, *, attributor: Attributor | None = None) -> Judgement:
    """Run the checks, find what carries the answer, and return both.

    An `attributor` of the same ground that has read sentences of the answer before spares reading them again.
    """
    attributor = attributor or Attributor(draft.ground.question, draft.ground.index)
    attribution = attributor.attribute(draft.answer, vectors)
    language_told = fault_language(draft.ground.question)
    checked: list[str] = []
    faults: list[GateFault] = []
    for name, found in _findings(draft, attribution):
        if found is not None:
            checked.append(name)
            faults += [GateFault.make(name, spot, language_told, _sentence_of(spot, attribution)) for spot in found]
    return Judgement(GateVerdict(tuple(checked), _each_once(faults)), attribution)


def _findings(draft: Draft, attribution: Attribution) -> Iterator[tuple[str, Sequence[Spot] | None]]:
    """Yield the findings of each check by its name, None of one that was not made."""
    values: list[Spot] = []
    for name, check in CHECKS.items():
        found = check(draft)
        values += found or ()
        yield name, found
    if draft.ground.passages:
        bare = (
            each for each in find_inventions(draft, attribution) if not any(_speaks_of(spot, each) for spot in values)
        )
        spots = [Spot("carried", each.text, _near(each)) for each in bare]
        spots += [each for each in stray(draft, attribution) if each.said not in {spot.said for spot in values}]
        spots += absent_subjects(draft, attribution)
        held = any(each.carriers or each.parts for each in attribution.sentences)
        yield CARRIED, spots if spots or held else None
    if any(each.standing for each in draft.ground.passages):
        past = told_as_current(attribution, draft)
        yield SUPERSEDED, [Spot("superseded", each.text, (("near", each.carriers[0].quote),)) for each in past]


def _script(text: str) -> str:
    return max(sorted(languages.main_scripts(text)), key=languages.scripts(text).__getitem__, default="")


def _near(sentence: AttributedSentence) -> tuple[tuple[str, str], ...]:
    return (("near", sentence.nearest.quote),) if sentence.nearest is not None else ()


def _each_once(faults: Sequence[GateFault]) -> tuple[GateFault, ...]:
    """Return faults without their repetitions: a model that repeats itself is told once, and so is a reader."""
    first: dict[tuple[str, str], GateFault] = {}
    for each in faults:
        first.setdefault((each.check, each.what), each)
    return tuple(first.values())


def _sentence_of(spot: Spot, attribution: Attribution) -> str:
    return next((each.text for each in attribution.sentences if _speaks_of(spot, each)), "")


def _speaks_of(spot: Spot, sentence: AttributedSentence) -> bool:
    """Test if a finding is about words of a sentence, or about a quotation that goes on beyond it."""
    said, line = (" ".join(text.split()) for text in (spot.said, figures.plain(sentence.text)))
    return bool(said) and (said in line or said in " ".join(sentence.text.split()) or said.startswith(line))


# -- finds the sentences of an answer that tell as current what the documents mark as history, or as never meant


def told_as_current(attribution: Attribution, draft: Draft) -> Iterator[AttributedSentence]:
    """Yield the sentences that nothing but marked passages carries, and that do not tell it as past or supposed."""
    standings = {each.number: each.standing for each in draft.ground.passages}
    for sentence in attribution.select("carried"):
        marked = [bool(standings.get(each.document)) for each in sentence.carriers]
        if marked and all(marked) and not _is_told_apart(sentence.text):
            yield sentence


def _is_told_apart(text: str) -> bool:
    return any(cues.has(cue, text) for cue in ("past", "refers", "updates", "supposes"))
