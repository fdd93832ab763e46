"""A protocol that makes a tool: from an answer one decision, from that an intent, and of it a method that stays.

docs/tools.md tells the whole. Nothing is forged twice: a mission that is thought again finds what it declared.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field

from batos.cognition import prompt, provenance
from batos.cognition.asking import paths
from batos.cognition.asking.calls import Question, infer
from batos.cognition.intents import intent_in
from batos.cognition.running import Interprets, Running, Synthesis
from batos.errors import BatosError, GenerationFailed
from batos.guardian.policy import SHIPPED
from batos.image import methods, roots
from batos.image.records import SLOT_TRUST, least_trusted
from batos.inference.schema import Decision
from batos.objects.method import Intent
from batos.objects.prototype import Found, UvmObject, is_reserved, lookup, own_slots

#: Characters of a tool's name without the `_` at its end, and most inputs that it may have.
NAME, INPUTS = 40, 4
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,39}")
#: What comes from nowhere but the Architect, the codex and the models.
_OWN: Final = frozenset({"user", "model"})
_NOT: Final = re.compile(r"[^a-z0-9]+")


class Tool(BaseModel):
    """What a tool is to be: a model's wish, which becomes an intent only if it can be one."""

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
class Forged:
    """What came of it: `tool` for the mission's provenance, `line` for who reads the answer."""

    tool: dict[str, Any]
    line: str


async def forge(
    interpreter: Interprets, running: Running, synthesis: Synthesis, declared: tuple[str, Intent]
) -> Forged | None:
    """Make a tool of the answer that stands, by a protocol (its slot and intent); None: the answer holds none.

    GenerationFailed: what the model wished for can be no tool, it was not made, or policy lets nothing be. A tool that
    a person must let in is asked about; the mission does not wait for that.
    """
    slot, protocol = declared
    assert synthesis.said is not None
    if running.jit is None or running.install == "never":
        raise GenerationFailed("policy lets no tool be made", remedy="Ask with `--install now` or `--install ask`.")
    task = prompt.forge_task(running.voice, protocol.name, protocol.text, synthesis.said.answer)
    question = Question(paths.protocol(running.name, slot), task)
    wish, replied = await infer(interpreter, running, synthesis.evidence, question, TOOL)
    synthesis.evidence = replied.evidence
    if not wish.worth:
        return None
    selector, intent = intent_of(wish)
    trust = least_trusted(provenance.lineage_trust(synthesis.recalled), *running.trusts)
    if not await interpreter.derive(partial(_declare, selector=selector, intent=intent, trust=trust)):
        raise GenerationFailed(
            f"{selector!r} is the name of something else already",
            remedy="`batos tools` lists the tools that there are.",
        )
    try:
        return await _made(running, selector, intent)
    except BatosError:
        await interpreter.derive(partial(_forget, selector=selector, intent=intent))
        raise


def intent_of(wish: Tool) -> tuple[str, Intent]:
    """The selector and the intent that a wish means; GenerationFailed: it can be none."""
    name = _NOT.sub("_", wish.name.casefold()).strip("_")
    selector = f"{name}_"
    # One line each, as they stand in the request to a coder: a line more could be a heading of it.
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
    return selector, Intent(text=purpose, signature=signature, may_learn=True, name=title, kind="tool")


def _barred(name: str) -> bool:
    policy = SHIPPED
    return bool(is_reserved(name) or policy.protected_pattern.search(name) or policy.kernel_pattern.search(name))


def _declare(root: Any, *, selector: str, intent: Intent, trust: str) -> bool:
    """Put the intent into its slot; False: the name means something else there, or in what all objects have."""
    holder: UvmObject = root[roots.TOOLS]
    found = lookup(holder, selector)
    if found is not None:
        known = intent_in(found, selector) if found.holder is holder else None
        return known is not None and methods.digest_of(known) == methods.digest_of(intent)
    setattr(holder, selector, Intent(**intent.as_dict()))
    if trust not in _OWN:  # so that no method is made of it which nobody has let in
        setattr(holder, SLOT_TRUST, {**(own_slots(holder).get(SLOT_TRUST) or {}), selector: trust})
    return True


def _forget(root: Any, *, selector: str, intent: Intent) -> None:
    """Take an intent away again of which nothing was ever made."""
    holder: UvmObject = root[roots.TOOLS]
    value = own_slots(holder).get(selector)
    there = isinstance(value, Intent) and methods.digest_of(value) == methods.digest_of(intent)
    if there and methods.lineage_of(root, holder, selector) is None:
        delattr(holder, selector)
        trusts = {slot: trust for slot, trust in (own_slots(holder).get(SLOT_TRUST) or {}).items() if slot != selector}
        if trusts != (own_slots(holder).get(SLOT_TRUST) or {}):
            setattr(holder, SLOT_TRUST, trusts)


async def _made(running: Running, selector: str, intent: Intent) -> Forged:
    """Have the method made, or a person asked about it."""
    told: dict[str, Any] = {"object": roots.TOOLS, "selector": selector, "signature": intent.signature}
    told |= {"purpose": intent.text, "outcome": "made"}
    what = intent.text if intent.text.endswith((".", "!", "?")) else f"{intent.text}."
    line = f"Forged: `{selector}`: {what} Call it: `batos send {roots.TOOLS} {_call(selector, intent)}`."
    assert running.jit is not None
    before = len(running.learned)
    holder: UvmObject = running.root[roots.TOOLS]
    method = await running.jit.method_for(running.lenient(), holder, Found(holder, intent, 0), selector)
    learnt = running.learned[before] if len(running.learned) > before else {}
    if method is None and learnt.get("outcome") == "later":
        return Forged(told | {"outcome": "later"}, f"{line} It is made when this answer is out.")
    if method is None and learnt.get("outcome") != "asked":
        raise GenerationFailed(f"the tool {selector!r} was not made: {_why(learnt)}")
    if method is None:
        told |= {"outcome": "asked", "approval": learnt.get("approval")}
        line += f" It waits for your approval: `batos approve {learnt.get('approval')}`."
    return Forged(told, line)


def _call(selector: str, intent: Intent) -> str:
    inside = intent.signature[len(selector) + 1 : -1].split(", ")[1:]
    return " ".join((selector, *(each.upper() for each in inside)))


def _why(learnt: dict[str, Any]) -> str:
    failure = learnt.get("failure") or {}
    return str(failure.get("message", "nothing could be made of it"))
