"""What is missing between the codex and what Ollama has: pulls and makes, computed without changing anything."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from batos.errors import OllamaUnfit
from batos.genesis import modelname
from batos.genesis.codex import PILLARS, Codex
from batos.genesis.modelfile import Recipe, family, recipe
from batos.inference import catalogue

#: The oldest daemon whose wire is the one that the bridge knows.
OLDEST = (0, 30)

Kind = Literal["pull", "create"]


class Daemon(Protocol):
    """What genesis needs of the bridge."""

    async def version(self) -> str:
        """The daemon's version."""
        ...

    async def list(self) -> Sequence[catalogue.ModelRow]:
        """The models it has."""
        ...

    def pull(self, model: str) -> AsyncGenerator[catalogue.Progress, None]:
        """Fetch a model."""
        ...

    def create(
        self, model: str, *, from_: str, system: str | None = None, parameters: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[catalogue.Progress, None]:
        """Make a model from one it has."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do; `name` is None for a model whose name is known only when its base is there.

    `size` is in bytes, None where nobody knows it before the pull. A failed optional step fails nothing.
    """

    kind: Kind
    name: str | None
    reason: str
    size: int | None = None
    persona: str | None = None
    optional: bool = False

    @property
    def label(self) -> str:
        """How the step is called where people see it: `pull llama3.1:8b`, `create batos-robin`."""
        return f"{self.kind} {self.name or family(self.persona or '')}"

    def as_dict(self) -> dict[str, Any]:
        """The step as plain data."""
        return {
            "kind": self.kind,
            "name": self.name,
            "reason": self.reason,
            "size": self.size,
            "persona": self.persona,
            "optional": self.optional,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps from what is to what the codex says, and what the personas' models are made of.

    `recipes` has the personas whose base is there; `stale` are models that we made and no longer want.
    """

    codex: Codex = field(repr=False)
    profile: str
    version: str
    steps: tuple[Step, ...]
    recipes: Mapping[str, Recipe]
    stale: tuple[str, ...] = ()

    @property
    def satisfied(self) -> bool:
        """Whether nothing is left to do but what is optional."""
        return all(step.optional for step in self.steps)

    @property
    def needs_pull(self) -> bool:
        """Whether carrying it out would fetch something over the network."""
        return any(step.kind == "pull" for step in self.steps)

    @property
    def models(self) -> dict[str, str]:
        """The name of each persona's model, whether it is made yet or not; without those whose base is missing."""
        return {persona: made.name for persona, made in self.recipes.items()}

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data, for `genesis --plan --json`."""
        return {
            "profile": self.profile,
            "ollama": self.version,
            "codex": self.codex.digest,
            "satisfied": self.satisfied,
            "needs_pull": self.needs_pull,
            "steps": [step.as_dict() for step in self.steps],
            "models": self.models,
            "stale": list(self.stale),
        }


async def plan(codex: Codex, profile: str, daemon: Daemon) -> Plan:
    """Compare the codex with what Ollama lists: two requests, nothing changed.

    OllamaUnfit if the daemon is older than our wire; any other OllamaError if it cannot be asked.
    """
    version = _checked_version(await daemon.version())
    rows = {modelname.with_tag(row.name).casefold(): row for row in await daemon.list()}
    return compute(codex, profile, version, rows)


def compute(codex: Codex, profile: str, version: str, rows: Mapping[str, catalogue.ModelRow]) -> Plan:
    """The plan for a daemon that lists `rows` (by name with tag, folded)."""
    chosen = codex.profile(profile)
    steps = _pulls(codex, profile, rows)
    recipes: dict[str, Recipe] = {}
    for persona in PILLARS:
        base = rows.get(_key(codex.model_for(persona, profile)))
        if base is None:
            missing = codex.model_for(persona, profile)
            steps.append(Step("create", None, f"{persona}'s model waits for {missing}", persona=persona))
            continue
        made = recipes[persona] = recipe(codex, persona, profile, base.digest)
        if _key(made.name) not in rows:
            reason = _why_made(made, rows)
            steps.append(Step("create", made.name, reason, size=0, persona=persona))
    if _key(chosen.embedder) not in rows:
        reason = "the embedder: memory searches by words alone without it"
        steps.append(Step("pull", chosen.embedder, reason, optional=True))
    return Plan(codex, profile, version, tuple(steps), recipes, _stale(recipes, rows))


def _pulls(codex: Codex, profile: str, rows: Mapping[str, catalogue.ModelRow]) -> list[Step]:
    wanted: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    uses = [(codex.model_for(persona, profile), persona) for persona in PILLARS]
    for name, use in [*uses, (codex.profile(profile).coder, "the coder")]:
        names.setdefault(_key(name), name)
        wanted.setdefault(_key(name), []).append(use)
    return [
        Step("pull", names[key], f"{_listed(uses)} think{'s' if len(uses) == 1 else ''} with it")
        for key, uses in wanted.items()
        if key not in rows
    ]


def _why_made(made: Recipe, rows: Mapping[str, catalogue.ModelRow]) -> str:
    if any(key.startswith(f"{family(made.persona)}:") for key in rows):
        return f"{made.persona}'s codex or base is not what its model was made of"
    return f"{made.persona} has no model of its own yet"


def _stale(recipes: Mapping[str, Recipe], rows: Mapping[str, catalogue.ModelRow]) -> tuple[str, ...]:
    ours = re.compile(rf"(?:{'|'.join(family(persona) for persona in recipes)}):[0-9a-f]{{12}}")
    wanted = {_key(made.name) for made in recipes.values()}
    return tuple(row.name for key, row in rows.items() if recipes and ours.fullmatch(key) and key not in wanted)


def _key(name: str) -> str:
    return modelname.with_tag(name).casefold()


def _listed(uses: Iterable[str]) -> str:
    *rest, last = uses
    return f"{', '.join(rest)} and {last}" if rest else last


def _checked_version(version: str) -> str:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    found = (int(numbers[1]), int(numbers[2])) if numbers else None
    if found is not None and found != (0, 0) and found < OLDEST:
        raise OllamaUnfit(f"this Ollama is {version}, and BAT OS needs 0.30 or newer")
    return version
