"""Attribute an answer as it grows: each sentence once, as soon as the next one begins."""

from __future__ import annotations

import re

from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attributor, answer_sentences

#: Marks that may end a sentence, or a code block.
_END = re.compile(r"[.!?…。！？؟۔।॥\n`]")


class GrowingAttribution:
    """An answer that is heard piece by piece. Words alone decide."""

    def __init__(self, attributor: Attributor) -> None:
        self._attributor = attributor
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
        heard = self._text[:end]
        found = self._attributor.attribute(heard, since=self._read_to, first=self._first).sentences
        self._read_to = end
        self._first = self._first and all(each.state == "not_checkable" for each in found)
        return found
