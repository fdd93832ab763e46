"""What a message to a method or an intent is answered by: the method, one made now, or the intent, interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from batos.cognition import preparing
from batos.cognition.intents import intent_in, is_spoken
from batos.cognition.running import Running
from batos.errors import GenerationFailed
from batos.objects.method import Intent, Method
from batos.objects.prototype import Found, UvmObject, label, reference


@dataclass(frozen=True, slots=True)
class Chosen:
    """The method that answers, or None: then `intent` is interpreted, as the control of `revision` if `control`.

    `intent` is what the slot was declared for; None of a method that no lineage knows.
    """

    method: Method | None
    intent: Intent | None
    revision: int = 0
    control: bool = False


class _Given(NamedTuple):
    """What a message is: its selector, what that was declared for, and its arguments."""

    selector: str
    intent: Intent | None
    args: tuple[Any, ...]


async def chosen(
    running: Running, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
) -> Chosen:
    """What answers this message. GenerationFailed, CovenantViolation, ApprovalNeeded: nothing may, as policy says."""
    intent = intent_in(found, selector)
    made = running.generated.get((reference(found.holder), selector))
    if made is not None:
        return Chosen(made, intent, made.revision)
    if isinstance(found.value, Method):
        return _installed(running, receiver, found.value, _Given(selector, intent, args))
    assert intent is not None
    if not is_spoken(intent):
        running = running.strict()
    if intent.may_learn and running.jit is not None:
        made = await running.jit.method_for(running, receiver, found, selector, args)
        if made is not None:
            running.generated.setdefault((reference(found.holder), selector), made)
            return Chosen(made, intent, made.revision)
    if running.interpret == "never":
        raise GenerationFailed(
            f"{selector!r} of {label(receiver)} has no method, and policy lets no intent be interpreted",
            remedy="Allow interpretation (`interpret`), or let it become a method (`install`).",
        )
    return Chosen(None, intent)


def _installed(running: Running, receiver: UvmObject, method: Method, given: _Given) -> Chosen:
    """An installed method runs, unless this mission is to interpret its intent for comparison, and can."""
    lives, intent = running.craft.lives, given.intent
    could = lives is not None and running.interpret == "allow" and interpretable(receiver, intent, given.args)
    if could and lives is not None and lives.is_control(running.id, given.selector):
        return Chosen(None, intent, method.revision, control=True)
    return Chosen(method, intent, method.revision)


def interpretable(receiver: UvmObject, intent: Intent | None, args: Sequence[Any]) -> bool:
    """Whether an intent's text alone could answer this message: somebody says it, and it is about one text.

    What a mind sends with a sub-query is its number.
    """
    about = args[:1] if len(args) == 2 and type(args[1]) is int else args
    if intent is None or not is_spoken(intent) or len(about) != 1:
        return False
    return isinstance(about[0], str) and bool(about[0].strip()) and preparing.is_persona(receiver)
