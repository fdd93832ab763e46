"""What a message to a method or an intent is answered by: the method, one made now, or the intent, interpreted."""

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
    """The method that answers, or None: then `intent` is interpreted, as the control of `revision` if `control`.

    `intent` is what the slot was declared for; None of a method that no lineage knows.
    """

    method: Method | None
    intent: Intent | None
    revision: int = 0
    control: bool = False
    #: What is sent to it and what it answers depend on this alone.
    kind: IntentKind = "method"


@dataclass(frozen=True, slots=True)
class _Message:
    """A message on its way to behaviour: what was found for it, and what that was declared for."""

    context: MindContext
    receiver: UvmObject
    found: Found
    selector: str
    intent: Intent | None
    args: tuple[Any, ...]

    @property
    def slot(self) -> str:
        """Name the slot to which it goes, as choices are noted."""
        return f"{reference(self.found.holder)} {self.selector}"

    @property
    def free(self) -> bool:
        """Tell whether its intent may be interpreted although there is a method."""
        return self.context.mind.policy.interpret == "allow" and interpretable(self.receiver, self.intent, self.args)

    def method(self, revision: int) -> Method | None:
        """Return that revision of the slot's method, whether or not it is the active one."""
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
    """Choose what answers this message: as this mission has chosen before, else as it chooses now, which is noted.

    GenerationFailed, CovenantViolation, ApprovalNeeded: nothing may, as policy says.
    """
    message = _Message(context, receiver, found, selector, intent_in(found, selector), args)
    answer = _before(message)
    if answer is None:
        choice = await _choose(message)
        # Of several messages that were sent at once the first to be decided decides.
        answer = _before(message)
        if answer is None:
            context.trace.decided.choose(message.slot, choice)
            answer = _as_chosen(message, choice)
    assert answer is not None
    return replace(answer, kind=kind_of(answer.intent, selector))


def _before(message: _Message) -> Resolution | None:
    """Return the answer that this mission, or one that it retries, chose before; None: choose now."""
    decided = message.context.trace.decided
    choice = decided.choice(message.slot) or _retried(message)
    answer = None if choice is None else _as_chosen(message, choice)
    if choice is not None and answer is not None:
        decided.choose(message.slot, choice)
    return answer


def _retried(message: _Message) -> Choice | None:
    """Return what the mission chose that this one retries; a method only while it acts, since people may end it."""
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
    """Choose an installed method, unless this mission compares it with its intent; one made now; or the intent.

    What is drawn holds for all messages of the mission to that slot; one that cannot be interpreted runs the method.
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
    """Whether an intent's text alone could answer this message: somebody says it, and it is about one text.

    What a mind sends with a sub-query is its number.
    """
    about = args[:1] if len(args) == 2 and type(args[1]) is int else args
    if intent is None or not is_spoken(intent) or len(about) != 1:
        return False
    return isinstance(about[0], str) and bool(about[0].strip()) and context_building.is_persona(receiver)
