"""A protocol that makes a tool: from an answer one decision, from that an intent, and of it a method that stays.

docs/tools.md tells the whole. The intent is declared with the commit of the thought that wished for it and not before,
and its method is made when the answer is out: a mission that fails leaves nothing, and none waits for its gadget.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import BaseModel, Field

from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.records import least_trust
from batos.inference.decisions.schema import Decision
from batos.minds import prompt, provenance
from batos.minds.calls import sample_paths
from batos.minds.calls.questions import Question, infer
from batos.minds.context import MethodMaker, MindContext, MindInterpreter
from batos.minds.results import Synthesis
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, is_reserved, own_slots, reference
from batos.protocol.errors import GenerationFailed
from batos.protocol.mission_documents import ForgedDocument, LearntDocument, WishDocument
from batos.records import methods, tool_declarations, wishes

#: Characters of a tool's name without the `_` at its end, and most inputs that it may have.
NAME, INPUTS = 40, 4
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")
_NOT: Final = re.compile(r"[^a-z0-9]+")


class Tool(BaseModel):
    """The description of a tool: a model's wish, which becomes an intent only if it is valid."""

    inputs: Annotated[
        list[Annotated[str, Field(max_length=NAME)]],
        Field(max_length=INPUTS, description="the name of each input, one plain word, such as `text`"),
    ]
    name: Annotated[str, Field(max_length=NAME, description="what it is called, as in `seconds_of_duration`")]
    purpose: Annotated[
        str, Field(max_length=400, description="what it does with its inputs and what it answers, in plain words")
    ]
    worth: Annotated[bool, Field(description="whether this answer did anything that a small method could do again")]


TOOL: Final = Decision(Tool)


@dataclass(frozen=True, slots=True)
class ForgedTool:
    """The result of toolmaking: `tool` for the mission's provenance, `line` for the reader of the answer."""

    tool: ForgedDocument
    line: str


async def forge(
    interpreter: MindInterpreter, context: MindContext, synthesis: Synthesis, declared: tuple[str, Intent]
) -> ForgedTool | None:
    """Make a tool of the answer that stands, by a protocol (its slot and intent); None: the answer holds none.

    GenerationFailed: what the model wished for can be no tool, it failed not long ago, or policy lets nothing be.
    """
    slot, protocol = declared
    generator = context.io.methods.generator
    if generator is None or context.mind.policy.install == "never":
        raise GenerationFailed("policy lets no tool be made", remedy="Ask with `--install now` or `--install ask`.")
    task = prompt.forge_task(context.mind.voice, protocol.name, protocol.text, synthesis.standing.answer.answer)
    question = Question(sample_paths.protocol(context.mind.name, slot), task)
    wish, replied = await infer(interpreter, context, synthesis.evidence, question, TOOL)
    synthesis.evidence = replied.evidence
    if not wish.worth:
        return None
    selector, intent = intent_of(wish, context.mind.voice.name)
    trust = least_trust(provenance.lineage_trust(synthesis.recalled), *context.trace.trusts)
    return _make_tool(context, generator, selector, intent, trust)


def intent_of(wish: Tool, persona: str) -> tuple[str, Intent]:
    """Return the selector and the intent that a wish of this persona means; GenerationFailed if it can be none."""
    name = _NOT.sub("_", wish.name.casefold()).strip("_")
    selector = f"{name}_"
    # A single line for each, as in the request to a coder, where a further line could be a heading.
    purpose, title = " ".join(wish.purpose.split()), " ".join(wish.name.split())
    if not _NAME.fullmatch(name) or not f"{title}{purpose}".isprintable() or not purpose or _barred(selector):
        raise GenerationFailed(f"{wish.name[:NAME]!r} can be no tool", remedy="Ask for it by a plain name.")
    inputs = [_NOT.sub("_", each.casefold()).strip("_") for each in wish.inputs]
    for each in inputs:
        if not each.isidentifier() or keyword.iskeyword(each) or each == "self" or _barred(each):
            raise GenerationFailed(f"{each!r} can be no input of a tool", remedy="Ask for plain inputs.")
    if len(set(inputs)) < len(inputs):
        raise GenerationFailed("two inputs of the tool have one name", remedy="Ask for other names.")
    signature = f"{selector}({', '.join(('self', *inputs))})"
    return selector, Intent(purpose, signature, may_learn=True, name=title, inspiration=persona, kind="tool")


def _barred(name: str) -> bool:
    policy = SHIPPED
    return bool(is_reserved(name) or policy.protected_pattern.search(name) or policy.kernel_pattern.search(name))


def _make_tool(context: MindContext, generator: MethodMaker, selector: str, intent: Intent, trust: str) -> ForgedTool:
    """Return the tool that is already there, or declare one with this mission's commit and make it afterwards."""
    holder: UvmObject = context.mission.root[roots.TOOLS]
    if not tool_declarations.is_free(holder, selector, intent):
        raise GenerationFailed(
            f"{selector!r} is the name of something else already",
            remedy="`batos tools` lists the tools that there are.",
        )
    told = ForgedDocument(
        object=roots.TOOLS, selector=selector, signature=intent.signature, purpose=intent.text, outcome="made"
    )
    what = intent.text if intent.text.endswith((".", "!", "?")) else f"{intent.text}."
    line = f"Forged: `{selector}`: {what} Call it: `batos send {roots.TOOLS} {_call(selector, intent)}`."
    if isinstance(own_slots(holder).get(selector), Method):
        return ForgedTool(told, line)
    failure = generator.recent_failure(holder, selector, intent)
    if failure is not None:
        raise GenerationFailed(f"the tool {selector!r} was not made: {failure.message}") from failure
    context.trace.forged.append({"selector": selector, "intent": intent.as_dict(), "trust": trust})
    asks = context.mind.policy.install == "ask" or trust not in tool_declarations.OWN
    wish = WishDocument(
        holder=reference(holder),
        selector=selector,
        intent=methods.digest_of(intent),
        arguments=[],
        forged=True,
        asks=asks,
    )
    if all(each.get("wish") != wish for each in context.trace.learned):
        context.trace.learned.append(
            LearntDocument(receiver=roots.TOOLS, selector=selector, outcome=wishes.LATER, calls=0, tokens=0, wish=wish)
        )
    then = " and waits for your approval then: `batos approvals`" if asks else ""
    return ForgedTool({**told, "outcome": wishes.LATER}, f"{line} It is made when this answer is out{then}.")


def _call(selector: str, intent: Intent) -> str:
    inside = intent.signature[len(selector) + 1 : -1].split(", ")[1:]
    return " ".join((selector, *(each.upper() for each in inside)))
