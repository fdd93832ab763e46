"""A mission while it runs: what it works with, and what it has so far (the `_tmp_synthesis_` of its cycle)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batos.cognition.brief import MissionBrief
from batos.cognition.evidence import Evidence, Passage, Turn
from batos.cognition.gate import Quoted, Verdict
from batos.cognition.prompt import Scene, Voice
from batos.cognition.router import Route
from batos.errors import BatosError
from batos.events import Events
from batos.inference.schema import Mode
from batos.inference.session import Session
from batos.objects.prototype import UvmObject


@dataclass(frozen=True, slots=True)
class Thinking:
    """With which model and options a persona thinks, and how many tokens a byte of its prompts costs."""

    model: str
    options: Mapping[str, Any]
    mode: Mode
    tokens_per_byte: float


@dataclass(frozen=True, slots=True)
class PartResult:
    """What one facet came back with: data, never writes; `failure` says why it has no answer."""

    number: int
    slot: str
    name: str
    query: str
    answer: str = ""
    citations: tuple[Quoted, ...] = ()
    known: bool = False
    failure: BatosError | None = None

    @property
    def open(self) -> bool:
        """Whether the sub-query has no answer."""
        return self.failure is not None or not self.known or not self.answer.strip()

    def as_dict(self) -> dict[str, Any]:
        """A voice, as CONTRACT's `voices` shows it."""
        shown: dict[str, Any] = {
            "facet": self.slot,
            "name": self.name,
            "query": self.query,
            "answer": self.answer,
            "known": self.known,
            "citations": [{"document": each.document, "quote": each.quote} for each in self.citations],
        }
        if self.failure is not None:
            shown["failure"] = self.failure.as_dict()
        return shown


@dataclass(slots=True)
class Synthesis:
    """What a cycle has so far; a slot of the cycle while it runs, dropped when it is complete."""

    question: str
    evidence: Evidence = field(default_factory=Evidence)
    queries: dict[str, str] = field(default_factory=dict)
    parts: tuple[PartResult, ...] = ()
    answer: str = ""
    citations: tuple[Quoted, ...] = ()
    unanswered: frozenset[int] = frozenset()
    verdict: Verdict | None = None
    revised: bool = False


@dataclass(slots=True)
class Running:
    """The services and the givens of one mission; its changing state is in the cycle."""

    id: str
    brief: MissionBrief
    accepted_at: str
    root: Any
    persona: UvmObject
    thought: UvmObject
    route: Route
    voice: Voice
    thinking: Thinking
    session: Session
    events: Events
    passages: tuple[Passage, ...]
    turns: tuple[Turn, ...]
    turn_trust: str
    charter: str
    house_rules: str
    read_at: str
    note: Callable[[str], None]
    doom: Callable[[], None]
    #: (holder, selector) of every intent interpreted and every method run.
    methods: list[dict[str, str]] = field(default_factory=list)
    #: States entered, with times.
    states: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The persona's key in paths: `brick`."""
        return self.voice.name.lower()

    def scene(self, evidence: Evidence) -> Scene:
        """What all calls of this mission share."""
        return Scene(self.charter, self.house_rules, evidence, self.brief.text, self.accepted_at)

    def tokens_per_byte(self) -> float:
        """The ratio measured in this mission, or the one that was known before."""
        size, tokens = self.session.measured.get(self.thinking.model, (0, 0))
        # A tenth is added: one prompt is denser than another, and a refused call costs more than some room.
        return 1.1 * tokens / size if size else self.thinking.tokens_per_byte
