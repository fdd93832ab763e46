"""The form of each persona's prompts: as its codex says, else by the size of its model and of its window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from batos.config import Settings
from batos.genesis import graph, measures
from batos.genesis.measures import Measure
from batos.genesis.plan import Plan
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference.ollama.catalogue import parameters_in

_BILLION: Final = 10**9


def choose_forms(root: Root, plan: Plan, settings: Settings) -> dict[str, str]:
    """Return the form of each persona's prompts, by what the daemon tells of the base that it thinks with."""
    known = measures.recorded_measures(root)
    return {name: _form(name, plan, settings, known) for name in plan.models}


async def record_forms(image: LivingImage, plan: Plan, settings: Settings) -> list[str]:
    """Write the form of each persona's prompts into the image, where it is another than the one there."""
    with image.snapshot() as root:
        found = choose_forms(root, plan, settings)
        if found == graph.recorded_forms(root):
            return []
    return await image.shared.apply(lambda root: graph.record_forms(root, found))


def _form(persona: str, plan: Plan, settings: Settings, known: Mapping[str, Measure]) -> str:
    asked = plan.codex.personas[persona].form
    if asked != "auto":
        return asked
    row = plan.listed.row(plan.codex.model_for(persona, plan.profile)) or plan.listed.row(plan.models[persona])
    measure = known.get(row.digest) if row is not None else None
    told = parameters_in(row.parameter_size) if row is not None else 0
    parameters = measure.parameters if measure is not None and measure.parameters else told
    window = int(plan.codex.options_for(persona, plan.profile)["num_ctx"])
    if measure is not None and measure.trained:
        window = min(window, measure.trained)
    return "lean" if is_small(parameters, window, settings) else "full"


def is_small(parameters: int, window: int, settings: Settings) -> bool:
    """Test if a model needs the lean form; one of which no size is known (0) is judged by its window alone."""
    return 0 < parameters < settings.lean_parameters * _BILLION or window < settings.lean_window
