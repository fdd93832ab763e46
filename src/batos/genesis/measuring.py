"""Measuring bases, once for each digest, and the measurements as the image keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from batos.config import Settings
from batos.genesis import graph
from batos.genesis.codex import value_checks
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.daemon_listing import GenesisDaemon
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress, StepProgress
from batos.image import roots
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.inference import marks, model_names
from batos.inference.ollama.catalogue import parameters_in
from batos.inference.ollama.chat import ChatRequest
from batos.protocol.errors import OllamaError

_KEPT = "bases"


@dataclass(frozen=True, slots=True)
class Measure:
    """Describes one base, by its name: bytes and tokens of the sample prompt, marks of its own, capabilities.

    Without tokens nothing was counted: it does not chat, or the daemon did not answer. `parameters` is their number and
    `trained` the window that it was trained for, 0 where the daemon does not tell them.
    """

    name: str
    size: int
    tokens: int
    marks: tuple[str, ...]
    capabilities: tuple[str, ...]
    parameters: int = 0
    trained: int = 0


def _genesis_state(root: Root) -> Mapping[str, Any]:
    return root.get(roots.GENESIS) or {}


def recorded_measures(root: Root) -> dict[str, Measure]:
    """Return what is kept, by the base's digest; an image before its first genesis knows nothing."""
    kept = _genesis_state(root).get(_KEPT, {})
    return {
        digest: Measure(**{**each, "marks": tuple(each["marks"]), "capabilities": tuple(each["capabilities"])})
        for digest, each in kept.items()
    }


def record_measures(root: Root, found: Mapping[str, Measure]) -> list[str]:
    """Keep these and no others; answers what changed."""
    before = recorded_measures(root)
    changes = [f"genesis.bases.{each.name} measured" for digest, each in found.items() if before.get(digest) != each]
    changes += [f"genesis.bases.{each.name} forgotten" for digest, each in before.items() if digest not in found]
    if changes:
        root[roots.GENESIS][_KEPT] = {
            digest: {**asdict(each), "marks": list(each.marks), "capabilities": list(each.capabilities)}
            for digest, each in found.items()
        }
    return changes


def base_of(root: Root, model: str) -> str:
    """Return the digest of the base that a model was made of, or that it is itself; "" where it is not known."""
    made = _genesis_state(root).get("models", {}).get(model)
    if isinstance(made, Mapping):
        return str(made["base_digest"])
    return next((digest for digest, each in recorded_measures(root).items() if model_names.same(each.name, model)), "")


def prompt_sizes(root: Root, model: str) -> tuple[int, int]:
    """Return bytes and tokens of prompts: the model's own; else those of all models of its base and the sample's."""
    answered: Mapping[str, tuple[int, int]] = root[roots.STATISTICS].get("measured", {})
    own = answered.get(model, (0, 0))
    if own[1]:
        return own
    base = base_of(root, model)
    sample = recorded_measures(root).get(base)
    sizes = [(sample.size, sample.tokens)] if sample is not None and sample.tokens else []
    sizes += [each for name, each in answered.items() if base and base_of(root, name) == base]
    return sum(size for size, _ in sizes), sum(tokens for _, tokens in sizes)


def recorded_marks(root: Root) -> dict[str, tuple[str, ...]]:
    """Return what each model reads as a mark beside the usual ones, by name; those that have none are not in it."""
    bases = recorded_measures(root)
    made = _genesis_state(root).get("models", {})
    found = {name: bases[each["base_digest"]].marks for name, each in made.items() if each["base_digest"] in bases}
    found |= {model_names.with_tag(each.name): each.marks for each in bases.values()}
    return {name: each for name, each in found.items() if each}


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
        known = recorded_measures(root)
    found = await take(plan, daemon, known, tell)
    if found != known:
        await image.shared.apply(lambda root: record_measures(root, found))


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
        given = value_checks.parameters(plan.codex.options_for(persona, plan.profile))
        yield _Base(base, plan.models.get(persona, base), given)
    for name in (chosen.coder, chosen.embedder):
        if name:
            given = value_checks.parameters({**value_checks.DEFAULTS, **chosen.options})
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
    known = recorded_measures(root)
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
