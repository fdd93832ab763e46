"""A message to an object that is declared and does not exist: it is made whole, and the mission begins again."""

from __future__ import annotations

from typing import NoReturn

from batos.brief import Message
from batos.codex.absent import api_of
from batos.errors import GenerationFailed, MessageNotUnderstood
from batos.image import roots, tools
from batos.image.roots import Root
from batos.minds.context import MindContext
from batos.objects.prototype import Found


class Appeared(Exception):
    """The object is there now, and not in this mission's snapshot: it begins again on one that has it."""


def is_absent(root: Root, message: Message) -> bool:
    """Whether a message is for an object that is declared and does not exist.

    MessageNotUnderstood: it is, and its API does not declare the selector; that costs nothing.
    """
    intent = tools.absent(root, message.receiver)
    if intent is None:
        return False
    declared = api_of(intent.text)[0]
    if message.selector not in {each.selector for each in declared}:
        error = MessageNotUnderstood(message.receiver, message.selector)
        error.remedy = f"Its API declares {', '.join(each.signature for each in declared)}."
        raise error
    return True


async def summon(context: MindContext, message: Message) -> NoReturn:
    """Have it made, unless somebody has meanwhile; raises Appeared.

    Nothing else could answer, so policy cannot let it be interpreted. GenerationFailed, CovenantViolation: it was not
    made, or policy lets nothing be. ApprovalNeeded: a person is asked, once for all of it.
    """
    name, holder = message.receiver, context.mission.root[roots.TOOLS]
    intent = tools.absent(context.mission.root, name)
    assert intent is not None
    if context.io.methods.jit is None or context.mind.policy.install == "never":
        raise GenerationFailed(
            f"{name} is declared and does not exist, and policy lets nothing be made",
            remedy="Ask with `--install now` or `--install ask`.",
        )
    await context.io.methods.jit.method_for(context.strict(), holder, Found(holder, intent, 0), name)
    raise Appeared(name)
