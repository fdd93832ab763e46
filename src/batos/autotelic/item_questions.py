"""Has a model write a question about a sentence, and keeps it if only that sentence answers it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from batos.autotelic.item_makers import ItemSource, StatedFact, check_question
from batos.autotelic.item_scores import score
from batos.autotelic.model_missions import MissionTask, ModelMissions
from batos.records.gold_items import GoldItem, client_of

#: The most missions for one question: it is written, answered from its sentence, and asked without any.
MISSIONS: Final = 3
_WANTED: Final = (
    "The file has a sentence and, behind `Answer:`, some words of it. Write one question, in the language of the"
    " sentence, to which those words are the answer. Neither use them in the question, nor repeat the sentence."
)
_SCHEMA: Final[Mapping[str, object]] = {
    "type": "object",
    "properties": {"question": {"type": "string", "maxLength": 200}},
    "required": ["question"],
    "additionalProperties": False,
}


class WrittenQuestion(NamedTuple):
    """The outcome of asking a model for a question: the item, None if it does not do, and the missions it took."""

    item: GoldItem | None
    missions: int


class QuestionWriter:
    """Writes questions by missions that name the memory which they are about: they are erased with it."""

    def __init__(self, missions: ModelMissions) -> None:
        self.missions = missions

    async def write(self, source: ItemSource, fact: StatedFact) -> WrittenQuestion:
        """Return an A item of a fact: a question that the sentence answers, and that no model answers without it."""
        task = MissionTask(
            _WANTED, source.user, client_of(source.name), f"{fact.sentence}\n\nAnswer: {fact.span}", _SCHEMA
        )
        question = _question_of(await self._ask(task))
        if not check_question(question, fact):
            return WrittenQuestion(None, 1)
        item = source.item("A", question, (fact.span,))
        asked = MissionTask(question, source.user, client_of(source.name))
        if score(item, await self._ask(asked._replace(shown=fact.sentence))) < 1:
            return WrittenQuestion(None, 2)
        known = score(item, await self._ask(asked)) > 0
        return WrittenQuestion(None if known or self.missions.is_given_up else item, MISSIONS)

    async def _ask(self, task: MissionTask) -> str:
        told = await self.missions.report(task)
        return "" if told is None else str(told.get("answer") or "")


def _question_of(reply: str) -> str:
    """Return the question of a reply; "" if it has none."""
    try:
        told = json.loads(reply)
    except ValueError:
        return ""
    question = told.get("question") if isinstance(told, dict) else None
    return question.strip() if isinstance(question, str) else ""
