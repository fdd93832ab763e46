"""Interpretation of an intent that a method sends a message to, for which no method is chosen."""

from __future__ import annotations

from batos.errors import ObjectError
from batos.methods.execution.invocation import Invocation, Thought
from batos.methods.execution.resolution import Resolution
from batos.methods.execution.usage import of_intent
from batos.minds.calls import sample_paths
from batos.minds.parts import interpret
from batos.minds.parts.interpret import SubQuery
from batos.objects.method import Intent
from batos.objects.prototype import label


async def thought_of(invocation: Invocation, choice: Resolution) -> Thought:
    """Return the persona's answer to the one text argument of the message. The answer is not streamed to the user.

    Raises: ObjectError: the message has no intent, or has other arguments than one text that is not blank.
    """
    intent, args = choice.intent, (*invocation.args, *invocation.kwargs.values())
    if intent is None or len(args) != 1 or not isinstance(args[0], str) or not args[0].strip():
        raise ObjectError(f"{invocation.selector!r} of {label(invocation.receiver)} is interpreted, and takes one text")
    return await of_intent(invocation, choice, _thought(invocation, intent, args[0]))


async def _thought(invocation: Invocation, intent: Intent, text: str) -> Thought:
    """Ask the model: a protocol to change the text, any other intent to answer it."""
    context, path = invocation.context, sample_paths.call(invocation.path, 0)
    asked = SubQuery(invocation.selector, intent, text, 0, path)
    part = await interpret.interpret(invocation.interpreter, context, invocation.evidence, asked)
    return Thought(part.answer, part.citations, part.known, part.gist)
