"""Generation of an object that is declared and does not exist yet, when a mission sends it a message."""

from __future__ import annotations

from typing import NoReturn

from batos.genesis.codex.declared_objects import api_of
from batos.image import roots
from batos.image.roots import Root
from batos.minds.context import MindContext
from batos.objects.method import Intent
from batos.objects.prototype import FoundSlot
from batos.protocol.brief import Message
from batos.protocol.errors import GenerationFailed, MessageNotUnderstood
from batos.records import tools


class Appeared(Exception):
    """Raised when the object exists now, but not in this mission's snapshot: the mission starts again."""


def absent_intent(root: Root, message: Message) -> Intent | None:
    """Return the intent of a message's receiver if it is declared and does not exist; None for any other receiver.

    Raises: MessageNotUnderstood: the object is absent, and its API does not declare the selector; nothing is paid for.
    """
    intent = tools.absent(root, message.receiver)
    if intent is None:
        return None
    declared = api_of(intent.text)[0]
    if message.selector not in {each.selector for each in declared}:
        signatures = ", ".join(each.signature for each in declared)
        raise MessageNotUnderstood(message.receiver, message.selector).advise(f"Its API declares {signatures}.")
    return intent


async def summon(context: MindContext, message: Message, intent: Intent) -> NoReturn:
    """Make the object of this intent, unless another mission has made it meanwhile; then raise Appeared. Never returns.

    Nothing else could answer the message, so the intent is never interpreted.

    Raises: Appeared: the object exists now. GenerationFailed, CovenantViolation: the object was not made, or policy
    forbids it. ApprovalNeeded: a person has to approve the object, once for all its methods.
    """
    name, holder = message.receiver, context.mission.root[roots.TOOLS]
    if context.io.methods.generator is None or context.mind.policy.install == "never":
        raise GenerationFailed(
            f"{name} is declared and does not exist, and policy lets nothing be made",
            remedy="Ask with `--install now` or `--install ask`.",
        )
    await context.io.methods.generator.method_for(context.strict(), holder, FoundSlot(holder, intent, 0), name)
    raise Appeared(name)
