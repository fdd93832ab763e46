"""The table of running missions, kept from events: persona, state, start time and number of calls of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from batos.image.ids import iso
from batos.protocol.image_documents import ProgressLine

#: Events that end a mission even if its status cannot be written, as on a full disk.
_ENDS: Final = frozenset({"mission.done", "mission.failed"})


@dataclass(slots=True)
class _RunningLine:
    """The line of one running mission."""

    since: str
    attempt: int
    state: str = ""
    personas: tuple[str, ...] = ()
    effort: str = ""
    calls: int = 0


class RunningMissions:
    """A table with a line for each running mission, from its start until its status changes."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._lines: dict[str, _RunningLine] = {}
        # Doors read in threads of their own.
        self._lock = threading.Lock()

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Update the table by an event; a subscriber of Events."""
        if event == "mission.status":
            with self._lock:
                if keys["status"] == "running":
                    self._lines[keys["mission"]] = _RunningLine(iso(self._clock()), keys.get("attempt", 1))
                else:
                    self._lines.pop(keys["mission"], None)
            return
        if event in _ENDS:
            with self._lock:
                self._lines.pop(keys["mission"], None)
            return
        line = self._lines.get(keys.get("mission", ""))
        if line is None:
            return
        if event == "mission.state" and "path" not in keys:  # not the state of an inner mind
            line.state = keys["state"]
        elif event == "mission.routed":
            line.personas, line.effort = tuple(keys["personas"]), keys["effort"]
        elif event == "inference.start":
            line.calls += 1

    def snapshot(self) -> list[ProgressLine]:
        """Return a line for each running mission, the earliest first."""
        with self._lock:
            lines = list(self._lines.items())
        return [
            {
                "id": mission,
                "state": line.state,
                "personas": list(line.personas),
                "effort": line.effort,
                "since": line.since,
                "attempt": line.attempt,
                "calls": line.calls,
            }
            for mission, line in lines
        ]
