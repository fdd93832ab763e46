"""Checks if the models that the codex names fit the card, and if the models in memory are as the codex wants them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from batos.config import Settings
from batos.genesis.codex import value_checks
from batos.genesis.codex.codex import PILLARS
from batos.genesis.daemon_listing import DaemonModels, GenesisDaemon
from batos.genesis.integrity import Finding
from batos.genesis.persona_models import is_of_a_persona
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress, StepProgress
from batos.inference import model_names
from batos.inference.ollama.catalogue import RunnerRow
from batos.inference.vram import card_budget
from batos.inference.vram.card_budget import ELEMENT, GIB, STEP, BudgetTable, Cache, PlannedRunner, Resident, Terms
from batos.inference.vram.placement import Bases, Looks, place_of, wants_card
from batos.notation import bytes_of
from batos.protocol.errors import BudgetExceeded


def terms_of(settings: Settings) -> Terms:
    """Return the memory that can be used according to the settings."""
    found = "as set"
    usable = bytes_of(settings.usable) if settings.usable else None
    if usable is None:
        card = bytes_of(settings.vram)
        usable = card_budget.usable_of(card)
        found = f"a card of {card / card_budget.GIB:g} GiB less 1.0 for the runner's margin and 0.5 for the desktop"
    return Terms(usable, bytes_of(settings.reserve), settings.parallel, settings.kv_type, found)


@dataclass(frozen=True, slots=True)
class _ModelUse:
    """A use of a base by `who`, with options and adapter; `made` is the model made of the base, "" if there is none."""

    who: str
    base: str
    options: Mapping[str, Any]
    made: str = ""
    adapter: str = ""
    adapter_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _KnownModel:
    """The daemon's description of a model that it has."""

    weights: int
    cache: Cache | None
    blob: str
    answers: bool


class _Cards:
    """The daemon's models, each shown once."""

    def __init__(self, daemon: GenesisDaemon, listed: DaemonModels) -> None:
        self._daemon = daemon
        self._listed = listed
        self._shown: dict[str, _KnownModel] = {}

    async def describe(self, use: _ModelUse) -> _KnownModel | None:
        """Return the description of a base, or of a model made of it if the base is gone; None if neither is there."""
        row = self._listed.row(use.base) or (self._listed.row(use.made) if use.made else None)
        if row is None:
            return None
        if row.digest not in self._shown:
            card = await self._daemon.show(row.name)
            if card_budget.lacks_arrays(card.info):
                card = await self._daemon.show(row.name, verbose=True)
            cache, answers = card_budget.cache_of(card.info), "completion" in card.capabilities
            self._shown[row.digest] = _KnownModel(row.size, cache, card.blob, answers)
        return self._shown[row.digest]


async def table_of(plan: Plan, settings: Settings, daemon: GenesisDaemon) -> BudgetTable:
    """Return the memory table of a plan's models; one request for each base that is there."""
    return await _budget_table(plan, plan.profile, terms_of(settings), _Cards(daemon, plan.listed))


async def _budget_table(plan: Plan, profile: str, terms: Terms, cards: _Cards) -> BudgetTable:
    return card_budget.rows(_merge_runners([await _resident(use, cards) for use in _uses(plan, profile)]), terms)


def _uses(plan: Plan, profile: str) -> list[_ModelUse]:
    """List the uses of models: by the personas, by the coder, and by the embedder, which is kept off the card."""
    codex, found = plan.codex, []
    for persona in PILLARS:
        use = _ModelUse(persona, codex.model_for(persona, profile), codex.options_for(persona, profile))
        made = plan.recipe_of(persona) if profile == plan.profile else None
        if made is not None:
            use = replace(use, made=made.name)
            if made.adapter is not None:
                use = replace(use, adapter=made.adapter.digest, adapter_bytes=made.adapter.size)
        found.append(use)
    chosen = codex.profile(profile)
    beside = next((use.options for use in found if model_names.same(use.base, chosen.coder)), None)
    found.append(_ModelUse("the coder", chosen.coder, beside or {**value_checks.DEFAULTS, **chosen.options}))
    found.append(_ModelUse("the embedder", chosen.embedder, {"num_ctx": STEP, "num_gpu": 0}))
    return found


