"""The documents of genesis, key by key: findings of the audit, the steps of a plan, and the report at its end."""

from __future__ import annotations

from typing import TypedDict, final


class FindingDocument(TypedDict):
    """A result of the audit; `remedy` is empty if all is well."""

    id: str
    ok: bool
    what: str
    remedy: str


class StepDocument(TypedDict):
    """A step of a plan; `size` in bytes, None if unknown."""

    kind: str
    name: str | None
    label: str
    reason: str
    size: int | None
    persona: str | None
    adapter: str | None
    optional: bool


class RecipeDocument(TypedDict):
    """The parts that a persona's model is made of; `recipe` is their digest."""

    persona: str
    base: str
    adapter: str | None
    recipe: str


class PlanDocument(TypedDict):
    """A plan; `stale` are models of our kind that nobody wants, `ours` those of them that this image made."""

    profile: str
    ollama: str
    codex: str
    satisfied: bool
    needs_pull: bool
    steps: list[StepDocument]
    models: dict[str, str]
    recipes: dict[str, RecipeDocument]
    stale: list[str]
    ours: list[str]


@final
class GenesisDocument(TypedDict):
    """The report of a genesis: the plan at its beginning, the steps done, faults found before, the audit after."""

    plan: PlanDocument
    done: list[StepDocument]
    changes: list[str]
    found: list[FindingDocument]
    audit: list[FindingDocument]
    audited_at: str
