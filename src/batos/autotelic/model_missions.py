"""Missions that the mind asks itself: with the lowest priority, without memory, and not again and again in vain."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import structlog

from batos.image.ownership import DOOR
from batos.protocol.brief import NO_MEMORY, File, as_file
from batos.protocol.errors import BatosError, Refused

#: Missions in a row that may fail before no more is asked.
PATIENCE: Final = 2
#: Times that the same is asked, each by a mission of its own, if the one before ended without an answer.
TIMES: Final = 3

#: A brief, or the report of a mission, as plain data.
MissionData: TypeAlias = Mapping[str, Any]
#: Asks a mission, and returns its report; raises BatosError where there is no answer.
Ask: TypeAlias = Callable[[MissionData, Sequence[File]], Awaitable[MissionData]]

_log = structlog.get_logger("batos.memory")


class MissionTask(NamedTuple):
    """A task for a model: what is asked, for whom, by which part of the mind, and the text of a file that it is shown.

    That text is a document's: it is shown as evidence is, and is no part of what is asked. `schema` is the reply's,
    `persona` the one that answers.
    """

    text: str
    user: str
    client: str
    shown: str = ""
    schema: Mapping[str, object] | None = None
    persona: str = ""

    def brief(self, before: int = 0) -> tuple[dict[str, object], list[File]]:
        """Return the brief, the same each time: what a killed process paid for is not paid again.

        `before` counts the missions that had it and ended without an answer: such a one never has any.
        """
        again = (str(before),) if before else ()
        told = "\0".join((self.client, self.text, self.shown, *again)).encode("utf-8", "replace")
        data = self.shown.encode("utf-8", "replace")
        brief: dict[str, object] = {
            "text": self.text,
            "user": self.user,
            "effort": "reflex",
            "priority": -9,
            "policy": {"memory": NO_MEMORY, "install": "never"},
            "idempotency_key": f"{DOOR} {hashlib.sha256(told).hexdigest()}",
            "origin": {"door": DOOR, "client": self.client},
        }
        if self.schema is not None:
            brief["schema"] = self.schema
        if self.persona:
            brief["persona"] = self.persona
        return brief, [as_file("notes.txt", data, len(data))] if data else []


class ModelMissions:
    """Asks a model by missions that neither use nor leave memories."""

    def __init__(self, ask: Ask, answers: Callable[[], Awaitable[bool]], check: Callable[[], Awaitable[None]]) -> None:
        #: Asks a mission whether any would be answered or not.
        self.ask = ask
        self._answers = answers
        #: Raises a BatosError if no model would be asked, though Ollama answers.
        self.check = check
        self._failed = 0
        #: The calls that were made so far, and their tokens.
        self.calls = self.tokens = 0

    @property
    def is_given_up(self) -> bool:
        """Test if so many missions in a row failed that no more is asked until a model answers again."""
        return self._failed == PATIENCE

    async def can_ask(self) -> bool:
        """Test if a model would answer now."""
        self._failed = 0
        if not await self._answers():
            return False
        try:
            await self.check()
        except BatosError as error:
            _log.info("model.not_ready", reason=error.as_dict())
            return False
        return True

    async def report(self, task: MissionTask) -> MissionData | None:
        """Return the report of a mission; None if there is no answer, or it is given up."""
        if self.is_given_up:
            return None
        told = await self._ask_anew(task)
        if told is None:
            return None
        self._failed = 0
        cost = told.get("cost") or {}
        self.calls += cost.get("calls", 0)
        self.tokens += cost.get("prompt_tokens", 0) + cost.get("answer_tokens", 0)
        return told

    async def _ask_anew(self, task: MissionTask) -> MissionData | None:
        """Ask by the first mission of a task that has not ended without an answer; None: there is no answer."""
        for before in range(TIMES):
            try:
                return await self.ask(*task.brief(before))
            except BatosError as error:
                _log.warning("model.no_answer", client=task.client, reason=error.as_dict())
                has_ended = error.code == Refused.code and error.field == "mission"
                if not has_ended:  # the end of an earlier mission tells nothing of the model now
                    self._failed += 1
                    return None
        return None
