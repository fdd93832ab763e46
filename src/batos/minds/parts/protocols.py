"""Key protocols: at most one is applied to a cycle's answer; one of them makes a tool.

docs/tools.md tells the whole. The intent of a tool is declared with the commit of the thought that wished for it and
not before, and its method is made when the answer is out: a mission that fails leaves nothing, and none waits for its
gadget.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import BaseModel, Field

from batos.gate.checks import GateFault
from batos.gate.ground import Ground
from batos.genesis.codex import declarations
from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.records import least_trust
from batos.inference.cost import is_spent
from batos.inference.schema import Decision
from batos.minds import prompt, provenance
from batos.minds.calls import answers, decisions, questions
from batos.minds.calls.questions import Question, infer
from batos.minds.combine import combination
from batos.minds.context import MethodMaker, MindContext, MindInterpreter
from batos.minds.parts.delegate import FATAL
from batos.minds.results import Synthesis
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, is_reserved, lookup, own_slots, reference, send
from batos.protocol.errors import BatosError, GenerationFailed, ObjectError, Refused
from batos.protocol.mission_documents import ForgedDocument, LearntDocument, ProtocolDocument, WishDocument
from batos.records import methods, tool_declarations, tools
from batos.records.methods import intent_of

#: Characters of a tool's name without the `_` at its end, and most inputs that it may have.
NAME, INPUTS = 40, 4
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")
_NOT: Final = re.compile(r"[^a-z0-9]+")


class WishedTool(BaseModel):
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


TOOL: Final = Decision(WishedTool)


@dataclass(frozen=True, slots=True)
class ForgedTool:
    """The result of toolmaking: `tool` for the mission's provenance, `line` for the reader of the answer."""

    tool: ForgedDocument
    line: str


async def forge_tool(
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
    question = Question(questions.protocol_path(context.mind.name, slot), task)
    wish, replied = await infer(interpreter, context, synthesis.evidence, question, TOOL)
    synthesis.evidence = replied.evidence
    if not wish.worth:
        return None
    selector, intent = intent_of_tool(wish, context.mind.voice.name)
    trust = least_trust(
        provenance.lineage_trust(synthesis.recalled), context.mission.brief.system_trust, *context.trace.trusts
    )
    return _make_tool(context, generator, selector, intent, trust)


def intent_of_tool(wish: WishedTool, persona: str) -> tuple[str, Intent]:
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
            LearntDocument(receiver=roots.TOOLS, selector=selector, outcome=tools.LATER, calls=0, tokens=0, wish=wish)
        )
    then = " and waits for your approval then: `batos approvals`" if asks else ""
    return ForgedTool({**told, "outcome": tools.LATER}, f"{line} It is made when this answer is out{then}.")


def _call(selector: str, intent: Intent) -> str:
    inside = intent.signature[len(selector) + 1 : -1].split(", ")[1:]
    return " ".join((selector, *(each.upper() for each in inside)))


#: The reason why no tool is made by who asked for one call.
_ONE_CALL: Final = Refused("a reflex is one call, and a tool another", remedy="Ask without --effort reflex.")
#: The reason for which an answer is withdrawn while a protocol changes it.
CHANGING: Final = "a key protocol changes it"


def choose(context: MindContext, synthesis: Synthesis) -> str | None:
    """Return the slot of the protocol to apply; None for a part of a council, and voices that are kept apart.

    The protocols that the question is meant for go first, the likeliest first; then those that have no exemplars.
    The conditions of `when` must hold. A protocol with neither exemplars nor conditions is never chosen. At a reflex it
    is one that makes a tool of what the question asks for, or none.
    """
    brief = context.mission.brief
    if context.mind.inner or combination.are_standing(synthesis) or brief.answer_schema or context.trace.told:
        return None
    evidence = bool(synthesis.recalled.passages)
    answered = sum(1 for part in synthesis.parts if not part.open)
    situation = declarations.Situation(context.mind.question, context.mind.effort, answered, evidence)
    meant = context.mission.route.protocols.get(context.mind.voice.name, {})
    found = lookup(context.mind.persona, "protocols")
    slots = tuple(map(str, found.value)) if found else ()
    for slot in (*meant, *(each for each in slots if each not in meant)):
        intent = intent_of(context.mind.persona, slot) if slot in slots else None
        if intent is None or (intent.by_meaning and slot not in meant):
            continue
        if not synthesis.parts and not (intent.makes and slot in meant):
            continue
        if declarations.condition_holds(intent.when, situation) if intent.when else intent.by_meaning:
            return slot
    return None