async def list_other_models(plan: Plan, settings: Settings, daemon: GenesisDaemon) -> list[str]:
    """List the models that Ollama has with which the personas could think instead: each fits as they would use it.

    Models that genesis makes, that run elsewhere or that only embed are left out; so is the base of all personas.
    Asks the daemon once for each model.
    """
    cards, terms, codex = _Cards(daemon, plan.listed), terms_of(settings), plan.codex
    uses = [each for each in _uses(plan, plan.profile) if each.who in PILLARS]
    gone = {model_names.key(codex.profile(plan.profile).embedder)}
    bases = {model_names.key(each.base) for each in uses}
    gone |= bases if len(bases) == 1 else set()
    found: list[str] = []
    for name in (row.name for row in plan.listed.rows):
        if model_names.key(name) in gone or is_of_a_persona(name) or model_names.fault(name) is not None:
            continue
        others = [replace(each, base=name, made="", adapter="", adapter_bytes=0) for each in uses]
        known = await cards.describe(others[0])
        table = card_budget.rows(_merge_runners([await _resident(each, cards) for each in others]), terms)
        if known is not None and known.answers and table.fits is not False:
            found.append(name)
    return found


async def _resident(use: _ModelUse, cards: _Cards) -> Resident:
    known = None if use.options.get("num_gpu") == 0 else await cards.describe(use)
    made = Resident(use.base, (use.who,), use.options["num_ctx"], adapter=use.adapter_bytes, share=_share(use, known))
    if known is None:
        return replace(made, blob=f"{model_names.key(use.base)} {use.adapter}")
    blob = f"{known.blob or model_names.key(use.base)}"
    untold = "its metadata does not give it"
    return replace(
        made, weights=known.weights, cache=known.cache, blob=blob, adapter_digest=use.adapter, unknown=untold
    )


def _share(use: _ModelUse, known: _KnownModel | None) -> Fraction:
    """Return the part of a model that its users want on the card: num_gpu counts layers; without it, all."""
    asked = use.options.get("num_gpu", -1)
    if asked < 0:
        return Fraction(1)
    layers = known.cache.layers if known and known.cache else 0
    return min(Fraction(1), Fraction(asked, layers + 1)) if layers or not asked else Fraction(1)


def _merge_runners(residents: Sequence[Resident]) -> list[Resident]:
    """Join the entries of one blob with equal options: they are one runner."""
    joined: dict[tuple[object, ...], Resident] = {}
    for each in residents:
        key = (each.blob, each.adapter_digest, each.num_ctx, each.share)
        before = joined.get(key)
        joined[key] = replace(before, uses=before.uses + each.uses) if before else each
    return list(joined.values())


def gate(settings: Settings, daemon: GenesisDaemon) -> Callable[[Plan], Awaitable[None]]:
    """Return a check that refuses a plan that does not fit. Call it when all bases are there, before anything is made.

    The check raises BudgetExceeded with the table, the largest num_ctx that fits, and other ways to fit.
    """

    async def refuse(plan: Plan) -> None:
        error = await refusal(plan, settings, daemon)
        if error is not None:
            raise error

    return refuse


