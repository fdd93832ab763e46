"""The image's records of genesis: the origin of each model by digest, and ALFRED's last audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from batos.genesis.adapters import repository
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.graph_names import prototype_name
from batos.genesis.modelfile import Recipe
from batos.image import roots
from batos.image.roots import Root, named_objects
from batos.inference.ollama.catalogue import ModelRow
from batos.objects.prototype import own_slots

#: The object and the slot that hold the last audit: the time when it was first found so, and every finding.
AUDITOR = prototype_name("ALFRED")
AUDIT = "last_audit"


@dataclass(frozen=True, slots=True)
class MadeModel:
    """A model that genesis made. Digests are hex: the model's and its base's as the daemon lists them, the recipe's is
    over all that went in; `at` is when it was written down."""

    persona: str
    digest: str
    base: str
    base_digest: str
    recipe: str
    adapter: str | None
    at: str


@dataclass(frozen=True, slots=True)
class GenesisRecord:
    """The image's knowledge before genesis begins: its codex, the models made, and the model of each persona."""

    codex_digest: str | None = None
    profile: str | None = None
    complete: bool = False
    models: Mapping[str, MadeModel] = field(default_factory=dict)
    used: Mapping[str, str] = field(default_factory=dict)
    #: The digest of each adapter that was there, by its label.
    adapters: Mapping[str, str] = field(default_factory=dict)

    def with_models(self, made: Mapping[str, MadeModel]) -> GenesisRecord:
        """Return the same knowledge with further models, which this run has made."""
        return replace(self, models={**self.models, **made})


def read_record(root: Root) -> GenesisRecord:
    """Read it; an image before its first genesis knows nothing."""
    kept: Mapping[str, Any] = root.get(roots.GENESIS) or {}
    objects = named_objects(root)
    prototypes = {name: objects[key] for name in PILLARS if (key := prototype_name(name)) in objects}
    used = {name: own_slots(each).get("persona_model") for name, each in prototypes.items()}
    return GenesisRecord(
        codex_digest=kept.get("codex_digest"),
        profile=kept.get("profile"),
        complete=all(name in root for name in (*roots.OBJECTS, *roots.RECORDS)),
        models={
            name: MadeModel(**entry) for name, entry in kept.get("models", {}).items() if isinstance(entry, Mapping)
        },
        used={name: model for name, model in used.items() if model},
        adapters={label: proxy["digest"] for label, proxy in repository.proxies(root).items() if proxy["present"]},
    )


def model_record(recipe: Recipe, row: ModelRow, at: str) -> MadeModel:
    """Return the record of a model that the daemon lists."""
    return MadeModel(
        persona=recipe.persona,
        digest=row.digest,
        base=recipe.base,
        base_digest=recipe.base_digest,
        recipe=recipe.digest,
        adapter=None if recipe.adapter is None else recipe.adapter.name,
        at=at,
    )


def record(root: Root, models: Mapping[str, MadeModel]) -> list[str]:
    """Write the models down, whole, where they differ in more than the time; answers what changed."""
    kept = root[roots.GENESIS]
    before = {name: entry for name, entry in kept.get("models", {}).items() if isinstance(entry, Mapping)}
    after = {name: asdict(made) for name, made in models.items()}
    for name, entry in after.items():
        if name in before and {**before[name], "at": ""} == {**entry, "at": ""}:
            entry["at"] = before[name]["at"]
    changes = [f"genesis.models.{name} {'changed' if name in before else 'recorded'}"
               for name, entry in after.items() if before.get(name) != entry]  # fmt: skip
    changes += [f"genesis.models.{name} forgotten" for name in before if name not in after]
    if changes or kept.get("models") != after:
        kept["models"] = after
    return changes


def keep_audit(root: Root, findings: Iterable[Mapping[str, object]], at: str) -> str:
    """Keep the findings with ALFRED if they are not those of the last audit; answers since when they hold."""
    found = [dict(each) for each in findings]
    last = last_audit(root)
    if last is not None and last["findings"] == found:
        return str(last["at"])
    setattr(named_objects(root)[AUDITOR], AUDIT, {"at": at, "findings": found})
    return at


def last_audit(root: Root) -> dict[str, Any] | None:
    """Return the last audit that differed from the one before: {"at", "findings"}; None before the first."""
    auditor = named_objects(root).get(AUDITOR)
    found: dict[str, Any] | None = None if auditor is None else own_slots(auditor).get(AUDIT)
    return found
