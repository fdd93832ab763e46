"""Chooses among a persona's key protocols by the meaning of the question, without a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batos.routing.classifier import Classifier
from batos.routing.lessons import ORDINARY, Lesson
from batos.routing.lexical import Triggers

#: A protocol is meant if it has more than this share of the question: clearly more than the persona's ordinary
#: questions and its other protocols together (docs/decisions/0012-router.md).
MEANT = 0.6


class ProtocolChoice:
    """Finds the protocols that a question is meant for, by what was learnt of their exemplars and by their triggers."""

    def __init__(self, lessons: Sequence[Lesson], learnt: Mapping[str, Classifier]) -> None:
        self._learnt = learnt
        self._triggers = {each.label: (each.protocols, Triggers(each.protocols)) for each in lessons if each.protocols}

    def find(
        self, text: str, personas: Sequence[str], vector: Sequence[float] | None = None
    ) -> dict[str, dict[str, float]]:
        """Return the share of each protocol of these personas that is meant, by persona, the highest first.

        A trigger gives 1.
        """
        found = {persona: self._find(persona, text, vector) for persona in personas if persona in self._triggers}
        return {persona: meant for persona, meant in found.items() if meant}

    def _find(self, persona: str, text: str, vector: Sequence[float] | None) -> dict[str, float]:
        protocols, triggers = self._triggers[persona]
        shares = self._learnt[persona].shares(text, vector)
        shares |= {each.label: 1.0 for each in protocols if triggers.find(text, each.label)}
        meant = [slot for slot, share in shares.items() if share > MEANT and slot != ORDINARY]
        return {slot: shares[slot] for slot in sorted(meant, key=lambda slot: -shares[slot])}
