"""Keeps the measurements of each base in the image: its density, the marks it reads, its capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from batos.image import roots
from batos.image.roots import Root
from batos.inference import model_names

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


def record(root: Root, found: Mapping[str, Measure]) -> list[str]:
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


def marks(root: Root) -> dict[str, tuple[str, ...]]:
    """Return what each model reads as a mark beside the usual ones, by name; those that have none are not in it."""
    bases = recorded_measures(root)
    made = _genesis_state(root).get("models", {})
    found = {name: bases[each["base_digest"]].marks for name, each in made.items() if each["base_digest"] in bases}
    found |= {model_names.with_tag(each.name): each.marks for each in bases.values()}
    return {name: each for name, each in found.items() if each}
