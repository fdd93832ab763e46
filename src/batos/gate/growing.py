"""Attribute an answer as it grows: each sentence once, as soon as the next one begins."""

from __future__ import annotations

import re

from batos.gate.attribution import AttributedSentence, answer_sentences, attribute
from batos.gate.evidence_index import EvidenceIndex

#: Marks that may end a sentence, or a code block.
_END = re.compile(r"[.!?…。！？؟۔।॥\n`]")


class GrowingAttribution:
    """An answer to a question that is heard piece by piece, beside evidence. Words alone decide."""

    def __init__(self, question: str, index: EvidenceIndex) -> None:
        self._question, self._index = question, index
        self._text = ""
        #: The place up to which sentences were read, and if none of them could be checked.
        self._read_to, self._first = 0, True

    def add(self, piece: str) -> tuple[AttributedSentence, ...]:
        """Return the sentences that have ended when a piece is added, and that were not returned before."""
        ended = _END.search(self._text, self._read_to) is not None
        self._text += piece
        if not (ended or _END.search(piece)) or not piece.strip():
            return ()
        spans = answer_sentences(self._text[self._read_to :])
        return self._read(self._read_to + spans[-2][1]) if len(spans) > 1 else ()

    def finish(self) -> tuple[AttributedSentence, ...]:
        """Return the sentences that were not returned yet: the answer is whole."""
        return self._read(len(self._text))

    def _read(self, end: int) -> tuple[AttributedSentence, ...]:
        found = attribute(
            self._text[:end], self._question, self._index, since=self._read_to, first=self._first
        ).sentences
        self._read_to = end
        self._first = self._first and all(each.state == "not_checkable" for each in found)
        return found
