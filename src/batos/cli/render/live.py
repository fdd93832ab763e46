"""The live line: where a mission is while a person waits for it, drawn again as it goes on, gone at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from batos.terminal.console import duration_text

if TYPE_CHECKING:
    from batos.protocol import event_payloads as told


@dataclass(slots=True)
class LiveLine:
    """Hears a mission's events and says in a line: who is at work, in which state, parts, what is awaited, how long."""

    clock: Callable[[], float] = time.monotonic
    #: The way to stop the mission, in words.
    stop: str = "Ctrl-C stops it"
    _begun: float = 0.0
    _who: str = ""
    _personas: int = 0
    _state: str = ""
    _waits: str = ""
    _learning: dict[str, None] = field(default_factory=dict)
    #: Parts that were begun and that came back, and calls under way with whether a first word came.
    _parts: dict[str, None] = field(default_factory=dict)
    _back: int = 0
    _of: int = 0
    _calls: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def on_event(self, event: str, keys: Mapping[str, object]) -> None:
        """Take an event."""
        if (hear := _HEARD.get(event)) is not None:
            hear(self, keys)

    def line(self) -> str:
        """Return the line as it is now."""
        doing = " ".join(each for each in (self._who, self._state) if each) or "asking"
        told = (doing, self._parts_text(), self._waiting_text(), duration_text(self.clock() - self._begun), self.stop)
        return " · ".join(each for each in told if each)

    def _parts_text(self) -> str:
        of = max(self._of or self._personas or len(self._parts), self._back)
        return f"{self._back} of {of} parts" if of > 1 else ""

    def _waiting_text(self) -> str:
        if self._waits:
            return self._waits
        if self._learning:
            one = len(self._learning) == 1
            return f"learning {next(iter(self._learning)) if one else f'{len(self._learning)} methods'}"
        if not self._calls:
            return ""
        return "the model writes" if any(self._calls.values()) else "waits for the model"

    # -- what each event changes

    def _on_accepted(self, keys: told.MissionAccepted) -> None:
        ahead = int(keys.get("waiting") or 0) - 1
        self._state, self._waits = "queued", f"{ahead:,} before it" if ahead > 0 else ""

    def _on_status(self, keys: told.MissionStatus) -> None:
        reason: Mapping[str, object] = keys.get("reason") or {}
        self._waits = f"waits: {reason.get('message', '')}" if keys["status"] == "waiting" else ""

    def _on_routed(self, keys: told.MissionRouted) -> None:
        self._who, self._waits = ", ".join(keys["personas"]), ""
        alone = keys["effort"] == "reflex" or len(keys["personas"]) == 1
        self._personas = 0 if alone else len(keys["personas"])

    def _on_state(self, keys: told.MissionState) -> None:
        if "/" not in str(keys.get("path") or ""):
            self._state, self._waits = str(keys["state"]).lower(), ""

    def _on_partial(self, keys: told.MissionPartial) -> None:
        if not self._personas or keys.get("facet") is None:
            self._back += 1
            self._of = int(keys.get("of") or 0)

    def _on_started(self, keys: told.InferenceStart) -> None:
        path = str(keys["path"])
        self._calls[path] = False
        if "/delegating/" in path:
            self._parts[path.rpartition("/")[2].partition("#")[0]] = None

    def _on_first(self, keys: Mapping[str, object]) -> None:
        self._calls[str(keys["path"])] = True

    def _on_ended(self, keys: Mapping[str, object]) -> None:
        self._calls.pop(str(keys["path"]), None)

    def _on_generating(self, keys: Mapping[str, object]) -> None:
        selector = str(keys["selector"])
        self._learning[selector] = None
        if keys.get("kind") == "facet":  # an older server does not tell it
            self._parts[selector.removesuffix("_facet_")] = None

    def _on_learnt(self, keys: Mapping[str, object]) -> None:
        self._learning.pop(str(keys["selector"]), None)

    def _on_step(self, keys: Mapping[str, object]) -> None:
        self._waits = f"{keys['step']}: {keys['status']}"


_HEARD: Mapping[str, Callable[[LiveLine, Any], None]] = {
    "mission.accepted": LiveLine._on_accepted,
    "mission.status": LiveLine._on_status,
    "mission.routed": LiveLine._on_routed,
    "mission.state": LiveLine._on_state,
    "mission.partial": LiveLine._on_partial,
    "inference.start": LiveLine._on_started,
    "inference.first_token": LiveLine._on_first,
    "inference.end": LiveLine._on_ended,
    "method.generating": LiveLine._on_generating,
    "method.tried": LiveLine._on_learnt,
    "method.installed": LiveLine._on_learnt,
    "genesis.step": LiveLine._on_step,
}
