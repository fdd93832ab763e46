"""Work that follows an answered turn in the background: the compaction of its conversation, once that is due."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from batos.conversations import compaction
from batos.events import Events
from batos.image import roots
from batos.image.image import LivingImage
from batos.minds.stopping import as_batos_error
from batos.missions.missions import Missions

_log = structlog.get_logger("batos")


class FollowUps:
    """Starts compactions that answered turns make due. The turn is done whatever happens to them."""

    def __init__(self, image: LivingImage, missions: Missions, group: asyncio.TaskGroup) -> None:
        self._image = image
        self._missions = missions
        self._group = group
        #: Serialises the checks: two turns that end together make one compaction due, not two.
        self._looking = asyncio.Lock()
        #: Compactions begun here that have not ended, by conversation: the image shows one only once it runs.
        self._begun: dict[str, str] = {}

    def keep(self, events: Events) -> None:
        """Call `start_due` from now on for each answered turn of a conversation; for a process that stays to work."""

        def on_event(event: str, keys: Mapping[str, Any]) -> None:
            if event == "mission.done" and keys.get("conversation") is not None:
                self._group.create_task(self.start_due(keys["mission"]))

        events.subscribe(on_event)

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
            _log.warning("compaction.not_begun", mission=mission, reason=as_batos_error(error).as_dict())
            return None
