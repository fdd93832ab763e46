"""The choice of what answers a message: a method, installed or made now, an object that is made first, or an intent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, NoReturn, TypeAlias, TypeVar

from batos.gate.evidence_index import Citation
from batos.image import roots
from batos.memory.evidence import Evidence
from batos.methods.execution.write_buffer import Data, WriteBuffer
from batos.minds import context_building
from batos.minds.context import MindContext, MindInterpreter
from batos.minds.trace import Choice
from batos.objects.method import Intent, IntentKind, Method
from batos.objects.prototype import FoundSlot, UvmObject, label, reference
from batos.protocol.errors import GenerationFailed, MethodFailed, ObjectError
from batos.records.methods import intent_in, is_interpretable, kind_of, lineage_of

#: The reasons for interpreting an intent: there is no method, for comparison with it, or no cell to run it.
INTERPRETED: Final = "interpreted intent"
CONTROL: Final = "interpreted intent, as the control of its method"
CELLLESS: Final = "interpreted intent, because the cell is missing"

#: The values of a slot that a message can be for.
Behaviour: TypeAlias = Method | Intent


@dataclass(frozen=True, slots=True)
class SlotMessage:
    """A message to a slot with behaviour: the receiver, the object that holds the slot, its value, and the arguments.

    A mind that asks one of its parts sends the number of the sub-query behind the text. If `is_numbered`, the
    number is for the kernel alone, and a part's method is called without it.
    """

    receiver: UvmObject
    holder: UvmObject
    behaviour: Behaviour
    selector: str
    args: tuple[Data, ...] = ()
    kwargs: Mapping[str, Data] = field(default_factory=dict)
    is_numbered: bool = False

    @property
    def values(self) -> tuple[Data, ...]:
        """Return the arguments in their order, with and without names."""
        return (*self.args, *self.kwargs.values())

    @property
    def lookup(self) -> FoundSlot:
        """Return the slot as lookup finds it."""
        return FoundSlot(self.holder, self.behaviour, 0)


@dataclass(frozen=True, slots=True)
class ToMethod:
    """A message that a method answers. `intent` is the declaration of the slot; None for a method without a lineage.

    `number` counts the sub-query of a mind from 1; 0 is none.
    """

    receiver: UvmObject
    holder: UvmObject
    selector: str
    method: Method
    intent: Intent | None = None
    args: tuple[Data, ...] = ()
    kwargs: Mapping[str, Data] = field(default_factory=dict)
    number: int = 0

    @property
    def kind(self) -> IntentKind:
        """Return the kind of the slot. The form of the message and of its answer depends on this alone."""
        return kind_of(self.intent, self.selector)

    def without_cell(self) -> ToIntent | None:
        """Return the message as its intent answers it where no cell runs the method; None if the intent cannot."""
        values = (*self.args, *self.kwargs.values())
        if self.intent is None or not _interpretable(self.receiver, self.intent, values):
            return None
        slot = (self.receiver, self.holder, self.selector)
        return ToIntent(*slot, self.intent, str(values[0]), self.number, because=CELLLESS)


@dataclass(frozen=True, slots=True)
class ToIntent:
    """A message that an intent answers by its text; `text` is what the persona is asked.

    `because` is the reason why no method answers. A control has the `revision` of the method that it is compared with.
    """

    receiver: UvmObject
    holder: UvmObject
    selector: str
    intent: Intent
    text: str
    number: int = 0
    revision: int = 0
    because: str = INTERPRETED

    @property
    def kind(self) -> IntentKind:
        """Return the kind of the intent. The form of the answer depends on this alone."""
        return self.intent.kind


ResolvedMessage: TypeAlias = ToMethod | ToIntent


async def resolve(context: MindContext, message: SlotMessage) -> ResolvedMessage:
    """Choose what answers a message: by the mission's earlier choice for the slot, otherwise by a new one.

    A new choice is recorded for the mission.

    Raises: GenerationFailed, CovenantViolation, ApprovalNeeded: policy lets nothing answer. ObjectError: the intent
    answers, and the arguments are not one text.
    """
    asked = _MissionMessage.from_message(context, message)
    chosen = _before(asked)
    if chosen is None:
        fresh = await _choose(asked)
        # Of several concurrent messages the first that is decided decides for all.
        chosen = _before(asked)
        if chosen is None:
            context.trace.decided.choose(asked.slot, fresh.choice)
            chosen = fresh
    return _resolve(asked, chosen)


@dataclass(frozen=True, slots=True)
class _MissionMessage:
    """A message in a mission's context, with the declared intent of its slot, and its arguments without the number."""

    context: MindContext
    message: SlotMessage
    intent: Intent | None
    args: tuple[Data, ...]
    number: int

    @classmethod
    def from_message(cls, context: MindContext, message: SlotMessage) -> _MissionMessage:
        """Return the message with its declared intent; a facet's number is taken out of the arguments."""
        intent, args = intent_in(message.lookup, message.selector), message.args
        if not message.is_numbered or kind_of(intent, message.selector) != "facet":
            return cls(context, message, intent, args, 0)
        number = args[1] if len(args) > 1 else 0
        return cls(context, message, intent, args[:1], number if isinstance(number, int) else 0)

    @property
    def values(self) -> tuple[Data, ...]:
        """Return the arguments in their order, with and without names."""
        return (*self.args, *self.message.kwargs.values())

    @property
    def slot(self) -> str:
        """Return the slot's key in the mission's recorded choices: the holder's reference and the selector."""
        return f"{reference(self.message.holder)} {self.message.selector}"

    @property
    def spoken_intent(self) -> Intent | None:
        """Return the intent that may answer although there is a method; None if policy or the message forbids it."""
        may = self.context.mind.policy.interpret == "allow"
        return self.intent if may and _interpretable(self.message.receiver, self.intent, self.values) else None

    def method(self, revision: int) -> Method | None:
        """Return the slot's method of a revision, active or not; None if there is no such revision."""
        holder, selector = self.message.holder, self.message.selector
        made = self.context.trace.generated.get((reference(holder), selector))
        for method in (made, self.message.behaviour):
            if isinstance(method, Method) and method.revision == revision:
                return method
        there = holder._p_jar is not None and holder._p_oid is not None
        lineage = lineage_of(holder._p_jar.root(), holder, selector) if there else None
        return None if lineage is None else lineage.revisions.get(revision)


