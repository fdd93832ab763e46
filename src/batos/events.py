"""Events: named values with keys, reported to subscribers and never used to decide anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import structlog

from batos.errors import InternalError

Subscriber: TypeAlias = Callable[[str, Mapping[str, Any]], None]

#: Every event and the keys it always carries (others may follow).
NAMES: dict[str, tuple[str, ...]] = {
    "mission.status": ("mission", "status", "reason"),
    "mission.accepted": ("mission", "user", "waiting"),
    "mission.routed": ("mission", "personas", "effort", "confidence", "reason"),
    "mission.state": ("mission", "state"),
    "mission.token": ("mission", "path", "text"),
    "mission.partial": ("mission", "path", "persona", "known", "of"),
    "mission.done": ("mission", "tid"),
    "mission.failed": ("mission", "status", "reason"),
    "mission.retracted": ("mission",),
    "queue.busy": ("user",),
    "inference.start": ("mission", "path", "model"),
    "inference.first_token": ("mission", "path", "seconds"),
    "inference.end": ("mission", "path", "model", "prompt_tokens", "answer_tokens", "seconds", "from_journal"),
    "txn.commit": ("what",),
    "txn.abort": ("what", "reason"),
    "txn.conflict": ("what",),
    "genesis.step": ("step", "status"),
    "guardian.verdict": ("selector", "accepted", "faults", "policy", "digest"),
    "cell.kill": ("selector", "limit"),
    "method.generating": ("mission", "receiver", "selector", "generation"),
    "method.repair": ("receiver", "selector", "attempt", "why"),
    "method.tried": ("receiver", "selector", "outcome", "mutants", "killed"),
    "method.installed": ("receiver", "selector", "revision", "digest"),
    "method.retired": ("receiver", "selector", "revision", "reason"),
    "vram.sample": ("model", "runner", "where", "size", "size_vram"),
    "vram.spill": ("model", "runner", "where", "size", "size_vram"),
    "approval.asked": ("approval", "receiver", "selector", "digest"),
    "approval.answered": ("approval", "answer", "by"),
}

_log = structlog.get_logger("batos")

#: Too many to log at the usual level.
_CHATTY = frozenset({"mission.token"})


class Events:
    """A list of subscribers; one that raises is dropped and logged, and never breaks a mission.

    With BATOS_DEBUG_EVENTS=1, as in every test, an event that is not in NAMES or lacks a key raises InternalError.
    """

    def __init__(self, *subscribers: Subscriber, log: bool = False) -> None:
        # By a key of their own: two subscribers may be equal, and one may leave while it is told.
        self._subscribers: dict[object, Subscriber] = {object(): each for each in subscribers}
        self._logs = log
        self._strict = os.environ.get("BATOS_DEBUG_EVENTS") == "1"

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; returns the function that takes it away again."""
        key = object()
        self._subscribers[key] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def emit(self, event: str, **keys: Any) -> None:
        """Tell everyone, and the log."""
        if self._strict:
            _check(event, keys)
        if self._logs and event not in _CHATTY:
            _log.info(event, **keys)
        for key, subscriber in tuple(self._subscribers.items()):
            try:
                subscriber(event, keys)
            except Exception:  # an observer must never break what it observes
                self._subscribers.pop(key, None)
                _log.exception("subscriber dropped", event_name=event)


def _check(event: str, keys: Mapping[str, Any]) -> None:
    missing = set(NAMES[event]) - keys.keys() if event in NAMES else {"a name"}
    if missing:
        raise InternalError(f"the event {event!r} lacks {', '.join(sorted(missing))}")
