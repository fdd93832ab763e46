"""Interpretation of an intent: the one place where a message is answered by the text of an intent."""

from __future__ import annotations

from batos.methods.execution.invocation import Invocation
from batos.methods.execution.resolution import ToIntent
from batos.methods.execution.usage import record_intent
from batos.minds.calls import sample_paths
from batos.minds.parts.interpret import SubQuery, interpret
from batos.minds.results import PartResult, Synthesis


async def interpret_intent(invocation: Invocation[ToIntent], synthesis: Synthesis | None = None) -> PartResult:
    """Return the persona's answer to the text of the message, and record the use of the intent.

    `synthesis` is that of the mind that asks: a protocol's reply is streamed to the user, and the call has the place of
    the intent's kind. Without it a method asks: nothing is streamed, and the call stands at the method's place.
    """
    message, context = invocation.message, invocation.context
    path = sample_paths.call(invocation.path, 0) if synthesis is None else ""
    asked = SubQuery(message.selector, message.intent, message.text, message.number, path)
    work = interpret(invocation.interpreter, context, invocation.evidence, asked, synthesis)
    return await record_intent(invocation, work)
