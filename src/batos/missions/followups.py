"""Starts the background work that follows an answered turn: the compaction of its conversation, once due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from batos.conversations import compaction
from batos.events import Events
from batos.image import roots
from batos.image.image import LivingImage
from batos.minds.stopping import as_ours
from batos.missions.missions import Missions

_log = structlog.get_logger("batos")


class FollowUps:
    """Looks at turns that were answered and begins what they make due; a turn is done whatever comes of it."""

    def __init__(self, image: LivingImage, control: Missions, group: asyncio.TaskGroup) -> None:
        self._image = image
        self._control = control
        self._group = group
        #: One look after the other: two turns that end together make one compaction due, not two.
        self._looking = asyncio.Lock()
        #: What was begun here and has not ended, by conversation: until it runs nothing in the image tells of it.
        self._begun: dict[str, str] = {}

    def keep(self, events: Events) -> None:
        """Look at every turn when it is answered, from now on: for a process that runs missions."""

        def told(event: str, keys: Mapping[str, Any]) -> None:
            if event == "mission.done" and keys.get("conversation") is not None:
                self._group.create_task(self.start_due(keys["mission"]))

        events.subscribe(told)

    async def begin(self, mission: str) -> str | None:
        """Begin the work that the answered mission made due, after all questions of people; return its id, or None.

        A compaction that was left unfinished continues. Raises Busy if no more missions may wait; the work is due again
        after the next turn.
        """
        async with self._looking:
            found = await asyncio.to_thread(self._due, mission)
            if found is None:
                return None
            if not isinstance(found, str):
                conversation = found["message"]["receiver"]
                found = self._begun[conversation] = await self._control.submit(found)
            await self._control.resume(found)
            return found

    def _due(self, mission: str) -> dict[str, Any] | str | None:
        with self._image.snapshot() as root:
            words = {each: roots.mission_record(root, each).status.word for each in self._begun.values()}
            self._begun = {name: each for name, each in self._begun.items() if words[each] in compaction.UNENDED}
            found = compaction.due(root, mission)
            return self._begun.get(found["message"]["receiver"], found) if isinstance(found, dict) else found

    async def start_due(self, mission: str) -> str | None:
        """The same, and what keeps it from being begun is logged: the answer stands, and the next turn looks again."""
        try:
            return await self.begin(mission)
        except Exception as error:  # no reason to fail what was answered, nor the process that looks
            _log.warning("compaction.not_begun", mission=mission, reason=as_ours(error).as_dict())
            return None
