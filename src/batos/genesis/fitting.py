"""Whether the models that the codex names fit the card: their runners in a table, and the refusal of what does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

from batos.config import Settings
from batos.errors import BudgetExceeded
from batos.genesis import modelname, options
from batos.genesis.codex import PILLARS, Codex
from batos.genesis.plan import Plan
from batos.inference import budget, catalogue
from batos.inference.budget import ELEMENT, STEP, Cache, Resident, Runner, Table, Terms
from batos.notation import bytes_of

Gate: TypeAlias = Callable[[Plan], Awaitable[None]]


class Shows(Protocol):
    """What the budget needs of the bridge."""

    async def list(self) -> Sequence[catalogue.ModelRow]:
        """The models it has."""
        ...

    async def show(self, model: str, *, verbose: bool = False) -> catalogue.ModelCard:
        """What a model is."""
        ...


def terms_of(settings: Settings) -> Terms:
    """What there is to spend, by the settings."""
    found = "as set"
    usable = bytes_of(settings.usable) if settings.usable else None
    if usable is None:
        card = bytes_of(settings.vram)
        usable = budget.usable_of(card)
        found = f"a card of {card / budget.GIB:g} GiB less 1.0 for the runner's margin and 0.5 for the desktop"
    return Terms(usable, bytes_of(settings.reserve), settings.parallel, settings.kv_type, found)


@dataclass(frozen=True, slots=True)
class _Use:
    """Who uses a base model, how, and with which adapter (its digests; bytes)."""

    who: str
    options: Mapping[str, Any]
    adapters: tuple[str, ...] = ()
    adapter_bytes: int = 0


async def table_of(plan: Plan, settings: Settings, daemon: Shows) -> Table:
    """The budget of a plan's models: one request, and one for each base that is there."""
    rows = {modelname.with_tag(row.name).casefold(): row for row in await daemon.list()}
    return await _tabled(plan, plan.profile, terms_of(settings), _Cards(daemon, rows))


async def _tabled(plan: Plan, profile: str, terms: Terms, cards: _Cards) -> Table:
    uses: dict[str, list[_Use]] = {}
    for name, use in _uses(plan, profile):
        uses.setdefault(name, []).append(use)
    residents: list[Resident] = []
    for name, users in uses.items():
        residents += await _residents(name, users, cards)
    return budget.rows(_joined(residents), terms)


def _uses(plan: Plan, profile: str) -> list[tuple[str, _Use]]:
    """Who uses which model: the personas, the coder, and the embedder, which is kept off the card."""
    codex, found = plan.codex, []
    for persona in PILLARS:
        made = plan.used(persona) if profile == plan.profile else None
        adapters = made.adapter_digests if made else ()
        use = _Use(persona, codex.options_for(persona, profile), adapters)
        found.append((codex.model_for(persona, profile), use))
    chosen = codex.profile(profile)
    shared = next((use.options for name, use in found if _key(name) == _key(chosen.coder)), None)
    found.append((chosen.coder, _Use("the coder", shared or {**options.DEFAULTS, **chosen.options})))
    found.append((chosen.embedder, _Use("the embedder", {"num_ctx": STEP, "num_gpu": 0})))
    return found


def _key(name: str) -> str:
    return modelname.with_tag(name).casefold()


class _Cards:
    """The daemon's models, each shown once."""

    def __init__(self, daemon: Shows, rows: Mapping[str, catalogue.ModelRow]) -> None:
        self._daemon = daemon
        self._rows = rows
        self._shown: dict[str, tuple[int, Cache | None, str]] = {}

    async def of(self, name: str) -> tuple[int, Cache | None, str] | None:
        """Size in bytes, cache and blob of a model; None while the daemon does not have it."""
        key = _key(name)
        if key not in self._rows:
            return None
        if key not in self._shown:
            card = await self._daemon.show(name)
            if budget.lacks_arrays(card.info):
                card = await self._daemon.show(name, verbose=True)
            self._shown[key] = (self._rows[key].size, budget.cache_of(card.info), card.blob)
        return self._shown[key]


