"""The tokens of a codex's prompts: the size of each in both forms, by the measured density of each persona."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batos.config import Settings
from batos.genesis import measuring
from batos.genesis.codex.codex import Codex, Persona
from batos.genesis.codex.declarations import IntentText
from batos.genesis.codex.value_checks import FIRST_RATIO
from batos.image.readable import is_there, open_read_only
from batos.memory.evidence import Evidence, Passage
from batos.minds import prompt
from batos.minds.prompt import Form, PersonaPrompt, SharedContext, ShownPart
from batos.minds.results import Task
from batos.protocol.errors import BatosError
from batos.terminal.layout import table

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


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """The tokens of one prompt of a persona, by its form; not `is_measured` if they are estimated."""

    persona: str
    prompt: str
    tokens: dict[Form, int]
    is_measured: bool

    @property
    def too_long(self) -> list[Form]:
        """List the forms in which the prompt has more tokens than it should have."""
        return [form for form in MOST if self.tokens[form] > most_tokens(self.prompt, form)]

    def as_dict(self) -> dict[str, Any]:
        """Return the tokens as plain data."""
        return {
            "persona": self.persona,
            "prompt": self.prompt,
            **{str(form): tokens for form, tokens in self.tokens.items()},
            "measured": self.is_measured,
        }


def weigh(codex: Codex, settings: Settings) -> list[PromptTokens]:
    """Return the tokens of every prompt of a codex."""
    densities = _densities(codex, settings)
    found = []
    for each in list_sizes(codex):
        density = densities.get(each.persona, FIRST_RATIO)
        tokens: dict[Form, int] = {form: math.ceil(size * density) for form, size in each.sizes.items()}
        found.append(PromptTokens(each.persona, each.prompt, tokens, each.persona in densities))
    return found


def _densities(codex: Codex, settings: Settings) -> dict[str, float]:
    """Return the tokens that a byte costs each persona's model, of those with which it was measured."""
    profile = settings.profile if settings.profile in codex.profiles else "default"
    bases = {name: codex.model_for(name, profile) for name in codex.personas}
    try:
        if not is_there(settings.image_uri):
            return {}
        with open_read_only(settings.image_uri, settings.journal) as faces, faces.root() as root:
            sizes = {name: measuring.prompt_sizes(root, base) for name, base in bases.items()}
    except (BatosError, KeyError):  # the check of a codex needs no image
        return {}
    return {name: tokens / size for name, (size, tokens) in sizes.items() if size and tokens}


def describe(weighed: Sequence[PromptTokens]) -> Iterator[str]:
    """Yield a table of each persona's longest prompt in each form, and a warning for each prompt that is too long."""
    if not weighed:
        return
    rows = []
    for persona in dict.fromkeys(each.persona for each in weighed):
        mine = [each for each in weighed if each.persona == persona]
        longest = [max(mine, key=lambda each, form=form: each.tokens[form]) for form in MOST]  # type: ignore[misc]
        cells = [f"{each.tokens[form]} ({each.prompt})" for each, form in zip(longest, MOST, strict=True)]
        rows.append([persona, *cells, "measured" if mine[0].is_measured else "estimated"])
    yield table(rows, ("longest prompt", *(f"{form} form, tokens" for form in MOST), "counted"))
    for each in weighed:
        for form in each.too_long:
            yield (
                f"Warning: {each.prompt} of {each.persona} has {each.tokens[form]} tokens in {form} form beside"
                f" evidence and question, and should have at most {most_tokens(each.prompt, form)}."
            )
