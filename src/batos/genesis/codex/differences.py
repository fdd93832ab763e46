"""Differences between two codices, by text and by key, and their effects on the next mission."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from batos.genesis.codex.codex import Codex
from batos.genesis.codex.origins import SHARED, CodexEntry, entries, parameters_of, plain

Kind = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Change:
    """A key that differs: its owner (`mind` or a persona's name), and its values before and after."""

    owner: str
    key: str
    kind: Kind
    before: Any = None
    after: Any = None

    def as_dict(self) -> dict[str, object]:
        """Return the change as plain data."""
        values = {"before": plain(self.before), "after": plain(self.after)}
        return {"owner": self.owner, "key": self.key, "kind": self.kind, **values}


@dataclass(frozen=True, slots=True)
class CodexDifferences:
    """The differences by key, and their effects at the next mission.

    `models` are the personas whose model is made again, `pulls` the models that were not named before. `slots` are the
    slots that are written (`ROBIN.sage_facet_`), where a learnt method is replaced by the intent; `gone` are those
    removed.
    """

    changes: tuple[Change, ...] = ()
    models: tuple[str, ...] = ()
    pulls: tuple[str, ...] = ()
    slots: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    profiles: tuple[str, str] | None = field(default=None)

    def as_dict(self) -> dict[str, object]:
        """Return the summary as plain data."""
        return {
            "changes": [each.as_dict() for each in self.changes],
            "models_made_anew": list(self.models),
            "models_newly_named": list(self.pulls),
            "slots_written": list(self.slots),
            "slots_removed": list(self.gone),
            "profile": None if self.profiles is None else dict(zip(("before", "after"), self.profiles, strict=True)),
        }


def unified_diff(
    before: Mapping[str, str], after: Mapping[str, str], was: str, now: str, context: int = 3
) -> Iterator[str]:
    """Yield the lines of a unified diff over all files, without line ends; `was` and `now` name the two sides."""
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        yield from difflib.unified_diff(old, new, f"{was}/{name}", f"{now}/{name}", lineterm="", n=context)


def summary(before: Codex, after: Codex, was: str, now: str) -> CodexDifferences:
    """Compare two codices, the first used with the profile `was`, the second with `now`."""
    old = {each.name: each for each in entries(before, was)}
    new = {each.name: each for each in entries(after, now)}
    return CodexDifferences(
        changes=tuple(_changes(old, new)),
        models=tuple(
            name for name in after.personas if parameters_of(before, name, was) != parameters_of(after, name, now)
        ),
        pulls=tuple(sorted(_models_of(after, now) - _models_of(before, was))),
        slots=tuple(_slots(after, before)),
        gone=tuple(slot for slot in _intent_digests(before) if slot not in _intent_digests(after)),
        profiles=None if was == now else (was, now),
    )


def _changes(old: Mapping[str, CodexEntry], new: Mapping[str, CodexEntry]) -> Iterator[Change]:
    for name, entry in new.items():
        if name not in old:
            yield Change(entry.owner, entry.key, "added", after=entry.value)
        elif plain(old[name].value) != plain(entry.value):
            yield Change(entry.owner, entry.key, "changed", old[name].value, entry.value)
    for name, entry in old.items():
        if name not in new:
            yield Change(entry.owner, entry.key, "removed", before=entry.value)


def _models_of(codex: Codex, profile: str) -> set[str]:
    """Return every model that genesis provides."""
    chosen = codex.profile(profile)
    return {chosen.coder, chosen.embedder, *(codex.model_for(name, profile) for name in codex.personas)}


def _intent_digests(codex: Codex) -> dict[str, str]:
    """Return the digest of each intent's declaration, by its slot."""
    return {
        f"{persona.name}.{intent.slot}": intent.digest
        for persona in codex.personas.values()
        for intent in (*persona.pillars, *persona.protocols)
    }


def _slots(after: Codex, before: Codex) -> Iterator[str]:
    known = _intent_digests(before)
    return (slot for slot, digest in _intent_digests(after).items() if known.get(slot) != digest)


def owners(changes: tuple[Change, ...]) -> dict[str, list[Change]]:
    """Group the changes by owner, the shared ones first."""
    found: dict[str, list[Change]] = {}
    for change in sorted(changes, key=lambda each: each.owner != SHARED):
        found.setdefault(change.owner, []).append(change)
    return found
