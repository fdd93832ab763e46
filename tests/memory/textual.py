"""Texts for tests of memory: blanks, words of several scripts, passages, and how much evidence shows."""

from __future__ import annotations

from hypothesis import strategies as st

from batos.memory.evidence import Evidence, Passage
from batos.memory.search import recall

SHA = "0" * 64

blanks = st.sampled_from([" ", "\n", "\n\n", "\r\n\r\n", "\t", "\u3000", "\n \n"])

pieces = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=80),
    st.sampled_from(["Die Straße ist naß.", "灯塔守护人。", "Он спит!", "दीपक जलता है।", "x" * 2_000, "e\u0301", "🗼"]),
    blanks,
)

texts = st.lists(pieces, max_size=40).map("".join)


def passage(text: str, number: int = 1) -> Passage:
    """A passage of a file."""
    return Passage(number, "a.txt", SHA, 0, text)


def size_of(evidence: Evidence) -> int:
    """Count the bytes of all that is shown."""
    said = sum(each.size for each in evidence.turns) + sum(each.size for each in evidence.view)
    return said + recall.shown_size(evidence.passages)
