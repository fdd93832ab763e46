"""The choice of the answer to a message: an installed method, a method made now, or the interpreted intent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from batos.errors import GenerationFailed
from batos.image.intents import intent_in, is_spoken, kind_of
from batos.image.methods import lineage_of
from batos.minds import context_building
from batos.minds.choices import Choice
from batos.minds.context import MindContext
from batos.objects.method import Intent, IntentKind, Method
from batos.objects.prototype import Found, UvmObject, label, reference


@dataclass(frozen=True, slots=True)
class Resolution:
    """The chosen answer: `method`, or None if `intent` is interpreted; with `control`, as the control of `revision`.

    `intent` is the declaration of the slot; None for a method without a lineage.
    """

    method: Method | None
    intent: Intent | None
    revision: int = 0
    control: bool = False
    #: The form of the message and of its answer depends on this alone.
    kind: IntentKind = "method"


@dataclass(frozen=True, slots=True)
class _Message:
    """A message to a slot with behaviour, with the value that lookup found and the slot's declared intent."""

    context: MindContext
    receiver: UvmObject
    found: Found
    selector: str
    intent: Intent | None
    args: tuple[Any, ...]

    @property
    def slot(self) -> str:
        """Return the slot's key in the mission's recorded choices: the holder's reference and the selector."""
        return f"{reference(self.found.holder)} {self.selector}"

    @property
    def free(self) -> bool:
        """Test if the intent may be interpreted although there is a method."""
        return self.context.mind.policy.interpret == "allow" and interpretable(self.receiver, self.intent, self.args)

    def method(self, revision: int) -> Method | None:
        """Return the slot's method of a revision, active or not; None if there is no such revision."""
        holder = self.found.holder
        made = self.context.trace.generated.get((reference(holder), self.selector))
        for method in (made, self.found.value):
            if isinstance(method, Method) and method.revision == revision:
                return method
        there = holder._p_jar is not None and holder._p_oid is not None
        lineage = lineage_of(holder._p_jar.root(), holder, self.selector) if there else None
        return None if lineage is None else lineage.revisions.get(revision)


async def resolve(
    context: MindContext, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
) -> Resolution:
    """Choose the answer to a message: the mission's earlier choice for the slot, otherwise a new one.

    A new choice is recorded for the mission.

    Raises: GenerationFailed, CovenantViolation, ApprovalNeeded: policy lets nothing answer.
    """
    message = _Message(context, receiver, found, selector, intent_in(found, selector), args)
    answer = _before(message)
    if answer is None:
        choice = await _choose(message)
        # Of several concurrent messages the first that is decided decides for all.
        answer = _before(message)
        if answer is None:
            context.trace.decided.choose(message.slot, choice)
            answer = _as_chosen(message, choice)
    assert answer is not None
    return replace(answer, kind=kind_of(answer.intent, selector))


def _before(message: _Message) -> Resolution | None:
    """Return the earlier choice of this mission, or of the mission that it retries; None if there is none."""
    decided = message.context.trace.decided
    choice = decided.choice(message.slot) or _retried_choice(message)
    answer = None if choice is None else _as_chosen(message, choice)
    if choice is not None and answer is not None:
        decided.choose(message.slot, choice)
    return answer


def _retried_choice(message: _Message) -> Choice | None:
    """Return the choice of the mission that this one retries; a method only while its revision is active."""
    choice, value = message.context.trace.decided.retried(message.slot), message.found.value
    if choice is None or choice.how != "method":
        return choice
    return choice if isinstance(value, Method) and value.revision == choice.revision else None


def _as_chosen(message: _Message, choice: Choice) -> Resolution | None:
    """Return the answer that a choice means for this message; None if it is gone or policy forbids it."""
    intent = message.intent
    method = message.method(choice.revision) if choice.revision else None
    if choice.how == "control" and message.free:
        return Resolution(None, intent, choice.revision, control=True)
    if choice.how == "interpreted":
        may = message.context.mind.policy.interpret == "allow" and intent is not None and is_spoken(intent)
        return Resolution(None, intent) if may else None
    return None if method is None else Resolution(method, intent, method.revision)


async def _choose(message: _Message) -> Choice:
    """Choose an installed method; otherwise a method made now; otherwise the intent.

    A mission in the control group of an installed method interprets the intent instead. The draw for the control group
    holds for all messages of the mission to that slot; a message that cannot be interpreted runs the method.

    Raises: GenerationFailed: there is no method, and policy forbids interpretation.
    """
    context, intent, value = message.context, message.intent, message.found.value
    if isinstance(value, Method):
        lives = context.io.methods.lives
        drawn = lives is not None and lives.is_control(context.mission.id, message.selector)
        return Choice("control" if drawn else "method", value.revision)
    assert intent is not None
    if not is_spoken(intent):
        context = context.strict()
    elif not interpretable(message.receiver, intent, message.args):  # only a method can answer it
        context = context.at_once()
    jit = context.io.methods.jit
    if intent.may_learn and jit is not None:
        made = await jit.method_for(context, message.receiver, message.found, message.selector, message.args)
        if made is not None:
            context.trace.made(reference(message.found.holder), message.selector, made)
            return Choice("method", made.revision)
    if context.mind.policy.interpret == "never":
        what = f"{message.selector!r} of {label(message.receiver)}"
        raise GenerationFailed(
            f"{what} has no method, and policy lets no intent be interpreted",
            remedy="Allow interpretation (`interpret`), or let it become a method (`install`).",
        )
    return Choice("interpreted")


def interpretable(receiver: UvmObject, intent: Intent | None, args: Sequence[Any]) -> bool:
    """Test if an intent alone could answer this message: a persona speaks it, and the only argument is a text.

    A second argument that is a number is allowed: a mind sends the number of its sub-query so.
    """
    about = args[:1] if len(args) == 2 and type(args[1]) is int else args
    if intent is None or not is_spoken(intent) or len(about) != 1:
        return False
    return isinstance(about[0], str) and bool(about[0].strip()) and context_building.is_persona(receiver)
