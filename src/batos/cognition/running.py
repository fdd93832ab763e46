"""A mission while it runs: what it works with, and what it has so far (the `_tmp_synthesis_` of its cycle)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from batos.cognition.brief import MissionBrief
from batos.cognition.citing import Quoted
from batos.cognition.evidence import Evidence, Passage, Past
from batos.cognition.gate import Verdict
from batos.cognition.prompt import LEAST_RATIO, Scene, Voice
from batos.cognition.router import Route
from batos.errors import BatosError
from batos.events import Events
from batos.inference.decide import REASONING_TOKENS
from batos.inference.schema import Decision, Mode
from batos.inference.session import Session
from batos.objects.prototype import UvmObject


@dataclass(frozen=True, slots=True)
class Thinking:
    """With which model and options a persona thinks."""

    model: str
    options: Mapping[str, Any]
    mode: Mode
    think: bool = False

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return int(self.options["num_ctx"])

    def answer_tokens(self, decision: Decision[Any]) -> int:
        """`num_predict` for a decision: what it can need, at most half of the window."""
        return min(decision.in_mode(self.mode).num_predict, self.window // 2)

    def reserved(self, decision: Decision[Any]) -> int:
        """Tokens of the window that the prompt leaves free: the answer's, and those of reasoning before it."""
        reasoning = REASONING_TOKENS if self.mode == "two_phase" else 0
        return min(self.answer_tokens(decision) + reasoning, 3 * self.window // 4)


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
            "citations": [each.as_dict() for each in self.citations],
        }
        if self.failure is not None:
            shown["failure"] = self.failure.as_dict()
        return shown


@dataclass(frozen=True, slots=True)
class Said:
    """A mission's answer as the model gave it; `text` is the whole reply, `cut` whether it reached its bound."""

    answer: str
    citations: tuple[Quoted, ...] = ()
    unanswered: frozenset[int] = frozenset()
    text: str = ""
    cut: bool = False


@dataclass(slots=True)
class Synthesis:
    """What a cycle has so far; a slot of the cycle while it runs, dropped when it is complete.

    `evidence` is what the next call is shown: it shrinks when a prompt does not fit. `recalled` is what IDLE
    recalled: calls were shown it, so answers are judged by it.
    """

    question: str
    recalled: Evidence = field(default_factory=Evidence)
    evidence: Evidence = field(default_factory=Evidence)
    queries: dict[str, str] = field(default_factory=dict)
    parts: tuple[PartResult, ...] = ()
    #: Parts that the weave was shown shortened, for want of room.
    shortened: int = 0
    #: How the parts became one answer: the mode, and what select and vote found.
    combined: dict[str, Any] = field(default_factory=dict)
    said: Said | None = None
    verdict: Verdict | None = None
    #: The verdict on the first answer, if it led to a revision.
    revised: Verdict | None = None
    #: The key protocol that was applied or tried.
    protocol: dict[str, Any] | None = None


@dataclass(slots=True)
class Running:
    """The services and the givens of one mission; its changing state is in the cycle."""

    id: str
    brief: MissionBrief
    root: Any
    persona: UvmObject
    thought: UvmObject
    route: Route
    voice: Voice
    thinking: Thinking
    session: Session
    events: Events
    #: What all calls share, without evidence.
    scene: Scene
    passages: tuple[Passage, ...]
    past: Past
    read_at: str
    note: Callable[[str], None]
    doom: Callable[[], None]
    #: Tokens that a byte of prompt is taken to cost.
    ratio: float
    #: (holder, selector) of every intent interpreted and every method run.
    methods: list[dict[str, str]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The persona's key in paths: `brick`."""
        return self.voice.name.lower()

    def learn_ratio(self) -> None:
        """Take the ratio that this mission measured so far.

        Only where no call is under way: then the sums are the same in every attempt, and so are its prompts.
        """
        size, tokens = self.session.measured.get(self.thinking.model, (0, 0))
        self.ratio = ratio(size, tokens, self.ratio)


def ratio(size: int, tokens: int, otherwise: float) -> float:
    """Tokens a byte as measured, a tenth added: one prompt is denser than another, and a refused call costs more."""
    return max(LEAST_RATIO, 1.1 * tokens / size) if size and tokens else otherwise
