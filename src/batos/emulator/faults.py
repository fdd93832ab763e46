"""Faults on order: which request they strike, and what becomes of its reply.

A fault is {"match": {"path", "method", "model", "nth", "every"}, "do": NAME, "times": N, and what NAME takes}. All of
`match` is optional; `nth` counts from 1 among the requests that fit the rest; `times` (1 where there is neither nth nor
every) limits how often it strikes. Without a path it strikes where it means something: words in answers, and so on.

    status       the request is refused: "status" (500), "error" (its text)
    cut          the connection closes after "after" lines (1; 0 before any reply)
    no_done      the last line never comes (a whole reply says done: false)
    error_line   after "after" lines (1) comes {"error": "error"} and the end
    bad_line     after "after" lines (1) comes a line that is no JSON
    stall        after "after" lines (0) nothing for "seconds" (60)
    nel          the answer holds a raw U+0085
    blanks       the answer is blanks until num_predict
    repeat       the answer is one word until num_predict
    broken_json  the answer stops being JSON half way
    text         the answer is "text"
    kill_load    the runner dies while it loads
    kill_answer  the runner dies after "after" tokens (1)
    slow_load    the next load takes "seconds" more
    spill        the next load finds only "share" (0.5) of its memory on the card
    overflow     the prompt does not fit: "n_prompt_tokens", "n_ctx"
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.errors import ConfigError

KINDS = frozenset(
    "status cut no_done error_line bad_line stall nel blanks repeat broken_json text "
    "kill_load kill_answer slow_load spill overflow".split()
)
_ANSWERS = ("/api/chat", "/api/generate")
_LOADS = (*_ANSWERS, "/api/embed", "/api/embeddings")
_STREAMS = (*_ANSWERS, "/api/pull", "/api/create")
_PATHS = {
    **dict.fromkeys(("nel", "blanks", "repeat", "broken_json", "text", "kill_answer", "overflow"), _ANSWERS),
    **dict.fromkeys(("kill_load", "slow_load", "spill"), _LOADS),
    **dict.fromkeys(("cut", "no_done", "error_line", "bad_line", "stall"), _STREAMS),
}
_MATCHED = frozenset(("path", "method", "model", "nth", "every"))


@dataclass(slots=True)
class Fault:
    """One order; `seen` counts the requests that fitted it, `struck` those that it struck."""

    do: str
    match: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    seen: int = 0
    struck: int = 0

    @classmethod
    def of(cls, described: Any) -> Fault:
        """From its JSON; ConfigError when it is no fault."""
        if not isinstance(described, dict) or described.get("do") not in KINDS:
            raise ConfigError(
                f"no such fault: {described!r}; `do` is one of {', '.join(sorted(KINDS))}", field="faults"
            )
        match = described.get("match", {})
        if not isinstance(match, dict) or not match.keys() <= _MATCHED:
            raise ConfigError(f"`match` takes {', '.join(sorted(_MATCHED))}, not {match!r}", field="faults")
        times = described.get("times", None if "nth" in match or "every" in match else 1)
        given = {key: value for key, value in described.items() if key not in ("match", "do", "times")}
        return cls(described["do"], match, times, given)

    def strikes(self, method: str, path: str, model: str) -> bool:
        """Whether it strikes this request; counts it."""
        match = self.match
        if path not in ((match["path"],) if "path" in match else _PATHS.get(self.do, (path,))):
            return False
        if match.get("method", method) != method or match.get("model", model) != model:
            return False
        self.seen += 1
        if self.times is not None and self.struck >= self.times:
            return False
        if "nth" in match and self.seen != match["nth"]:
            return False
        if "every" in match and self.seen % match["every"]:
            return False
        self.struck += 1
        return True

    def number(self, name: str, default: float) -> float:
        """A number that the order gives."""
        return float(self.given.get(name, default))


@dataclass(slots=True)
class Faults:
    """The orders in force, in the order they were given."""

    orders: list[Fault] = field(default_factory=list)

    def add(self, described: Any) -> None:
        """One more fault, or a list of them, as JSON."""
        for one in described if isinstance(described, list) else [described]:
            self.orders.append(Fault.of(one))

    def take(self, method: str, path: str, model: str) -> Fault | None:
        """The first fault that strikes this request."""
        for order in self.orders:
            if order.strikes(method, path, model):
                return order
        return None

    def clear(self) -> None:
        """Take all orders back."""
        self.orders.clear()


def read(path: Path | None) -> Faults:
    """The faults of a JSON file: a list, or {"faults": [...]}. ConfigError when it cannot be used."""
    faults = Faults()
    if path is not None:
        try:
            document = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as fault:
            raise ConfigError(f"the faults file {path} cannot be read: {fault}", field="faults") from fault
        faults.add(document["faults"] if isinstance(document, dict) and "faults" in document else document)
    return faults
