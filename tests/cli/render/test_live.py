"""The live line: who, which state, how many parts, what is awaited, how long, and how to stop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.cli.render.live import LiveLine


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def heard(*events: tuple[str, Mapping[str, Any]]) -> str:
    """The line after events."""
    live = LiveLine(Clock())
    for event, keys in events:
        live.on_event(event, keys)
    return live.line()


ROUTED = ("mission.routed", {"personas": ["BRICK"], "effort": "cycle"})


def call(path: str, what: str = "start") -> tuple[str, Mapping[str, Any]]:
    """An event of a call."""
    return f"inference.{what}", {"path": path}


def part(facet: str | None) -> tuple[str, Mapping[str, Any]]:
    """A part that came back."""
    return "mission.partial", {"path": "p", "persona": "BRICK", "known": True, "of": 3 if facet else 2, "facet": facet}


def test_it_tells_the_time_and_how_to_stop() -> None:
    """From the moment at which it began to be told."""
    clock = Clock()
    live = LiveLine(clock, "Ctrl-C leaves it")
    clock.now += 75
    assert live.line() == "asking · 1 min 15 s · Ctrl-C leaves it"


def test_it_tells_the_queue() -> None:
    """How many are before it, and nothing of that once it is at work."""
    queued = ("mission.accepted", {"waiting": 4})
    assert heard(queued) == "queued · 3 before it · 0 s · Ctrl-C stops it"
    assert heard(queued, ROUTED, ("mission.state", {"state": "IDLE"})) == "BRICK idle · 0 s · Ctrl-C stops it"


def test_it_counts_parts() -> None:
    """Of a cycle its facets, of a council its personas; the facets of a persona within are not counted again."""
    begun = [call("brick/delegating/guide#0")]
    state = ("mission.state", {"state": "DELEGATING"})
    assert heard(ROUTED, state, *begun, part("guide")) == (
        "BRICK delegating · 1 of 3 parts · waits for the model · 0 s · Ctrl-C stops it"
    )
    council = ("mission.routed", {"personas": ["BRICK", "BABS"], "effort": "council"})
    inner = ("mission.state", {"state": "SYNTHESIZING", "path": "council/brick"})
    told = heard(council, state, inner, call("council/brick/delegating/guide#0"), part("guide"), part(None))
    assert told.startswith("BRICK, BABS delegating · 1 of 2 parts · waits")
    duet = ("mission.routed", {"personas": ["BRICK", "BABS"], "effort": "cycle"})
    told = heard(duet, state, call("duet/delegating/brick#0"), call("duet/delegating/babs#0"), part(None))
    assert told.startswith("BRICK, BABS delegating · 1 of 2 parts · waits")
    assert "parts" not in heard(("mission.routed", {"personas": ["BRICK", "BABS"], "effort": "reflex"}))
    made = [("method.generating", {"selector": each, "kind": "facet"}) for each in ("guide_facet_", "rogues_gallery")]
    tool = ("method.generating", {"selector": "count_facet_", "kind": "tool"})
    assert "0 of 2 parts" in heard(ROUTED, *made, tool)


def test_it_tells_what_is_awaited() -> None:
    """The model, its words, a method that is being made, a step of genesis, the daemon that is away."""
    start, first, end = call("a"), call("a", "first_token"), call("a", "end")
    assert "waits for the model" in heard(start)
    assert "the model writes" in heard(start, first)
    assert heard(start, first, end).startswith("asking · 0 s")
    making = ("method.generating", {"selector": "guide_facet_", "kind": "facet"})
    assert "learning guide_facet_" in heard(making, start)
    assert "learning" not in heard(making, ("method.tried", {"selector": "guide_facet_"}))
    assert "pull x: 40 %" in heard(("genesis.step", {"step": "pull x", "status": "40 %"}))
    away = ("mission.status", {"status": "waiting", "reason": {"message": "nothing listens"}})
    assert "waits: nothing listens" in heard(away)
    assert "waits" not in heard(away, ("mission.status", {"status": "running", "reason": None}))