class _ChosenBehaviour(NamedTuple):
    """A choice with the behaviour that it means for a message."""

    choice: Choice
    behaviour: Behaviour


def _resolve(asked: _MissionMessage, chosen: _ChosenBehaviour) -> ResolvedMessage:
    """Return the message as the behaviour that was chosen takes it.

    Raises: ObjectError: this is an intent, and the arguments are not one text.
    """
    message, (choice, behaviour) = asked.message, chosen
    slot = (message.receiver, message.holder, message.selector)
    if isinstance(behaviour, Method):
        return ToMethod(*slot, behaviour, asked.intent, asked.args, message.kwargs, asked.number)
    text = asked.values[0] if len(asked.values) == 1 else None
    if not isinstance(text, str) or not text.strip():
        raise ObjectError(
            f"{message.selector!r} of {label(message.receiver)} is an intent and needs its subject, in one text",
            remedy="Send it one text, which is not blank.",
        )
    if choice.how == "control":
        return ToIntent(*slot, behaviour, text, asked.number, choice.revision, CONTROL)
    return ToIntent(*slot, behaviour, text, asked.number)


def _before(asked: _MissionMessage) -> _ChosenBehaviour | None:
    """Return the earlier choice of this mission, or of the mission that it retries; None if there is none."""
    decided = asked.context.trace.decided
    choice = decided.choice(asked.slot) or _retried_choice(asked)
    behaviour = None if choice is None else _chosen_behaviour(asked, choice)
    if choice is None or behaviour is None:
        return None
    decided.choose(asked.slot, choice)
    return _ChosenBehaviour(choice, behaviour)


def _retried_choice(asked: _MissionMessage) -> Choice | None:
    """Return the choice of the mission that this one retries; a method only while its revision is active."""
    choice, value = asked.context.trace.decided.earlier_choice(asked.slot), asked.message.behaviour
    if choice is None or choice.how != "method":
        return choice
    return choice if isinstance(value, Method) and value.revision == choice.revision else None


def _chosen_behaviour(asked: _MissionMessage, choice: Choice) -> Behaviour | None:
    """Return the behaviour that a choice means for this message; None if it is gone or policy forbids it."""
    if choice.how == "control" and asked.spoken_intent is not None:
        return asked.spoken_intent
    if choice.how == "interpreted":
        may = (
            asked.context.mind.policy.interpret == "allow"
            and asked.intent is not None
            and is_interpretable(asked.intent)
        )
        return asked.intent if may else None
    return asked.method(choice.revision) if choice.revision else None


