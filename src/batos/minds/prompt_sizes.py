"""The size of each prompt of a codex in both forms, without what a mission puts into it: evidence and question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batos.genesis.codex.codex import Codex, Persona
from batos.genesis.codex.declared_intents import IntentText
from batos.memory.evidence import Evidence, Passage
from batos.minds import prompt
from batos.minds.prompt import Form, PersonaPrompt, SharedContext, ShownPart
from batos.minds.task import Task

#: The most tokens of a prompt beside evidence and question, by its form.
MOST: Final[dict[Form, int]] = {"full": 700, "lean": 60}
#: The most tokens of the examples that the lean form of a division has beside these.
EXAMPLES: Final = 130

#: Stands for a question and for a text: the least that a prompt can be about.
_LEAST: Final = "x"


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The bytes of one prompt of a persona, by its form."""

    persona: str
    prompt: str
    sizes: dict[Form, int]


def most_tokens(prompt_name: str, form: Form) -> int:
    """Return the most tokens that a prompt should have in a form."""
    return MOST[form] + (EXAMPLES if (prompt_name, form) == ("decompose", "lean") else 0)


def list_sizes(codex: Codex) -> list[PromptSize]:
    """Return the size of each persona's prompts: for its calls, and for each of its facets and protocols."""
    found = []
    for persona in codex.personas.values():
        full, lean = (dict(_sizes(codex, persona, form)) for form in ("full", "lean"))
        found += [PromptSize(persona.name, name, {"full": full[name], "lean": lean[name]}) for name in full]
    return found


def _sizes(codex: Codex, persona: Persona, form: Form) -> Iterator[tuple[str, int]]:
    voice = _voice(persona, form)
    text = () if form == "full" else (Passage(1, "", "", 0, _LEAST),)
    shared = SharedContext(codex.charter, codex.house_rules, Evidence(text), "")
    for name, task in _tasks(persona, voice):
        yield name, prompt.size(prompt.compose(shared, voice, task))
    others = (_voice(each, form) for each in codex.personas.values() if each is not persona)
    both, said = [voice.beside(other) for other in others], [ShownPart(1, "", "", _LEAST)]
    joined = [prompt.compose(shared, each, prompt.weave_task(each, _LEAST, said)) for each in both]
    yield "two_voices", max(map(prompt.size, joined))
    answered = prompt.compose(shared, voice, prompt.reflex_task(voice, _LEAST), prompt.revision(voice, "", (), ""))
    yield "revise", prompt.size(answered)


def _voice(persona: Persona, form: Form) -> PersonaPrompt:
    return PersonaPrompt(persona.name, persona.core_identity, persona.core_method, persona.prompts, form, persona.line)


def _tasks(persona: Persona, voice: PersonaPrompt) -> Iterator[tuple[str, Task]]:
    pillars = [(each.slot, each.name, each.inspiration) for each in persona.pillars]
    parts = [ShownPart(1, "", "", _LEAST)]
    yield "reflex", prompt.reflex_task(voice, _LEAST)
    yield "decompose", prompt.decompose_task(voice, _LEAST, pillars)
    yield "weave", prompt.weave_task(voice, _LEAST, parts)
    yield "select", prompt.select_task(voice, _LEAST, parts)
    for facet in persona.pillars:
        yield facet.slot, prompt.facet_task(voice, _as_mapping(facet), _LEAST)
    for protocol in persona.protocols:
        if protocol.makes:
            yield protocol.slot, prompt.forge_task(voice, protocol.name, protocol.intent, _LEAST)
        else:
            yield protocol.slot, prompt.protocol_task(voice, _as_mapping(protocol), _LEAST)


def _as_mapping(intent: IntentText) -> dict[str, str]:
    return {"name": intent.name, "inspiration": intent.inspiration, "intent": intent.intent, "line": intent.line}
