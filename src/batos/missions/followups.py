"""Work that follows an answer: the publisher folds in its contributions, and its conversation is compacted once due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from batos.agency.records import staged_effects
from batos.concurrency.jobs import Job
from batos.conversations import compaction, conversations
from batos.image import roots
from batos.image.image import LivingImage
from batos.image.publisher import Applier
from batos.image.roots import Root
from batos.memory.exchanges import MEMORABLE
from batos.minds.stopping import as_batos_error
from batos.missions.missions import Missions
from batos.protocol.errors import BatosError
from batos.records import tool_declarations, wishes

_log = structlog.get_logger("batos")


class FollowUps:
    """Starts compactions that answered turns make due. The turn is done whatever happens to them."""

    def __init__(self, image: LivingImage, missions: Missions) -> None:
        self._image = image
        self._missions = missions
        self.job = Job("compactions", self._work, ends_itself=True)
        #: The newest answered turn of each conversation that is to be looked at.
        self._turns: dict[str, str] = {}
        image.signals.answered.call(self._follow)
        #: Serialises the checks: two turns that end together make one compaction due, not two.
        self._looking = asyncio.Lock()
        #: Compactions begun here that have not ended, by conversation: the image shows one only once it runs.
        self._begun: dict[str, str] = {}

    def keep(self) -> None:
        """See to each answered turn of a conversation from now on; for a process that stays to work."""
        self.job.start()

    def _follow(self, mission: str, conversation: str | None) -> None:
        if self.job.is_started and conversation is not None:
            self._turns[conversation] = mission
            self.job.wake()

    async def _work(self) -> None:
        """Start the compactions that are due; a turn of which one cannot be started yet stays to be looked at."""
        failed: BatosError | None = None
        for conversation, mission in tuple(self._turns.items()):
            try:
                await self.begin(mission)
            except Exception as error:  # no reason to leave the other conversations
                failed = _log_failure(mission, error)
                if failed.retry:
                    continue
            if self._turns[conversation] == mission:
                del self._turns[conversation]
        if failed is not None and self._turns:
            raise failed

    async def begin(self, mission: str) -> str | None:
        """Start the compaction that the answered mission made due; return its id, None if none is due.

        The compaction has the lowest priority. A compaction that was left behind is resumed.

        Raises: Busy: no more missions may wait; the compaction is due again after the next turn.
        """
        async with self._looking:
            found = await asyncio.to_thread(self._due, mission)
            if found is None:
                return None
            if not isinstance(found, str):
                conversation = found["message"]["receiver"]
                found = self._begun[conversation] = await self._missions.submit(found)
            await self._missions.resume(found)
            return found

    def _due(self, mission: str) -> dict[str, Any] | str | None:
        """Return the brief of a compaction that is due, the id of one that was begun, or None."""
        with self._image.snapshot() as root:
            words = {each: roots.mission_record(root, each).status.word for each in self._begun.values()}
            self._begun = {name: each for name, each in self._begun.items() if words[each] in compaction.UNENDED}
            found = compaction.due(root, mission)
            return self._begun.get(found["message"]["receiver"], found) if isinstance(found, dict) else found

    async def start_due(self, mission: str) -> str | None:
        """Start a due compaction as `begin` does, but log any error and return None: the next turn tries again."""
        try:
            return await self.begin(mission)
        except Exception as error:  # no reason to fail the answered turn or the process
            _log_failure(mission, error)
            return None


def _log_failure(mission: str, error: Exception) -> BatosError:
    """Log why the compaction that an answered turn made due is not begun; return the reason."""
    reason = as_batos_error(error)
    _log.warning("compaction.not_begun", mission=mission, reason=reason.as_dict())
    return reason


# -- what the publisher folds in of an answered mission


def fold_statistics(root: Root, mission: str, payload: Any) -> None:
    """Add a mission's calls, and the measured tokens of its prompts, to the statistics."""
    kept = root[roots.STATISTICS]
    missions = dict(kept.get("missions", {}))
    missions[payload["persona"]] = missions.get(payload["persona"], 0) + 1
    kept["missions"] = missions
    kept["calls"] = kept.get("calls", 0) + payload["calls"]
    measured = dict(kept.get("measured", {}))
    for model, (size, tokens) in payload["measured"].items():
        before = measured.get(model, (0, 0))
        measured[model] = (before[0] + size, before[1] + tokens)
    kept["measured"] = measured


def fold_turn(root: Root, mission: str, payload: Any) -> None:
    """Append the mission to its conversation as the newest turn, unless the conversation belongs to another user."""
    user = roots.mission_record(root, mission).brief.value["user"]
    conversation = roots.conversation(root, payload["conversation"], user)
    if conversation.user == user:
        conversation.turns[conversations.next_position(conversation)] = mission


def fold_memorable(root: Root, mission: str, payload: object) -> None:
    """Note that the mission is to be remembered: it is written with others, in a commit of the catalogue's."""
    root[roots.UNREMEMBERED].insert(mission)


APPLIERS: Mapping[str, Applier] = {
    "statistics": fold_statistics,
    "turn": fold_turn,
    MEMORABLE: fold_memorable,
    tool_declarations.KIND: tool_declarations.fold,
    wishes.KIND: wishes.fold,
    staged_effects.KIND: staged_effects.fold,
}
