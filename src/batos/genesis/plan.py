"""The plan of genesis: compares codex, adapters, Ollama and image, and lists the missing steps without doing them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from batos.genesis.adapters.folder import in_use
from batos.genesis.adapters.inventory import Adapter, AdapterInventory
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.daemon_listing import DaemonModels
from batos.genesis.persona_models import GenesisRecord, Recipe, family, is_of_a_persona, recipe
from batos.inference import model_names
from batos.protocol.server_documents import PlanDocument, RecipeDocument, StepDocument

Kind = Literal["pull", "upload", "create", "graph", "delete"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step to be done; `name` is None for a model whose name is known only when its base is there.

    `size` is in bytes, None if unknown. The failure of an optional step fails nothing.
    """

    kind: Kind
    name: str | None
    reason: str
    size: int | None = None
    persona: str | None = None
    adapter: str | None = None
    optional: bool = False

    @property
    def label(self) -> str:
        """Return the name that people see: `pull llama3.1:8b`, `create batos-robin`."""
        return f"{self.kind} {self.name or family(self.persona or '', self.adapter)}"

    def as_dict(self) -> StepDocument:
        """Return the step as plain data."""
        return {
            "kind": self.kind,
            "name": self.name,
            "label": self.label,
            "reason": self.reason,
            "size": self.size,
            "persona": self.persona,
            "adapter": self.adapter,
            "optional": self.optional,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps from what is to what is wanted, and what the personas' models are made of.

    `recipes` has all models that are wanted and whose base is known, by name; `models` the one that each persona
    thinks with; `stale` those of our kind that nobody wants. `known` is None where no image was asked.
    """

    codex: Codex = field(repr=False)
    profile: str
    listed: DaemonModels
    steps: tuple[PlanStep, ...]
    recipes: Mapping[str, Recipe]
    models: Mapping[str, str]
    stale: tuple[str, ...] = ()
    inventory: AdapterInventory = field(default=AdapterInventory(), repr=False)
    chosen: Mapping[str, str | None] = field(default_factory=dict)
    known: GenesisRecord | None = field(default=None, repr=False, compare=False)

    @property
    def version(self) -> str:
        """Return the daemon's version."""
        return self.listed.version

    @property
    def is_satisfied(self) -> bool:
        """Test if only optional steps are left."""
        return all(step.optional for step in self.steps)

    @property
    def needs_pull(self) -> bool:
        """Test if carrying out the plan would fetch something over the network."""
        return any(step.kind == "pull" for step in self.steps)

    def models_for(self, chosen: Mapping[str, str | None]) -> dict[str, str]:
        """Return the model of each persona if these adapters were chosen."""
        return _models(self.recipes.values(), self.inventory, chosen)

    @property
    def adapters(self) -> dict[str, Adapter]:
        """Return the adapter of each persona that uses one."""
        return in_use(self.inventory, self.chosen)

    def recipe_of(self, persona: str) -> Recipe | None:
        """Return the recipe of a persona's model; None while its base is not there."""
        return self.recipes.get(self.models.get(persona, ""))

    def steps_of(self, *kinds: Kind) -> tuple[PlanStep, ...]:
        """Return the steps of these kinds, in order."""
        return tuple(step for step in self.steps if step.kind in kinds)

    def digests(self) -> dict[str, str]:
        """Return the digest of each model that the daemon has, by name."""
        return {row.name: row.digest for row in self.listed.rows}

    def as_dict(self) -> PlanDocument:
        """Return the plan as `genesis --plan --json` prints it."""
        return {
            "profile": self.profile,
            "ollama": self.version,
            "codex": self.codex.digest,
            "satisfied": self.is_satisfied,
            "needs_pull": self.needs_pull,
            "steps": [step.as_dict() for step in self.steps],
            "models": dict(self.models),
            "recipes": {name: _recipe_json(made) for name, made in self.recipes.items()},
            "stale": list(self.stale),
            "ours": [] if self.known is None else [name for name in self.stale if name in self.known.models],
        }


def _recipe_json(made: Recipe) -> RecipeDocument:
    adapter = None if made.adapter is None else made.adapter.name
    return {"persona": made.persona, "base": made.base, "adapter": adapter, "recipe": made.digest}


def compare(
    codex: Codex,
    profile: str,
    listed: DaemonModels,
    inventory: AdapterInventory,
    chosen: Mapping[str, str | None],
    known: GenesisRecord | None,
) -> Plan:
    """Return the plan for a daemon whose models are listed."""
    recipes, waiting = _recipes(codex, profile, listed, inventory, known)
    wanted = {made.name: made for made in recipes}
    missing = [*waiting, *(step for made in recipes if (step := _create(made, listed, known)) is not None)]
    ordered = sorted(missing, key=lambda step: list(PILLARS).index(step.persona or ""))
    models = _models(recipes, inventory, chosen)
    done = Plan(codex, profile, listed, (), wanted, models, _stale(recipes, listed), inventory, chosen, known)
    steps = [*_pulls(codex, profile, listed), *_uploads(ordered, inventory), *ordered, *_graph(done), *_embedder(done)]
    return replace(done, steps=tuple(steps))


def with_deletions(found: Plan, keep: Collection[str]) -> Plan:
    """Return the plan with a step for each model to delete: one that this image made and nothing needs.

    `keep` are models in use at this moment. A model with a name of ours that this image did not make, or that was
    changed, is left alone.
    """
    made = {} if found.known is None else found.known.models
    rows = {row.name: row for row in found.listed.rows}
    deletes = tuple(
        PlanStep("delete", name, "no persona uses it any more", rows[name].size, made[name].persona, made[name].adapter)
        for name in found.stale
        if name in made and made[name].digest == rows[name].digest and name not in keep
    )
    others = tuple(step for step in found.steps if step.kind != "delete")
    return replace(found, steps=(*others, *deletes))


def _recipes(
    codex: Codex, profile: str, listed: DaemonModels, inventory: AdapterInventory, known: GenesisRecord | None
) -> tuple[list[Recipe], list[PlanStep]]:
    """Return the recipes to be made, and a step for each model that has to wait for its base."""
    recipes: list[Recipe] = []
    waiting: list[PlanStep] = []
    for persona in PILLARS:
        base = codex.model_for(persona, profile)
        row = listed.row(base)
        digest = row.digest if row is not None else _former_digest(persona, base, listed, known)
        for adapter in (None, *inventory.adapters_of(persona)):
            if digest is not None:
                made = recipe(codex, persona, profile, digest, adapter)
                if row is not None or _create(made, listed, known) is None:
                    recipes.append(made)
                    continue
            name = None if adapter is None else adapter.name
            waiting.append(
                PlanStep("create", None, f"{persona}'s model waits for {base}", persona=persona, adapter=name)
            )
    return recipes, waiting


def _former_digest(persona: str, base: str, listed: DaemonModels, known: GenesisRecord | None) -> str | None:
    """Return the former digest of a base that is no longer listed: models made of it still contain its weights.

    Of several it is that of the persona's present model, else that of the latest one.
    """
    if known is None:
        return None
    kept = {name: made for name, made in known.models.items()
            if made.persona == persona and made.base == base and listed.row(name) is not None}  # fmt: skip
    newest = max(kept.values(), key=lambda made: made.at, default=None)
    found = kept.get(known.used.get(persona, ""), newest)
    return None if found is None else found.base_digest


def _create(made: Recipe, listed: DaemonModels, known: GenesisRecord | None) -> PlanStep | None:
    """Return the step that makes a model; None if it is there and is what was made."""
    row = listed.row(made.name)
    if row is not None and known is None:
        return None
    written = None if known is None else known.models.get(made.name)
    if row is not None and written is not None and written.digest == row.digest:
        return None
    if row is not None:
        reason = (
            f"a model of that name is there, and this image did not make it for {made.label}"
            if written is None
            else f"the model of {made.label} is not the one that was made: somebody changed it"
        )
    elif written is not None:
        reason = f"the model of {made.label} was deleted"
    elif any(row.name.lower().startswith(f"{made.family}:") for row in listed.rows):
        reason = f"codex, base or adapter changed since the model of {made.label} was made"
    else:
        reason = f"{made.label} has no model yet"
    adapter = None if made.adapter is None else made.adapter.name
    return PlanStep("create", made.name, reason, size=0, persona=made.persona, adapter=adapter)


def _models(recipes: Iterable[Recipe], inventory: AdapterInventory, chosen: Mapping[str, str | None]) -> dict[str, str]:
    """Return the model of each persona; a persona whose model waits for its base has none."""
    used = in_use(inventory, chosen)
    return {made.persona: made.name for made in recipes if made.adapter is used.get(made.persona)}


def _pulls(codex: Codex, profile: str, listed: DaemonModels) -> list[PlanStep]:
    wanted: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    uses = [(codex.model_for(persona, profile), persona) for persona in PILLARS]
    for name, use in [*uses, (codex.profile(profile).coder, "the coder")]:
        names.setdefault(model_names.key(name), name)
        wanted.setdefault(model_names.key(name), []).append(use)
    return [
        PlanStep("pull", names[key], f"{in_words(users)} think{'s' if len(users) == 1 else ''} with it")
        for key, users in wanted.items()
        if listed.row(names[key]) is None
    ]


def _uploads(creates: Iterable[PlanStep], inventory: AdapterInventory) -> Iterator[PlanStep]:
    """Yield an upload for each adapter of which a model is to be made."""
    wanted = {(step.persona, step.adapter) for step in creates}
    for adapter in inventory.adapters:
        if (adapter.persona, adapter.name) in wanted:
            name = f"{adapter.persona.lower()}/{adapter.name}"
            reason = f"a model of {adapter.persona} is made with it; what Ollama has already is not sent"
            yield PlanStep("upload", name, reason, adapter.size, adapter.persona, adapter.name)


def _graph(found: Plan) -> Iterator[PlanStep]:
    """Yield the step that writes into the image the facts that it lacks."""
    known = found.known
    if known is None:
        return
    reasons = []
    if not known.complete and known.codex_digest is None:
        yield PlanStep("graph", "the image", "nothing is in it yet")
        return
    if not known.complete:
        reasons.append("its root is not complete")
    if known.codex_digest != found.codex.digest:
        reasons.append("it has no codex" if known.codex_digest is None else "its codex is an older one")
    if known.profile not in (None, found.profile):
        reasons.append(f"its profile is {known.profile!r}")
    if known.used != found.models or not found.recipes.keys() <= known.models.keys():
        reasons.append("it lacks the personas' models")
    if known.adapters != {adapter.label: adapter.digest for adapter in found.inventory.adapters}:
        reasons.append("its adapters are not those that are there")
    gone = [name for name in known.models if found.listed.row(name) is None and name not in found.recipes]
    if gone:
        reasons.append("it names models that are gone")
    if reasons:
        yield PlanStep("graph", "the image", in_words(reasons))


def _embedder(found: Plan) -> Iterator[PlanStep]:
    name = found.codex.profile(found.profile).embedder
    if found.listed.row(name) is None:
        reason = "the embedder: the router uses words alone without it"
        yield PlanStep("pull", name, reason, optional=True)


def _stale(recipes: Iterable[Recipe], listed: DaemonModels) -> tuple[str, ...]:
    wanted = {model_names.key(made.name) for made in recipes}
    if not wanted:
        return ()
    return tuple(
        row.name for row in listed.rows if is_of_a_persona(row.name) and model_names.key(row.name) not in wanted
    )


def in_words(names: Iterable[str]) -> str:
    """Join names to a text: `a`, `a and b`, `a, b and c`."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
