"""The tokens of a codex's prompts, by the density that was measured with each persona's model, else by estimate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from batos.config import Settings
from batos.genesis import measures
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.meta_prompts import FIRST_RATIO
from batos.image.views.read_only import is_there, open_read_only
from batos.minds.prompt import Form
from batos.minds.prompt_sizes import MOST, list_sizes, most_tokens
from batos.protocol.errors import BatosError
from batos.terminal.layout import table


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
            sizes = {name: measures.prompt_sizes(root, base) for name, base in bases.items()}
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
