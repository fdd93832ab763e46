"""The context of a mind: its mission, the services that it uses, the mind itself, and the trace that it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias

from batos.agency.api_transport import ApiSender
from batos.agency.look_ups.granted import LookUps
from batos.agency.toolbox import Toolbox
from batos.approvals.desk import Approvals
from batos.cell.cell import MethodCall, Outcome
from batos.cell.program import Program
from batos.cell.values import Host
from batos.concurrency.jobs import Signal
from batos.events import Events
from batos.genesis.state_steps import MachineSteps
from batos.image.roots import Root
from batos.inference.decide import REASONING_TOKENS, ReplyShape
from batos.inference.outside_calls import OutsideCalls
from batos.inference.schema import Mode
from batos.inference.session import Session
from batos.memory.evidence import Evidence, Passage, Past
from batos.memory.search.recollection import Recollection
from batos.minds.effect_orders import EffectOrder
from batos.minds.prompt import PersonaPrompt, SharedContext
from batos.minds.trace import Trace
from batos.objects.method import Intent, Method
from batos.objects.prototype import FoundSlot, Interpreter, UvmObject
from batos.protocol.brief import Combine, Install, Interpret, MissionBrief
from batos.protocol.errors import BatosError
from batos.protocol.event_payloads import MISSION_RULE, MissionRule
from batos.protocol.evidence_documents import RuleDocument
from batos.protocol.method_documents import UsePayload
from batos.protocol.motion_documents import RatesDocument
from batos.routing.router import Route

#: Returns the rates of the mind itself that a user may be told, with the days of the metric if the last one is True.
Rates: TypeAlias = Callable[[Root, str, bool], RatesDocument]

#: Gives tools to a mission; None: it has none of that kind.
MakesToolbox: TypeAlias = Callable[["MindContext"], Toolbox | None]

#: The rank of each policy of installing; a brief may choose among equals.
ALLOWS: Final[Mapping[Install, int]] = {"auto": 2, "now": 2, "ask": 1, "never": 0}


@dataclass(frozen=True, slots=True)
class Thinking:
    """With which model and options a persona thinks."""

    model: str
    options: Mapping[str, Any]
    mode: Mode
    thinks: bool = False

    @property
    def window(self) -> int:
        """Return the context window in tokens."""
        return int(self.options["num_ctx"])

    def answer_tokens(self, decision: ReplyShape[Any]) -> int:
        """Return `num_predict` for a decision: the codex's, or what it can need if that is more."""
        return max(self.needed_tokens(decision), int(self.options.get("num_predict", 0)))

    def needed_tokens(self, decision: ReplyShape[Any]) -> int:
        """Return the tokens that a decision can need, by letters: at most half of the window."""
        return min(decision.in_mode(self.mode).num_predict, self.window // 2)

    def reserved_tokens(self, decision: ReplyShape[Any]) -> int:
        """Return the tokens of the window that the prompt leaves free, for the answer and for reasoning before it."""
        reasoning = REASONING_TOKENS if self.mode == "two_phase" else 0
        return min(self.needed_tokens(decision) + reasoning, 3 * self.window // 4)


class MethodMaker(Protocol):
    """Makes the method for a message to an intent: the generator, which stands above minds."""

    async def method_for(
        self, context: MindContext, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """Return the method that answers a message, made now if needed; None if its intent is to be interpreted."""
        ...

    def recent_failure(self, holder: UvmObject, selector: str, intent: Intent) -> BatosError | None:
        """Return why the same was tried not long ago and failed, if it was: it is not tried again yet."""
        ...


class MethodChooser(Protocol):
    """Chooses between an installed method and its control: the lifecycle of methods, which stands above minds."""

    def is_control(self, mission: str, selector: str) -> bool:
        """Test if this mission interprets the method's intent instead, so that the method's effect is measured."""
        ...

    async def count(self, mission: str, payloads: Iterable[UsePayload]) -> None:
        """Record the uses of a failed mission, whose thought cannot contribute them."""
        ...


class MethodCell(Protocol):
    """Runs generated code: the cell of the UVM."""

    async def run(self, program: Program, call: MethodCall, host: Host) -> Outcome:
        """Run a method once.

        Raises: MethodFailed, CovenantViolation, CellKilled, CellMissing, and everything that `host` raises.
        """
        ...


class Meanings(Protocol):
    """Gives the vectors of a few texts, the same ones in every attempt of a mission."""

    @property
    def digest(self) -> str:
        """Return the digest of the model that gives them; "" if there is none."""
        ...

    async def vectors(self, texts: Sequence[str], path: str) -> Sequence[Sequence[float]] | None:
        """Return a vector for each text, or None where no embedder gives any; `path` is their place in the journal."""
        ...


@dataclass(frozen=True, slots=True)
class MethodRuntime:
    """The services by which missions run methods, make them and choose them, and the configured policies.

    Without a cell no method runs; without a generator every intent is interpreted.
    """

    cell: MethodCell | None = None
    generator: MethodMaker | None = None
    lifecycle: MethodChooser | None = None
    install: Install = "never"
    interpret: Interpret = "allow"
    #: Sends requests to granted APIs; None: nothing is reached.
    apis: ApiSender | None = None
    #: Asks a person; None: nobody is asked.
    desk: Approvals | None = None


@dataclass(frozen=True, slots=True)
class MissionFacts:
    """The facts of a mission from its beginning: the same for all of its minds, and never replaced."""

    id: str
    brief: MissionBrief
    route: Route
    root: Root
    #: The object that is committed with the answer.
    thought: UvmObject
    past: Past
    passages: tuple[Passage, ...]
    #: The parts that all calls of the mission share, without evidence.
    shared: SharedContext
    read_at: str
    #: The steps of the machine's states, as they were when the mission began.
    steps: MachineSteps
    #: The order in the question to write something down or to send it; None: it has none, or names no grant.
    order: EffectOrder | None = None
    #: Failures of earlier attempts at the same question, nearest first, from the journal.
    failures: tuple[Mapping[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class MissionIO:
    """The services that the minds of one mission share, never replaced.

    `note` is told each state that is entered and the mind's path, None for the mission's own; `doom` keeps anything of
    the thought from being committed.
    """

    session: Session
    events: Events
    note: Callable[[str, str | None], None]
    doom: Callable[[], None]
    #: Given when a mission is accepted, for those who make way.
    asked: Signal[[str]]
    #: The calls of the mission to the world.
    outside: OutsideCalls
    methods: MethodRuntime = field(default_factory=MethodRuntime)
    #: None: there is no embedder, and words alone decide what carries an answer.
    meanings: Meanings | None = None
    #: Recalls from the documents of the image; None: nothing is remembered.
    recollection: Recollection | None = None
    #: None: the mind knows no figures of itself.
    rates: Rates | None = None
    #: None: nothing can be looked up.
    look_ups: LookUps | None = None
    #: Functions that give the mission tools beside its look-ups.
    toolboxes: Sequence[MakesToolbox] = ()


@dataclass(frozen=True, slots=True)
class MindPolicy:
    """The permitted use of intents, and the way to combine parts: as the brief asks and as configured."""

    combine: Combine = "auto"
    install: Install = "never"
    interpret: Interpret = "allow"

    @classmethod
    def from_brief(cls, brief: MissionBrief, configured: MethodRuntime, combine: Combine = "auto") -> MindPolicy:
        """Read the brief's policy; a brief may install less than is configured, never more.

        Where the brief leaves open how parts are combined, `combine` says it.
        """
        asked = brief.policy
        if asked is None:
            return cls(combine, configured.install, configured.interpret)
        combine = combine if asked.combine == "auto" else asked.combine
        install = min(asked.install or configured.install, configured.install, key=ALLOWS.__getitem__)
        return cls(combine, install, asked.interpret or configured.interpret)


@dataclass(frozen=True, slots=True)
class Mind:
    """A persona with its model and its question: the only part of a context that is ever replaced."""

    #: Its place in sample paths: `brick`, `council`, or `council/brick` within it.
    name: str
    persona: UvmObject
    voice: PersonaPrompt
    thinking: Thinking
    effort: str
    #: The question to this mind.
    question: str
    policy: MindPolicy = field(default_factory=MindPolicy)
    #: Evidence recalled by the mind that this one is a part of; None for the mission's own mind, which recalls.
    inherited: Evidence | None = None
    #: The persona that thinks beside this one, where two do below a council; `voice` names both then.
    second: UvmObject | None = None

    @property
    def inner(self) -> bool:
        """Test if this mind is a part of another: its answer is data, judged but neither revised nor finished."""
        return self.inherited is not None

    @property
    def is_council(self) -> bool:
        """Test if this mind's parts are personas, each of which runs a cycle of its own."""
        return self.effort == "council"

    @property
    def is_duet(self) -> bool:
        """Test if this mind's parts are two personas, each of which answers in one call."""
        return self.effort == "cycle" and self.second is not None

    @property
    def has_personas(self) -> bool:
        """Test if this mind's parts are personas."""
        return self.is_council or self.is_duet

    @property
    def parts_vote(self) -> bool:
        """Test if each part of this mind gives a vote."""
        return self.policy.combine == "vote" and not self.inner


@dataclass(frozen=True, slots=True)
class MindContext:
    """The context of one mind of a mission, in four parts; its changing state is in its cycle.

    A mission has one. At effort council each persona thinks as a mind within it, which shares all but `mind`, writes
    nothing and dooms nothing.
    """

    mission: MissionFacts
    io: MissionIO
    mind: Mind
    trace: Trace

    def with_mind(self, **changes: Any) -> MindContext:
        """Return this context with another mind, or with this one changed."""
        return replace(self, mind=replace(self.mind, **changes))

    def asking(self, question: str) -> MindContext:
        """Return this context with another question."""
        return self.with_mind(question=question)

    def strict(self) -> MindContext:
        """Return this context where no intent is interpreted; all that it does is noted in the same trace."""
        return self._under(interpret="never")

    def at_once(self) -> MindContext:
        """Return this context, but one that makes a method before the answer where it may make one."""
        return self._under(install="now") if self.mind.policy.install == "auto" else self

    def _under(self, **chosen: Any) -> MindContext:
        return self.with_mind(policy=replace(self.mind.policy, **chosen))

    @property
    def ratio(self) -> float:
        """Return the tokens that a byte of this mind's prompts is taken to cost."""
        return self.trace.ratios[self.mind.thinking.model]

    def decide_by_rule(self, path: str, decision: str, why: str) -> None:
        """Tell and note that a rule made the decision of the call at `path`: the replies were of no use, or it was not
        asked.
        """
        decided = RuleDocument(path=path, decision=decision, why=why)
        if decided not in self.trace.rules:  # an attempt of a mind that thinks once more tells the same again
            self.trace.rules.append(decided)
        told = MissionRule(mission=self.mission.id, path=path, decision=decision, why=why)
        self.io.events.emit(MISSION_RULE, told)

    def doom(self) -> None:
        """Keep the thought from being committed; a mind within another dooms nothing, since its parts are joined."""
        if not self.mind.inner:
            self.io.doom()

    def learn_ratio(self) -> None:
        """Take the ratios that this mission measured so far.

        Only where no call is under way, which a part of a mind cannot know: then the sums are the same in every
        attempt, and so are its prompts.
        """
        if not self.mind.inner:
            self.trace.learn_ratios(self.io.session.measured)


class MindInterpreter(Interpreter, Protocol):
    """An interpreter of messages that a mind's parts can be minds for."""

    def within(self, context: MindContext, cycle: UvmObject) -> MindInterpreter:
        """Make one that interprets for a mind within this one; what its methods write is its own until it is joined."""
        ...

    def merge_writes(self) -> str | None:
        """Lay down what this mind's methods wrote; else what others have changed of what it rested on, in words."""
        ...

    async def derive(self, change: Callable[[Any], Any]) -> Any:
        """Change what missions share in a short commit of its own; durable when it returns."""
        ...

    def in_voice(self, context: MindContext) -> MindInterpreter:
        """Return an interpreter for the same mind with another voice or other options."""
        ...
