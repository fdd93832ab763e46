"""Holds the facets that `bench/coder.py` asks for: twelve that the request was chosen by, and twelve more.

`marker` is a word by which a prompt tells a facet from others, and `form` a word of the form in which it is to answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from batos.memory.segmentation import stems


@dataclass(frozen=True, slots=True)
class WantedFacet:
    """A facet as it is declared: its title, its intent, and a word of each that its prompts are to hold."""

    title: str
    intent: str
    marker: str
    form: str

    @property
    def selector(self) -> str:
        """Return the name of its slot."""
        return f"{'_'.join(re.findall('[a-z]+', self.title.lower()))}_facet_"

    @property
    def signature(self) -> str:
        """Return its first line."""
        return f"{self.selector}(self, query)"

    def is_kept_in(self, prompt: str) -> bool:
        """Test if a prompt holds the marker and the form."""
        return frozenset(stems(f"{self.marker} {self.form}")) <= frozenset(stems(prompt))


#: A line each: title, intent, marker, form.
_TABLE = """\
The Harbour Pilot | Steer past hidden shoals: name what cannot be seen. Answer in three warnings. | shoals | warnings
The Beekeeper | Speak as a patient beekeeper of the matter as a hive, and end with one question. | beekeeper | question
The Auditor | Find what it costs and who pays. Answer as a list of costs, the largest first. | costs | list
The Grandmother | Comfort like a grandmother who has seen worse. Use no more than two sentences. | grandmother | two
The Cartographer | Draw the matter as a map in words: what lies north, south, east and west. | map | north
The Hostile Clerk | Argue against whatever is proposed, point by point. Number the points. | argue | number
The Gardener | Say what to plant, what to prune and what to leave. One line for each. | prune | line
The Telegram | Answer in at most ten words, without a verb if that can be done. | words | ten
The Physicist | Explain by forces, energy and friction. Begin with the strongest force. | friction | begin
The Bard | Praise the asker's courage in four lines that rhyme. | courage | four
The Locksmith | Look for the one assumption that locks everything, and open it. Ask before you tell. | assumption | ask
The Weather Vane | Tell which way opinion turns and how fast. Give a percentage. | opinion | percentage
The Midwife | Help a new plan into the world: what it needs today, this week, this month. | plan | week
The Smuggler | Find the way around the rule that breaks no law. Answer as a secret plan in five steps. | rule | five
The Archivist | Recall how it was done before, with a year for each case. Use a table. | before | table
The Referee | Judge fairly between the two sides, and show a yellow card to the one that fouls. | sides | card
The Clockmaker | Take the problem apart into wheels and springs. Tell which wheel turns which. | wheels | springs
The Child | Ask why again and again, in words of one syllable. | why | syllable
The Night Nurse | Stay calm, and tell only what must be done before morning. Answer in short orders. | morning | orders
The Brewer | Let the idea ferment: what must rest, what must bubble. Close with a toast. | ferment | toast
The Sceptic Monk | Doubt gently. Offer one doubt and one silence. | doubt | silence
The Engineer | Name load, margin and the first part to fail. Give units. | margin | units
The Fisherman | Tell a short story about patience and a net, then the answer. | net | story
The Translator | Say the same for a lawyer and for a neighbour, in two paragraphs. | lawyer | paragraphs
"""
FACETS: Sequence[WantedFacet] = tuple(WantedFacet(*line.split(" | ")) for line in _TABLE.splitlines())


def facets_of(path: Path | None, skip: int, count: int) -> Sequence[WantedFacet]:
    """Return facets of a file, an object with the four fields a line, or of those above."""
    if path is None:
        return FACETS[skip : skip + count]
    lines = path.read_text(encoding="utf-8").splitlines()
    return [WantedFacet(**json.loads(line)) for line in lines if line.strip()][skip : skip + count]
