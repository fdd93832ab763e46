"""A mission while it runs: what it works with, and what it has so far (the `_tmp_synthesis_` of its cycle)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from batos.brief import Combine, Install, Interpret, MissionBrief, MissionPolicy
from batos.cell.cell import MethodCall, Outcome
from batos.cell.host import Host
from batos.cell.program import Program
from batos.errors import BatosError
from batos.events import Events
from batos.gate.checks import GateFault, GateVerdict
from batos.gate.citing import Quoted
from batos.image.roots import Root
from batos.inference.cost import LEAST_RATIO
from batos.inference.decisions.decide import REASONING_TOKENS
from batos.inference.decisions.schema import Decision, Mode
from batos.inference.session import Session
from batos.memory.evidence import Evidence, Passage, Past
from batos.minds.choices import Decided
from batos.minds.prompt import Scene, Voice
from batos.objects.message import Interpreter
from batos.objects.method import Intent, Method
from batos.objects.prototype import Found, UvmObject
from batos.routing.router import Route

#: How much each policy of installing allows; a brief may choose among equals.
ALLOWS: Final[Mapping[Install, int]] = {"auto": 2, "now": 2, "ask": 1, "never": 0}


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
        """Return `num_predict` for a decision: the codex's, or what it can need if that is more."""
        return max(self.needed(decision), int(self.options.get("num_predict", 0)))

    def needed(self, decision: Decision[Any]) -> int:
        """Return the tokens that a decision can need, by letters: at most half of the window."""
        return min(decision.in_mode(self.mode).num_predict, self.window // 2)

    def reserved(self, decision: Decision[Any]) -> int:
        """Tokens of the window that the prompt leaves free: the answer's, and those of reasoning before it."""
        reasoning = REASONING_TOKENS if self.mode == "two_phase" else 0
        return min(self.needed(decision) + reasoning, 3 * self.window // 4)


@dataclass(frozen=True, slots=True)
class PartResult:
    """What one part of a mind came back with: data, never writes; `failure` says why it has no answer.

    A part is a facet of `persona`, or that persona as a mind of its own: then `parts` are its own, and `faults` what
    the gate found in its answer.
    """

    number: int
    slot: str
    name: str
    query: str
    answer: str = ""
    citations: tuple[Quoted, ...] = ()
    known: bool = False
    failure: BatosError | None = None
    persona: str = ""
    parts: tuple[PartResult, ...] = ()
    faults: tuple[GateFault, ...] = ()
    #: What it says in a few words, if it was given as a vote.
    gist: str = ""
    #: What each call of this mind changed (changes.py).
    changes: tuple[Mapping[str, Any], ...] = ()

    @property
    def open(self) -> bool:
        """Whether the sub-query has no answer."""
        return self.failure is not None or not self.known or not self.answer.strip()

    @property
    def is_mind(self) -> bool:
        """Whether this part is a persona that ran a cycle of its own."""
        return self.slot == self.persona.lower()

    def as_dict(self) -> dict[str, Any]:
        """A voice, as CONTRACT's `voices` shows it; a persona's has the voices of its facets in it."""
        shown: dict[str, Any] = {} if self.is_mind else {"facet": self.slot}
        shown |= {
            "persona": self.persona,
            "name": self.name,
            "query": self.query,
            "answer": self.answer,
            "known": self.known,
            "citations": [each.as_dict() for each in self.citations],
        }
        if self.gist:
            shown["gist"] = self.gist
        if self.is_mind:
            shown["faults"] = [each.as_dict() for each in self.faults]
            shown["voices"] = [each.as_dict() for each in self.parts]
        if self.failure is not None:
            shown["failure"] = self.failure.as_dict()
        return shown


#: Says of the parts that answered or failed so far whether the others need not be asked.
Enough: TypeAlias = Callable[[Sequence[PartResult]], bool]


@dataclass(frozen=True, slots=True)
class Said:
    """A mission's answer as the model gave it.

    `text` is the whole reply, `cut` whether it reached its bound, `gist` what it says in a few words if it is a vote.
    """

    answer: str
    citations: tuple[Quoted, ...] = ()
    unanswered: frozenset[int] = frozenset()
    text: str = ""
    cut: bool = False
    gist: str = ""


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
    #: Why the question was not divided, if that was tried in vain: then each part was given the question.
    undivided: str = ""
    parts: tuple[PartResult, ...] = ()
    #: Parts that the weave was shown shortened, for want of room.
    shortened: int = 0
    #: How the parts became one answer: the mode, and what select and vote found.
    combined: dict[str, Any] = field(default_factory=dict)
    said: Said | None = None
    verdict: GateVerdict | None = None
    #: Each answer that stood for a while, with its verdict: as combined, as revised, as a protocol left it.
    drafts: list[tuple[Said, GateVerdict]] = field(default_factory=list)
    #: The verdict on the first answer, if it led to a revision.
    revised: GateVerdict | None = None
    #: The key protocol that was applied or tried.
    protocol: dict[str, Any] | None = None


class Learns(Protocol):
    """Where a mission turns with a message to an intent: the jit of its UVM."""

    async def method_for(
        self, running: Running, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """The method that answers it, made now if need be; None: it is interpreted."""
        ...

    def in_vain(self, holder: UvmObject, selector: str, intent: Intent) -> BatosError | None:
        """Return why the same was tried not long ago and failed, if it was: it is not tried again yet."""
        ...


class Chooses(Protocol):
    """Where a mission turns before it runs an installed method: the lives of its UVM."""

    def is_control(self, mission: str, selector: str) -> bool:
        """Whether this mission interprets the method's intent instead, so that what it contributes is measured."""
        ...

    async def count(self, mission: str, payloads: Iterable[Mapping[str, Any]]) -> None:
        """What a mission used that failed: its thought, which would have told, is gone."""
        ...


class Runs(Protocol):
    """Where generated code runs: the cell of its UVM."""

    async def run(self, program: Program, call: MethodCall, host: Host) -> Outcome:
        """One method, once. MethodFailed, CovenantViolation, CellKilled, CellMissing, and what `host` raises."""
        ...


@dataclass(frozen=True, slots=True)
class Craft:
    """What missions run methods with, who makes and chooses them, and what is configured for who does not say.

    Without a cell no method runs, without a jit every intent is interpreted.
    """

    cell: Runs | None = None
    jit: Learns | None = None
    lives: Chooses | None = None
    install: Install = "never"
    interpret: Interpret = "allow"


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a slot that holds a method or may: what its ledger is told when the mission has ended.

    `revision` is 0 for an intent that was interpreted because there is no method. `calls` and `tokens` (prompts and
    answers) are what it spent of inference, whoever paid for it first; `seconds` is what Ollama thought for it and the
    processor ran in it, without any waiting.
    """

    holder: str
    selector: str
    revision: int
    outcome: Literal["ok", "fault"]
    control: bool
    seconds: float
    tokens: int
    calls: int

    def payload(self, gate_faults: int) -> dict[str, Any]:
        """The contribution ("method", ...): with how many faults the gate found in the mission's answer."""
        shown = {name: getattr(self, name) for name in Use.__dataclass_fields__}
        return {**shown, "seconds": round(self.seconds, 3), "gate_faults": gate_faults}


@dataclass(slots=True)
class Running:
    """The services and the givens of one mind while it thinks; its changing state is in its cycle.

    A mission has one; at effort council each persona thinks as a mind within it, which shares all but its `name`,
    voice and question, writes nothing and dooms nothing.
    """

    id: str
    brief: MissionBrief
    root: Root
    persona: UvmObject
    thought: UvmObject
    route: Route
    voice: Voice
    thinking: Thinking
    session: Session
    events: Events
    #: What all calls of the mission share, without evidence.
    scene: Scene
    passages: tuple[Passage, ...]
    past: Past
    read_at: str
    note: Callable[[str, str | None], None]
    doom: Callable[[], None]
    #: Tokens that a byte of prompt is taken to cost, by model.
    ratios: Mapping[str, float]
    #: What this mission, its earlier attempts among it, decided without being asked.
    decided: Decided
    #: What this mind is asked.
    question: str
    #: The mind's place in sample paths: `brick`, `council`, or `council/brick` within it.
    name: str
    #: Why earlier attempts at the same question failed, nearest first: read from the journal.
    failures: tuple[Mapping[str, Any], ...] = ()
    #: What the mind that this one is a part of recalled; None for the mission's own, which recalls.
    inherited: Evidence | None = None
    #: (holder, selector) of every intent interpreted and every method run.
    methods: list[dict[str, str]] = field(default_factory=list)
    craft: Craft = field(default_factory=Craft)
    #: What was made for this mission while it ran, by the holder's reference and the selector: beside its snapshot.
    generated: dict[tuple[str, str], Method] = field(default_factory=dict)
    #: What was made, waited for or tried, for provenance: {receiver, selector, outcome, calls, tokens, generation}.
    learned: list[dict[str, Any]] = field(default_factory=list)
    #: Tools that are declared with the thought's commit: {selector, intent, trust}.
    forged: list[dict[str, Any]] = field(default_factory=list)
    #: Every use of a method, and of an intent that may become one.
    uses: list[Use] = field(default_factory=list)
    #: What methods wrote into objects that are not the mission's own: {oid, slot, had, former}, oldest first.
    written: list[dict[str, Any]] = field(default_factory=list)
    #: How far that which methods read, recalled and were given is to be trusted, beside the mission's evidence.
    trusts: list[str] = field(default_factory=list)
    #: What methods recalled beside it.
    seen: list[Evidence] = field(default_factory=list)

    @property
    def inner(self) -> bool:
        """Whether this mind is a part of another: its answer is data, judged but neither revised nor finished."""
        return self.inherited is not None

    @property
    def combine(self) -> Combine:
        """How the mission's parts are to become one answer, as its brief asks."""
        policy = self.brief.policy
        return policy.combine if policy is not None else "auto"

    @property
    def jit(self) -> Learns | None:
        """Who makes methods of intents; None: each is interpreted."""
        return self.craft.jit

    @property
    def install(self) -> Install:
        """Whether intents become methods: as configured, or less if the brief says so; it may not ask for more."""
        asked = self.brief.policy.install if self.brief.policy is not None else None
        return min(asked or self.craft.install, self.craft.install, key=ALLOWS.__getitem__)

    @property
    def interpret(self) -> Interpret:
        """Whether an intent without a method is interpreted: as the brief says, else as configured."""
        policy = self.brief.policy
        return (policy and policy.interpret) or self.craft.interpret

    def strict(self) -> Running:
        """The same mind where no intent is interpreted: what it does is noted in this one."""
        return self._under(interpret="never")

    def lenient(self) -> Running:
        """The same mind where an intent without a method is no failure, and nobody's yes is waited for."""
        return self._under(interpret="allow")

    def at_once(self) -> Running:
        """Return the same mind, but one that makes a method before the answer where it may make one."""
        return self._under(install="now") if self.install == "auto" else self

    def _under(self, **chosen: str) -> Running:
        policy = (self.brief.policy or MissionPolicy()).model_copy(update=chosen)
        return replace(self, brief=self.brief.model_copy(update={"policy": policy}))

    @property
    def ratio(self) -> float:
        """Tokens that a byte of this mind's prompts is taken to cost."""
        return self.ratios[self.thinking.model]

    def entered(self, state: str) -> None:
        """A state of this mind's cycle was entered."""
        self.note(state, self.name if self.inner else None)

    def learn_ratio(self) -> None:
        """Take the ratios that this mission measured so far.

        Only where no call is under way, which a part of a mind cannot know: then the sums are the same in every
        attempt, and so are its prompts.
        """
        if not self.inner:
            measured = self.session.measured
            known = self.ratios.items()
            self.ratios = {model: ratio(*measured.get(model, (0, 0)), before) for model, before in known}


class Interprets(Interpreter, Protocol):
    """An interpreter of messages that a mind's parts can be minds for."""

    def within(self, running: Running, cycle: UvmObject) -> Interprets:
        """Make one that interprets for a mind within this one; what its methods write is its own until it is joined."""
        ...

    def joined(self) -> str | None:
        """Lay down what this mind's methods wrote; else what others have changed of what it rested on, in words."""
        ...

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change what missions share in a short commit of its own; durable when it returns."""
        ...

    def voiced(self, running: Running) -> Interprets:
        """One that interprets for the same mind with another voice or other options."""
        ...


def ratio(size: int, tokens: int, otherwise: float) -> float:
    """Tokens a byte as measured, a tenth added: one prompt is denser than another, and a refused call costs more."""
    return max(LEAST_RATIO, 1.1 * tokens / size) if size and tokens else otherwise