def refuse_too_large(plan: Plan, settings: Settings, tell: OnProgress) -> OnProgress:
    """Wrap `tell` so that a pull is refused as soon as its size is known, if the weights alone exceed the usable
    memory.

    Ollama reports the size of a model when its pull begins. The report then raises BudgetExceeded.
    """
    terms, uses = terms_of(settings), _uses(plan, plan.profile)
    whole = {model_names.key(use.base) for use in uses if use.options.get("num_gpu", -1) < 0}
    pulls = {
        step.label: step.name for step in plan.steps_of("pull") if step.name and model_names.key(step.name) in whole
    }

    def on_progress(progress: StepProgress) -> None:
        tell(progress)
        name = pulls.get(progress.step)
        if name is not None and progress.total is not None and progress.total + terms.reserve > terms.usable:
            weighed = [_unpulled_runner(use, name, progress.total) for use in uses]
            others = [
                f'set profile = "{other}" ({each.model}, to be pulled first)'
                for other, each in plan.codex.profiles.items()
                if not model_names.same(each.model, name)
            ]
            raise budget_error(card_budget.rows(_merge_runners(weighed), terms), others)

    return on_progress


def _unpulled_runner(use: _ModelUse, name: str, weights: int) -> Resident:
    """Return the runner of a model that is not pulled yet, of which perhaps only the size is known."""
    known = weights if model_names.same(use.base, name) else None
    blob = f"{model_names.key(use.base)} {use.adapter}"
    return Resident(use.base, (use.who,), use.options["num_ctx"], known, blob=blob, share=_share(use, None))


async def refusal(plan: Plan, settings: Settings, daemon: GenesisDaemon) -> BudgetExceeded | None:
    """Return the error for a plan that does not fit, or None."""
    cards = _Cards(daemon, plan.listed)
    table = await _budget_table(plan, plan.profile, terms_of(settings), cards)
    return budget_error(table, await _ways(plan, table, cards)) if table.fits is False else None


def budget_error(table: BudgetTable, ways: Sequence[str] = ()) -> BudgetExceeded:
    """Return the error for a table that does not fit; `ways` are further remedies, each the beginning of a sentence."""
    over = [runner for runner in table.runners if runner.fits is False]
    largest = table.largest
    needs = "; ".join(map(_needs, over)) or "other programs alone take more than that"
    hopeless = "; not even a window of 256 tokens fits" if over and largest == 0 else ""
    first = [f"write num_ctx = {largest} for every persona in the codex"] if largest else []
    card = "the card" if table.terms.usable else "the card, or the memory for models without one"
    remedy = "; or ".join([*first, *ways, f"name {card} (vram, usable or reserve in batos.toml)"])
    said = f"the models do not fit the card, of which {_gib(table.terms.usable)} are usable: {needs}{hopeless}"
    error = BudgetExceeded(said, table.as_dict(), largest, remedy=f"{remedy[0].upper()}{remedy[1:]}.")
    return error.add_faults(table.lines())


async def findings(plan: Plan, settings: Settings, daemon: GenesisDaemon) -> list[Finding]:
    """Return the audit's findings on memory: if the plan fits, and windows longer than a model was trained for."""
    table = await table_of(plan, settings, daemon)
    found = [_budget(table, await refusal(plan, settings, daemon) if table.fits is False else None)]
    windows = dict.fromkeys((each.resident.model, each.resident.num_ctx, each.resident.cache) for each in table.runners)
    for model, asked, cache in windows:
        longest = cache.longest if cache is not None else None
        if cache is not None and longest is not None and asked > longest:
            what = f"{model} was trained for {cache.trained} tokens, and the codex asks for {asked}"
            remedy = f"Write num_ctx = {longest} in the codex: the daemon gives no more."
            found.append(Finding("models.trained", False, what, remedy))
    return found


def _budget(table: BudgetTable, over: BudgetExceeded | None) -> Finding:
    if over is not None:
        return Finding("vram.budget", False, over.message, over.remedy)
    told = f"{_gib(table.needed_bytes)} of the {_gib(table.terms.usable)} that are usable"
    if table.fits is None:
        return Finding("vram.budget", True, f"the models need at least {told}; not all of them are known yet")
    turns = "; they take turns, and every change loads" if table.together > table.terms.usable else ""
    return Finding("vram.budget", True, f"the models need {told}{turns}")


