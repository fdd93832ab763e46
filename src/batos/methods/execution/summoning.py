"""Objects that are declared and do not exist: a message to one makes it, whoever sends the message."""

from __future__ import annotations

from typing import NoReturn

from batos.image import roots
from batos.minds.context import MindContext
from batos.objects.method import Intent
from batos.objects.prototype import FoundSlot
from batos.protocol.errors import GenerationFailed


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
