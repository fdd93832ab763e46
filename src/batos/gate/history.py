"""Finds the sentences of an answer that tell as current what the documents mark as history, or as never meant."""

from __future__ import annotations

from collections.abc import Iterator

from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attribution
from batos.gate.ground import Draft
from batos.memory.claims import cues


def told_as_current(attribution: Attribution, draft: Draft) -> Iterator[AttributedSentence]:
    """Yield the sentences that nothing but marked passages carries, and that do not tell it as past or supposed."""
    standings = {each.number: each.standing for each in draft.ground.passages}
    for sentence in attribution.select("carried"):
        marked = [bool(standings.get(each.document)) for each in sentence.carriers]
        if marked and all(marked) and not _is_told_apart(sentence.text):
            yield sentence


def _is_told_apart(text: str) -> bool:
    return any(cues.has(cue, text) for cue in ("past", "refers", "updates", "supposes"))
