"""Attribute an answer as it grows: each sentence once, as soon as the next one begins."""

from __future__ import annotations

import re

from batos.gate.answer_reader import AttributedSentence
from batos.gate.attribution import Attributor, answer_sentences

#: Marks that may end a sentence, or a code block.
_END = re.compile(r"[.!?…。！？؟۔।॥\n`]")


#: Characters of a sentence from which on its end is looked for only when it has grown by a tenth: a block of code ends
#: late, and each of its lines may be the end.
_LONG, _GROWN = 400, 1.1


class GrowingAttribution:
    """An answer that is heard piece by piece. Words alone decide, and each sentence is read once."""

    def __init__(self, attributor: Attributor) -> None:
        self._attributor = attributor
        self._text = ""
        #: The place up to which sentences were read, and if none of them could be checked.
        self._read_to, self._first = 0, True
        #: A mark that may end a sentence was heard behind that place, and the length at which to look for one.
        self._may_end, self._look_at = False, 0

    def add(self, piece: str) -> tuple[AttributedSentence, ...]:
        """Return the sentences that have ended when a piece is added, and that were not returned before."""
        self._may_end = self._may_end or _END.search(piece) is not None
        self._text += piece
        unread = len(self._text) - self._read_to
        if not self._may_end or not piece.strip() or unread < self._look_at:
            return ()
        spans = answer_sentences(self._text[self._read_to :])
        if len(spans) > 1:
            return self._read(self._read_to + spans[-2][1])
        self._look_at = int(unread * _GROWN) if unread > _LONG else 0
        return ()

    def finish(self) -> tuple[AttributedSentence, ...]:
        """Return the sentences that were not returned yet: the answer is whole."""
        return self._read(len(self._text))

    def _read(self, end: int) -> tuple[AttributedSentence, ...]:
        found = self._attributor.attribute_part(self._text[:end], self._read_to, first=self._first).sentences
        self._read_to, self._look_at = end, 0
        self._may_end = _END.search(self._text, end) is not None
        self._first = self._first and all(each.state == "not_checkable" for each in found)
        return found
