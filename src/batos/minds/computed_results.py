"""Results computed of a mission's evidence: found once for a question, shown to its calls, said by its answer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from functools import partial
from typing import Final

from batos.concurrency.threads import offload
from batos.memory.evidence import Evidence, Passage
from batos.minds.context import MindContext
from batos.protocol.evidence_documents import ComputedDocument, ComputedRow
from batos.reckoning.reckon import may_ask, reckon
from batos.reckoning.reckonings import CitedRow, Reckoning

#: Bytes of a remembered document that is read whole for a computation.
MOST_READ: Final = 2**20
#: Rows of a result that its record names; of more the first ones.
MOST_ROWS: Final = 200


async def compute(context: MindContext, evidence: Evidence, questions: Iterable[str]) -> None:
    """Compute what questions ask of the mission's files, and of the documents that were recalled, each read whole.

    The result follows from these texts and the day of asking alone, so that every attempt has the same prompts.
    """
    known = context.trace.computed
    asked = [each for each in dict.fromkeys(questions) if each not in known]
    known.update(dict.fromkeys(asked))
    asked = [each for each in asked if may_ask(each)]
    if not asked:
        return
    passages = (*context.mission.passages, *_find_documents(context, evidence))
    today = date.fromisoformat(context.mission.shared.asked_at[:10])
    size = sum(len(each.text) for each in passages)
    for question in asked:
        known[question] = await offload(4 * size, partial(reckon, question, passages, today))


def _find_documents(context: MindContext, evidence: Evidence) -> tuple[Passage, ...]:
    recollection = context.io.recollection
    names = dict.fromkeys(each.document for each in evidence.passages if each.document)
    if recollection is None or not names:
        return ()
    return recollection.whole_documents(context.mission.root, names, MOST_READ)


def line_of(context: MindContext, question: str) -> str:
    """Return what was computed for a question as a line of a prompt, "" if nothing was."""
    found = context.trace.computed.get(question)
    return found.line if found else ""


def with_result(context: MindContext, answer: str) -> str:
    """Return an answer to the mind's question that says the result: as it is if it does, else led or replaced by it."""
    found = context.trace.computed.get(context.mind.question)
    return found.lead_answer(context.mind.question, answer) if found else answer


def documents(context: MindContext) -> list[ComputedDocument]:
    """List what was computed, with the rows, for the record of the mission."""
    return [_document(question, each) for question, each in context.trace.computed.items() if each]


def _document(question: str, found: Reckoning) -> ComputedDocument:
    return ComputedDocument(
        question=question,
        result=found.result,
        line=found.line,
        lead=found.lead,
        column=found.column,
        ambiguous=list(found.ambiguous),
        of=len(found.rows),
        rows=[_row(each) for each in found.rows[:MOST_ROWS]],
        left_out=[_row(each) for each in found.left_out[:MOST_ROWS]],
    )


def _row(row: CitedRow) -> ComputedRow:
    return ComputedRow(name=row.name, sha256=row.sha256, span=[row.start, row.end], quote=row.text)