def _needs(runner: PlannedRunner) -> str:
    beside = " beside other programs" if runner.terms.reserve else ""
    needed = f"{'' if runner.is_known else 'more than '}{_gib(runner.size + runner.terms.reserve)}"
    return f"{runner.resident.model} needs {needed} at num_ctx = {runner.resident.num_ctx}{beside}"


def _gib(size: int) -> str:
    return f"{size / card_budget.GIB:.2f} GiB"


async def _ways(plan: Plan, table: BudgetTable, cards: _Cards) -> list[str]:
    """List changes with which the window would fit as it is: a smaller cache, or another profile."""
    found = []
    residents = [runner.resident for runner in table.runners]
    for kind in sorted(ELEMENT, key=lambda kind: -ELEMENT[kind]):
        smaller = ELEMENT[kind] < ELEMENT[table.terms.kv_type]
        if smaller and card_budget.rows(residents, replace(table.terms, kv_type=kind)).fits:
            found.append(f'set OLLAMA_KV_CACHE_TYPE={kind} for the daemon and kv_type = "{kind}" in batos.toml')
            break
    for name, profile in plan.codex.profiles.items():
        if name != plan.profile:
            fits = (await _budget_table(plan, name, table.terms, cards)).fits
            if fits is not False:
                pulled = "" if fits else ", to be pulled first"
                found.append(f'set profile = "{name}" ({profile.model}{pulled})')
    return found


async def runner_findings(plan: Plan, daemon: Looks, rows: Sequence[RunnerRow]) -> list[Finding]:
    """Return a finding for each of all runners (`rows`) of the personas' models: its placement and its window."""
    bases = Bases(daemon)
    personas: dict[str, list[str]] = {}
    runners: dict[str, RunnerRow] = {}
    for persona, model in plan.models.items():
        listed = plan.listed.row(model)
        row = await bases.runner(model, listed.digest, rows) if listed is not None else None
        if row is not None:
            personas.setdefault(row.name, []).append(persona)
            runners[row.name] = row
    if not runners:
        return [Finding("vram.spill", True, "no model of the personas is in memory just now")]
    found = []
    for name, row in runners.items():
        options = plan.codex.options_for(personas[name][0], plan.profile)
        who = ", ".join(personas[name])
        found.append(_check_placement(row, rows, who, free=wants_card(options)))
        found.append(_window(row, who, options["num_ctx"]))
    return found


def _check_placement(row: RunnerRow, rows: Sequence[RunnerRow], who: str, *, free: bool) -> Finding:
    where = place_of(row, rows)
    if where == "spilled" and free:
        aside = (row.size - row.size_vram) / GIB
        what = f"{who}: {aside:.2f} of {row.size / GIB:.2f} GiB of {row.name} are not on the card, but on the CPU"
        remedy = "Free memory on the card, lower num_ctx or take a smaller model (`batos budget`); then unload it: "
        return Finding("vram.spill", False, what, f"{remedy}ollama stop {row.name}")
    if where == "processor" and free:
        what = f"{who}: {row.name} is on the CPU: no card was seen, and `batos budget` uses the settings"
        return Finding("vram.spill", True, what)
    places = {"card": "wholly on the card", "processor": "on the CPU", "spilled": "on card and CPU, as num_gpu says"}
    return Finding("vram.spill", True, f"{who}: {row.name} is {places[where]}")


def _window(row: RunnerRow, who: str, asked: int) -> Finding:
    real = row.context_length
    if real is not None and real < asked:
        what = f"{who}: the runner {row.name} has a window of {real} tokens, and the codex asks for {asked}"
        remedy = (
            "If the model was trained for no more, lower num_ctx in the codex; else another program loaded it so, and "
            "the next question loads it anew: give that program another model, or the same num_ctx."
        )
        return Finding("models.window", False, what, remedy)
    return Finding("models.window", True, f"{who}: {row.name} has the window of {asked} tokens that the codex asks for")
