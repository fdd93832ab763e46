"""The events of missions: on their way to the client that asked, and the table of running missions kept from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from batos.client.pending import OnAcknowledged, OnEvent
from batos.events import Events
from batos.image.ids import iso
from batos.protocol.event_payloads import GENESIS_STEP, VRAM_SAMPLE, VRAM_SPILL
from batos.protocol.image_documents import ProgressLine

#: Events of no mission that whoever follows one is told too: they explain what it waits for, or are alarms.
_SHARED: Final = frozenset({GENESIS_STEP.name, VRAM_SAMPLE.name, VRAM_SPILL.name})


class EventRelay:
    """The client that asked for a mission, and the events that are passed on until that client leaves."""

    def __init__(self, on_event: OnEvent, on_acknowledged: OnAcknowledged, *, follow: bool) -> None:
        self.follow = follow
        self._tell_event, self._tell_acknowledged = on_event, on_acknowledged
        self._mission = ""
        self._attempt, self._streamed, self._gone = 0, False, False
        self._unsubscribe: Callable[[], None] = lambda: None
        #: The events of missions that were accepted while this one's id was not known yet.
        self._entered: dict[str, list[tuple[str, Mapping[str, object]]]] = {}

    def listen(self, events: Events) -> None:
        """Listen from here on for events of a mission whose id is not known yet."""
        if self.follow and not self._gone:
            self._unsubscribe = events.subscribe(self._on_event)

    def acknowledge(self, mission: str) -> None:
        """Acknowledge the mission, which is durable now.

        From here on its events are passed on, and those that concern every mission.
        """
        if not self._gone:
            self._mission = mission
            self._tell_acknowledged({"mission": mission})
            # Without any, a key named a mission that was accepted before.
            for event, keys in self._entered.pop(mission, ()):
                self._on_event(event, keys)
            self._entered.clear()

    def begin(self, events: Events, mission: str) -> None:
        """Pass on the events of a mission that is there, and those that concern every one."""
        if not self._gone:
            self._mission = mission
            self._unsubscribe = events.subscribe(self._on_event)

    def leave(self) -> None:
        """Pass on nothing more."""
        self._gone = True
        self._unsubscribe()

    def _on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        if not self._mission:
            if event == "mission.accepted":
                self._entered[keys["mission"]] = []
            if keys.get("mission") in self._entered:
                self._entered[keys["mission"]].append((event, keys))
        ours = bool(self._mission) and keys.get("mission") == self._mission
        if not ours and (not self._mission or event not in _SHARED or "mission" in keys):
            return
        if event == "mission.token":
            self._streamed = True
        elif event == "mission.retracted":
            self._streamed = False
        elif keys.get("attempt", self._attempt) > self._attempt:
            self._attempt = keys["attempt"]
            if self._streamed:  # it is told again from its beginning
                self._streamed = False
                self._tell_event("mission.retracted", {"mission": self._mission})
        self._tell_event(event, keys)


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
