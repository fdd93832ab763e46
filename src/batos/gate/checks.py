"""The quality gate: named pure checks of an answer, all computed, none a model's opinion."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from batos.gate import languages
from batos.gate.ground import Draft
from batos.gate.occurrence import days, names, numbers
from batos.gate.quotations import check_marked, citation_exists, citation_verbatim, quotations, without_quotations
from batos.mission_documents import FaultDocument, VerdictDocument

#: Shortest and longest answer that can be one, in characters.
SHORTEST, LONGEST = 2, 4_000

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


Check: TypeAlias = Callable[[Draft], Iterator[str]]


def length(draft: Draft) -> Iterator[str]:
    """Check that an answer is not empty and not too long."""
    size = len(draft.answer.strip())
    if size < SHORTEST:
        yield "The answer is empty."
    elif size > LONGEST:
        yield f"The answer has {size} characters; keep it under {LONGEST}."


def check_answered(draft: Draft) -> Iterator[str]:
    """Check that every sub-query is answered or named as unanswered, and that no other is named."""
    for number in sorted(draft.open_queries - draft.unanswered):
        yield f"Sub-question {number} got no answer; name it as unanswered."
    for number in sorted(draft.unanswered):
        if number > draft.queries:
            yield f"There is no sub-question {number} to be unanswered."


def schema(draft: Draft) -> Iterator[str]:
    """Check that the answer is whole text: no JSON, no marks of a prompt, not cut where its schema ends."""
    text = draft.answer.strip()
    if _is_data(text) and not _ASKS_FOR_DATA.search(draft.ground.question):
        yield "The answer is JSON; write it as text."
    found = _MARKUP.search(languages.prose(text))
    if found and found[0] not in draft.ground.text:
        yield f"The answer has the mark {found[0]!r} in it; leave it out."
    if draft.cut and not _ENDED.search(text):
        yield "The answer stops in the middle; say it in fewer words."


def _is_data(text: str) -> bool:
    if not (text[:1] in "{[" and text[-1:] in "}]"):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def check_cited(draft: Draft) -> Iterator[str]:
    """Check that an answer beside documents cites them, unless it names every sub-query as unanswered."""
    if draft.ground.passages and not draft.citations and len(draft.unanswered) < max(1, draft.queries):
        yield "Nothing is cited; quote the documents that the answer rests on, or name what is unanswered."


def language(draft: Draft) -> Iterator[str]:
    """Check that the answer is in the language of the question, as far as scripts and small words tell."""
    question, answer = draft.ground.question, languages.prose(without_quotations(draft.answer))
    if languages.names_language(question):
        return
    asked, said = languages.main_scripts(question), languages.main_scripts(answer)
    strange = said - asked - draft.ground.scripts - {"LATIN"}
    if strange and strange == said:
        yield "The answer is in another script than the question; answer in the question's language."
    elif asked and "LATIN" not in asked and said == {"LATIN"} and languages.scripts(answer).total() >= 20:
        yield "The answer is not in the question's language; answer in the language of the question."
    else:
        asked_in, said_in = languages.guess(question), languages.guess(answer)
        if asked_in and said_in and asked_in != said_in:
            yield f"The answer is in {said_in}; answer in {asked_in}, the language of the question."


#: The checks by the name that provenance stores, in the order in which they are made.
CHECKS: Mapping[str, Check] = {
    "length": length,
    "schema": schema,
    "answered": check_answered,
    "citation_exists": citation_exists,
    "citation_verbatim": citation_verbatim,
    "quotations": quotations,
    "cited": check_cited,
    "marked": check_marked,
    "numbers": numbers,
    "days": days,
    "names": names,
    "language": language,
}


def judge(draft: Draft) -> GateVerdict:
    """Run the checks and return their verdict."""
    faults = tuple(GateFault(name, what) for name, check in CHECKS.items() for what in check(draft))
    return GateVerdict(tuple(CHECKS), faults)