async def apply(interpreter: MindInterpreter, context: MindContext, synthesis: Synthesis, ground: Ground) -> None:
    """Let the chosen protocol change the answer. A change that fails, or has more faults than before, is discarded.

    A change for which the budget has nothing left is one that failed: the answer is paid for and stands.
    """
    slot = choose(context, synthesis)
    if slot is None:
        return
    said, verdict = synthesis.standing.answer, synthesis.standing.verdict
    told = synthesis.protocol = _document(context, slot)
    if context.mission.brief.effort == "reflex":
        told["failure"] = _ONE_CALL.as_dict()
        return
    answers.retract(context, questions.protocol_path(context.mind.name, slot), CHANGING)
    try:
        changed = await _change_answer(interpreter, context, synthesis, slot, told)
    except BatosError as error:
        if isinstance(error, FATAL) and not is_spent(error):
            raise
        told["failure"] = error.as_dict()
    else:
        cut = said.was_cut if "tool" in told else len(changed) >= decisions.ANSWER
        after = replace(said, answer=changed.strip(), was_cut=cut)
        if context.trace.seen or "given" in told:
            ground = answers.ground_of(context, synthesis, told.get("given", ""))
        judged = await answers.judge(context, synthesis, after, ground)
        faults = (*judged.verdict.faults, *_leaks(context, slot, changed, said.answer))
        told["faults"] = [fault.as_dict() for fault in faults]
        told["applied"] = len(faults) <= len(verdict.faults) and told.get("tool", slot) is not None
        if told["applied"]:
            synthesis.drafts.append(judged)
    if not told["applied"]:
        path = questions.protocol_path(context.mind.name, slot)
        answers.tell_again(context, path, said.answer, "the key protocol changed nothing for the better")
        answers.tell_citations(context, path, said.citations, ground.evidence)


def _leaks(context: MindContext, slot: str, changed: str, before: str) -> Iterator[GateFault]:
    """Yield a fault if a changed answer has words of the order to change it, which the answer before had not."""
    intent = intent_of(context.mind.persona, slot)
    order = "" if intent is None else f"{intent.text}\n{intent.line}"
    if decisions.copies(changed, order, f"{before}\n{context.mind.question}"):
        yield GateFault("prompt", "it has words of the order to change it")


def _document(context: MindContext, slot: str) -> ProtocolDocument:
    """Return what is known of a protocol before it is applied."""
    told = ProtocolDocument(slot=slot, applied=False)
    intent = intent_of(context.mind.persona, slot)
    if intent is not None and intent.metric:
        told["metric"] = intent.metric
    if intent is not None and intent.makes:
        told["tool"] = None
    share = context.mission.route.protocols.get(context.mind.voice.name, {}).get(slot)
    if share is not None:
        told["share"] = round(share, 3)
    return told


async def _change_answer(
    interpreter: MindInterpreter, context: MindContext, synthesis: Synthesis, slot: str, told: ProtocolDocument
) -> str:
    """Return the answer after the protocol: another text, or the same with a line about the tool at its end."""
    said, intent = synthesis.standing.answer, intent_of(context.mind.persona, slot)
    if intent is None or not intent.makes:
        changed = await send(interpreter, context.mind.persona, slot, said.answer)
        if not isinstance(changed, str):
            raise ObjectError(f"{slot!r} of {context.mind.voice.name} answers no text but a {type(changed).__name__}")
        return changed
    forged = await forge_tool(interpreter, context, synthesis, (slot, intent))
    told["tool"] = None if forged is None else forged.tool
    if forged is None:
        return said.answer
    answer = f"{said.answer}\n\n{forged.line}"
    answers.tell(context, questions.protocol_path(context.mind.name, slot), answer)
    return answer
