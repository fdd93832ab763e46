"""Measuring bases, once for each digest: one small call counts a sample prompt, the whole card names its marks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from batos.config import Settings
from batos.genesis import graph, measures
from batos.genesis.codex import model_options
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.daemon_listing import GenesisDaemon
from batos.genesis.measures import Measure
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress, StepProgress
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference import marks, model_names
from batos.inference.ollama.catalogue import parameters_in
from batos.inference.ollama.chat import ChatRequest
from batos.protocol.errors import OllamaError

#: The ability that a model needs to be counted.
CHATS = "completion"
_BILLION: Final = 10**9


@dataclass(frozen=True, slots=True)
class _Base:
    """A base that is wanted, and the model that is asked: one of its own, whose runner the missions will use."""

    name: str
    model: str
    options: Mapping[str, Any]


async def measure_missing(plan: Plan, daemon: GenesisDaemon, image: LivingImage, tell: OnProgress) -> None:
    """Measure the bases of which something is missing, and keep it in the image."""
    with image.snapshot() as root:
        known = measures.recorded_measures(root)
    found = await take(plan, daemon, known, tell)
    if found != known:
        await image.shared.apply(lambda root: measures.record(root, found))


async def take(plan: Plan, daemon: GenesisDaemon, known: Mapping[str, Measure], tell: OnProgress) -> dict[str, Measure]:
    """Return what is known of each base that is there, by digest; what is not known yet is asked.

    A daemon that fails here fails nothing: what is missing is measured by the first missions, or the next genesis.
    """
    found: dict[str, Measure] = {}
    for base in _bases(plan):
        row = plan.listed.row(base.name)
        if row is None or row.digest in found:
            continue
        measure = known.get(row.digest) or await _read_card(base, daemon, tell)
        if measure is not None and not measure.tokens and CHATS in measure.capabilities:
            measure = await _count_tokens(measure, base, plan.codex, daemon, tell)
        if measure is not None:
            found[row.digest] = measure
    return found


def sample(codex: Codex) -> tuple[dict[str, str], ...]:
    """Make a prompt such as missions send: the head that all have, then a persona with its templates."""
    persona = codex.personas["ALFRED"]
    texts = (persona.system, *persona.prompts.values(), *(pillar.intent for pillar in persona.pillars))
    system = f"{codex.charter.strip()}\n\n{codex.house_rules.strip()}"
    return ({"role": "system", "content": system}, {"role": "user", "content": "\n\n".join(texts)})


def _bases(plan: Plan) -> Iterator[_Base]:
    chosen = plan.codex.profile(plan.profile)
    for persona in PILLARS:
        base = plan.codex.model_for(persona, plan.profile)
        given = model_options.parameters(plan.codex.options_for(persona, plan.profile))
        yield _Base(base, plan.models.get(persona, base), given)
    for name in (chosen.coder, chosen.embedder):
        if name:
            given = model_options.parameters({**model_options.DEFAULTS, **chosen.options})
            yield _Base(name, model_names.with_tag(name), given)


async def _read_card(base: _Base, daemon: GenesisDaemon, tell: OnProgress) -> Measure | None:
    try:
        card = await daemon.show(base.name, verbose=True)
    except OllamaError as error:
        tell(StepProgress(f"measure {base.name}", f"left: {error.message}"))
        return None
    own = marks.marks_of(card.template, card.info)
    return Measure(base.name, 0, 0, own, card.capabilities, card.parameter_count, card.trained_window or 0)


async def _count_tokens(
    measure: Measure, base: _Base, codex: Codex, daemon: GenesisDaemon, tell: OnProgress
) -> Measure:
    told = marks.messages(sample(codex), measure.marks)
    size = sum(len(each["content"].encode()) for each in told)
    tell(StepProgress(f"measure {base.name}", "counting the tokens of a prompt"))
    try:
        tokens = await daemon.count(ChatRequest(base.model, told, dict(base.options), think=False))
    except OllamaError as error:
        tell(StepProgress(f"measure {base.name}", f"left: {error.message}"))
        return measure
    tell(StepProgress(f"measure {base.name}", "success"))
    return replace(measure, size=size, tokens=tokens)


# -- the form of each persona's prompts: as its codex says, else by the size of its model and of its window


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