async def _residents(name: str, users: Sequence[_Use], cards: _Cards) -> list[Resident]:
    on_cpu = all(use.options.get("num_gpu") == 0 for use in users)
    known = None if on_cpu else await cards.of(name)
    residents: dict[tuple[object, ...], Resident] = {}
    for use in users:
        key = (use.adapters, use.options["num_ctx"], use.options.get("num_gpu"))
        before = residents.get(key)
        made = Resident(name, (use.who,), use.options["num_ctx"], adapter=use.adapter_bytes, share=_share(use, known))
        if known is not None:
            weights, cache, blob = known
            made = replace(made, weights=weights, cache=cache, blob=blob)
        residents[key] = replace(before, uses=(*before.uses, use.who)) if before else made
    return list(residents.values())


def _share(use: _Use, known: tuple[int, Cache | None, str] | None) -> Fraction:
    """How much of a model its users want on the card: num_gpu says how many layers, and without it all."""
    asked = use.options.get("num_gpu", -1)
    if asked < 0:
        return Fraction(1)
    layers = known[1].layers if known and known[1] else 0
    return min(Fraction(1), Fraction(asked, layers + 1)) if layers or not asked else Fraction(1)


def _joined(residents: Sequence[Resident]) -> list[Resident]:
    """Names of one blob, used alike, are one runner."""
    joined: dict[tuple[object, ...], Resident] = {}
    for number, each in enumerate(residents):
        key = (each.blob or number, each.num_ctx, each.adapter, each.share)
        before = joined.get(key)
        joined[key] = replace(before, uses=before.uses + each.uses) if before else each
    return list(joined.values())


def gate(settings: Settings, daemon: Shows) -> Gate:
    """The refusal of a plan that does not fit: called when its models are pulled, before any is made.

    It raises BudgetExceeded with the table, the largest num_ctx that fits and what else would.
    """

    async def refuse(plan: Plan) -> None:
        rows = {modelname.with_tag(row.name).casefold(): row for row in await daemon.list()}
        cards = _Cards(daemon, rows)
        table = await _tabled(plan, plan.profile, terms_of(settings), cards)
        if table.fits is False:
            raise exceeded(table, plan.codex, await _ways(plan, table, cards))

    return refuse


def exceeded(table: Table, codex: Codex, ways: Sequence[str]) -> BudgetExceeded:
    """The error for a table that does not fit; `ways` are further remedies, each the beginning of a sentence."""
    over = [runner for runner in table.runners if runner.fits is False]
    largest = table.largest
    needs = "; ".join(_needs(runner) for runner in over) or "other programs alone take more than is usable"
    first = f"Write num_ctx = {largest} for every persona in the codex" if largest else ""
    fits = "" if largest or not over or largest is None else ": not even a window of 256 tokens fits"
    remedies = [*filter(None, [first]), *ways, "say which card it is (vram, usable or reserve in batos.toml)"]
    remedy = "; or ".join(remedies)
    said = f"the models do not fit the card ({table.terms.usable / budget.GIB:.2f} GiB are usable): {needs}{fits}"
    error = BudgetExceeded(said, table.as_dict(), largest, remedy=f"{remedy[0].upper()}{remedy[1:]}.")
    error.also = tuple(table.lines())
    return error


def _needs(runner: Runner) -> str:
    needed = (runner.size + runner.terms.reserve) / budget.GIB
    beside = " beside other programs" if runner.terms.reserve else ""
    return f"{runner.resident.model} needs {needed:.2f} GiB at num_ctx = {runner.resident.num_ctx}{beside}"


async def _ways(plan: Plan, table: Table, cards: _Cards) -> list[str]:
    """What would fit with the window as it is: a smaller cache, or another profile."""
    found = []
    residents = [runner.resident for runner in table.runners]
    smaller = [kind for kind, size in ELEMENT.items() if size < ELEMENT[table.terms.kv_type]]
    for kind in smaller:
        if budget.rows(residents, replace(table.terms, kv_type=kind)).fits:
            found.append(f'set OLLAMA_KV_CACHE_TYPE={kind} for the daemon and kv_type = "{kind}" in batos.toml')
            break
    for name, profile in plan.codex.profiles.items():
        if name != plan.profile:
            fits = (await _tabled(plan, name, table.terms, cards)).fits
            if fits is not False:
                pulled = "" if fits else ", which is to be pulled"
                found.append(f'set profile = "{name}" ({profile.model}{pulled})')
    return found