async def _choose(asked: _MissionMessage) -> _ChosenBehaviour:
    """Choose an installed method; otherwise a method made now; otherwise the intent.

    A mission in the control group of an installed method interprets the intent instead. The draw for the control group
    holds for all messages of the mission to that slot; a message that cannot be interpreted runs the method.

    Raises: GenerationFailed: there is no method, and policy forbids interpretation.
    """
    context, message, behaviour = asked.context, asked.message, asked.message.behaviour
    if isinstance(behaviour, Method):
        lifecycle = context.io.methods.lifecycle
        drawn = lifecycle is not None and lifecycle.is_control(context.mission.id, message.selector)
        answer = asked.spoken_intent if drawn else None
        return _ChosenBehaviour(Choice("control" if drawn else "method", behaviour.revision), answer or behaviour)
    if not is_interpretable(behaviour):
        context = context.strict()
    elif not _interpretable(message.receiver, behaviour, asked.values):  # only a method can answer it
        context = context.at_once()
    generator = context.io.methods.generator
    if behaviour.may_learn and generator is not None:
        made = await generator.method_for(context, message.receiver, message.lookup, message.selector, message.values)
        if made is not None:
            context.trace.generated.setdefault((reference(message.holder), message.selector), made)
            return _ChosenBehaviour(Choice("method", made.revision), made)
    if context.mind.policy.interpret == "never":
        what = f"{message.selector!r} of {label(message.receiver)}"
        raise GenerationFailed(
            f"{what} has no method, and policy lets no intent be interpreted",
            remedy="Allow interpretation (`interpret`), or let it become a method (`install`).",
        )
    return _ChosenBehaviour(Choice("interpreted"), behaviour)


def _interpretable(receiver: UvmObject, intent: Intent | None, args: Sequence[Data]) -> bool:
    """Test if an intent alone could answer this message: a persona speaks it, and the only argument is a text."""
    if intent is None or not is_interpretable(intent) or len(args) != 1:
        return False
    return isinstance(args[0], str) and bool(args[0].strip()) and context_building.is_persona(receiver)


#: The most methods that may be nested by messages.
DEEPEST: Final = 64
#: The most messages of an invocation and all that it causes; the cell may allow a single run fewer.
MOST_SENDS: Final = 2_000
#: The most lines that they may log together, and the most characters of a line.
MOST_LINES: Final = 100
LONGEST_LINE: Final = 2_000


@dataclass(slots=True)
class InvocationLimits:
    """The use of shared limits so far, by an invocation and all that it causes: messages sent, log lines, seconds."""

    sends: int = 0
    lines: int = 0
    #: CPU seconds in the methods themselves, of the runs whose writes were merged.
    seconds: float = 0.0

    def send(self) -> None:
        """Count one more message. Raises: MethodFailed: more than MOST_SENDS were sent."""
        self.sends += 1
        if self.sends > MOST_SENDS:
            raise MethodFailed(
                f"a method and those that it sent messages to sent more than {MOST_SENDS:,}",
                remedy="Make it do more in one message, or fewer of them.",
            )

    def log(self) -> bool:
        """Count one more line, and return True if it may be logged: at most MOST_LINES may."""
        self.lines += 1
        return self.lines <= MOST_LINES

    def spend(self, seconds: float) -> None:
        """Add the CPU seconds of a run whose writes were merged."""
        self.seconds += seconds


#: The type of the message: one to a method, or one to an intent.
To = TypeVar("To", bound=ResolvedMessage)


@dataclass(frozen=True, slots=True)
class Invocation(Generic[To]):
    """A message to a method or an intent, with everything that is needed to answer it.

    `path` is its place in sample paths, and `trust` the trust class of the message. `below` is the write buffer of the
    method that sent it. `mind` is the write buffer of the mind; None means the mission's own mind, whose methods write
    into the image. `depth` counts the nested methods, itself included.
    """

    context: MindContext
    interpreter: MindInterpreter
    message: To
    path: str
    evidence: Evidence
    trust: str
    below: WriteBuffer | None = None
    mind: WriteBuffer | None = None
    depth: int = 1
    limits: InvocationLimits = field(default_factory=InvocationLimits)


@dataclass(frozen=True, slots=True)
class Thought:
    """An answer of the model to a method, with its citations; `is_known` is False if it says that nothing was found."""

    answer: str
    citations: tuple[Citation, ...] = ()
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class InvocationResult:
    """The result of an invocation: data, which may hold UvmObjects, the model's answers on the way, and the trust
    class.
    """

    value: Data
    thoughts: tuple[Thought, ...] = ()
    trust: str = "model"
    #: CPU seconds in the method itself.
    seconds: float = 0.0


class Appeared(Exception):
    """Raised when the object exists now, but not in this mission's snapshot: the mission starts again."""


async def summon(context: MindContext, name: str, intent: Intent) -> NoReturn:
    """Make the object of this intent, unless another mission has made it meanwhile; then raise Appeared. Never returns.

    Nothing else could answer a message to it, so the intent is never interpreted.

    Raises: Appeared: the object exists now. GenerationFailed, CovenantViolation: the object was not made, or policy
    forbids it. ApprovalNeeded: a person has to approve the object, once for all its methods.
    """
    holder = context.mission.root[roots.TOOLS]
    if context.io.methods.generator is None or context.mind.policy.install == "never":
        raise GenerationFailed(
            f"{name} is declared and does not exist, and policy lets nothing be made",
            remedy="Ask with `--install now` or `--install ask`.",
        )
    await context.io.methods.generator.method_for(context.strict(), holder, FoundSlot(holder, intent, 0), name)
    raise Appeared(name)
