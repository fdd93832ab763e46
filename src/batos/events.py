"""Events: named values with keys, reported to subscribers and never used to decide anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import structlog

from batos.protocol.errors import InternalError
from batos.protocol.event_payloads import EVENTS, MISSION_CITATION, MISSION_TOKEN, Event, Payload

Subscriber: TypeAlias = Callable[[str, Mapping[str, object]], None]

_log = structlog.get_logger("batos")

#: Not logged: the words of answers and of documents, and too many.
_CHATTY: Final = frozenset({MISSION_TOKEN.name, MISSION_CITATION.name})


class Events:
    """A list of subscribers; one that raises is dropped and logged, and never breaks a mission.

    With BATOS_DEBUG_EVENTS=1, as in every test, an event that is not in EVENTS, lacks a key or has another one
    raises InternalError.
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

    def emit(self, event: Event[Payload], payload: Payload) -> None:
        """Tell everyone, and the log."""
        if self._strict:
            _check(event, payload)
        name = event.name
        if self._logs and name not in _CHATTY:
            _log.info(name, **payload)
        for key, subscriber in tuple(self._subscribers.items()):
            try:
                subscriber(name, payload)
            except Exception:  # an observer must never break what it observes
                self._subscribers.pop(key, None)
                _log.exception("subscriber dropped", event_name=name)


def _check(event: Event[Any], payload: Mapping[str, object]) -> None:
    if EVENTS.get(event.name) is not event:
        raise InternalError(f"there is no event {event.name!r}")
    missing, unknown = set(event.keys) - payload.keys(), payload.keys() - event.known_keys
    if missing or unknown:
        wrong = [*(f"lacks {key}" for key in sorted(missing)), *(f"has {key}" for key in sorted(unknown))]
        raise InternalError(f"the event {event.name!r} {', '.join(wrong)}")
