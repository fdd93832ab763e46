"""A codex laid out key by key with the origin of each value, and the differences between two."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from batos.genesis.codex import value_checks
from batos.genesis.codex.codex import MIND, Codex, CodexReading
from batos.genesis.codex.declarations import IntentText
from batos.genesis.codex.key_lines import KeyPath

#: The owner of what all personas share.
SHARED = "mind"


@dataclass(frozen=True, slots=True)
class CodexEntry:
    """A value of a codex with its owner (`mind` or a persona's name), its key, and the places where it may be written.

    The strongest place comes first. Each has a file, a path, and the name that people use for it ("" for the key
    itself).
    """

    owner: str
    key: str
    value: Any
    places: tuple[tuple[str, KeyPath, str], ...]

    @property
    def name(self) -> str:
        """Return the key with its owner: `ROBIN.options.temperature`."""
        return f"{self.owner}.{self.key}"


@dataclass(frozen=True, slots=True)
class CodexRow:
    """A value with where it comes from; `edited` is whether the shipped codex says something else there."""

    entry: CodexEntry
    source: str
    edited: bool

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {"key": self.entry.key, "value": plain(self.entry.value), "source": self.source, "edited": self.edited}


def rows(found: CodexReading, shipped: Codex, profile: str, absent: Collection[str] = ()) -> dict[str, list[CodexRow]]:
    """Return every value by its owner. `absent` are missing files, for which the shipped text holds.

    Raises: CodexError: the codex has a fault.
    """
    codex = found.sound()
    known = {each.name: each.value for each in entries(shipped, profile if profile in shipped.profiles else "default")}
    laid: dict[str, list[CodexRow]] = {}
    for entry in entries(codex, profile):
        edited = entry.name not in known or plain(known[entry.name]) != plain(entry.value)
        laid.setdefault(entry.owner, []).append(CodexRow(entry, _source(entry, found, absent), edited))
    return laid


def entries(codex: Codex, profile: str) -> Iterator[CodexEntry]:
    """Yield every value of a codex in a profile, in the order of its files."""
    yield from _shared_entries(codex)
    for name, persona in codex.personas.items():
        file = f"{persona.key}.toml"
        for key in ("core_identity", "core_method", "line", "form", "answer_form"):
            if getattr(persona, key):
                yield CodexEntry(name, key, getattr(persona, key), ((file, (key,), ""),))
        yield CodexEntry(name, "model", codex.model_for(name, profile), ((file, ("model",), ""), *_models(profile)))
        yield from _options(codex, name, profile)
        for key in ("triggers", "exemplars"):
            yield CodexEntry(name, key, getattr(persona, key), ((file, (key,), ""),))
        for key, text in persona.prompts.items():
            yield CodexEntry(name, f"prompts.{key}", text, ((file, ("prompts", key), ""),))
        for group, intents in (("pillars", persona.pillars), ("protocols", persona.protocols)):
            for number, intent in enumerate(intents):
                yield from _intent(name, file, (group, number), intent)


def _shared_entries(codex: Codex) -> Iterator[CodexEntry]:
    for key in ("charter", "house_rules", "default_model", "coder", "embedder"):
        places: list[tuple[str, KeyPath, str]] = [(MIND, (key,), "")]
        if key == "coder":
            places.append((MIND, ("default_model",), "default_model"))
        yield CodexEntry(SHARED, key, getattr(codex, key), tuple(places))
    for key in ("answer_form", "cycle_from"):
        yield CodexEntry(SHARED, key, getattr(codex, key), ((MIND, (key,), ""),))
    for name, profile in codex.profiles.items():
        for key in ("model", "coder", "embedder") if name != "default" else ():
            own = (MIND, ("profiles", name, key), "")
            model = ((MIND, ("profiles", name, "model"), "its model"),) if key == "coder" else ()
            top = "default_model" if key == "model" else key
            yield CodexEntry(
                SHARED, f"profiles.{name}.{key}", getattr(profile, key), (own, *model, (MIND, (top,), top))
            )
        for key, value in profile.options.items():
            path = ("profiles", name, "options", key)
            yield CodexEntry(SHARED, f"profiles.{name}.options.{key}", value, ((MIND, path, ""),))
    for number, absent in enumerate(codex.objects):
        yield CodexEntry(SHARED, f"objects.{absent.name}", absent.api, ((MIND, ("objects", number, "api"), ""),))


def _models(profile: str) -> tuple[tuple[str, KeyPath, str], ...]:
    """Return the places that give a model to a persona that names none."""
    default = (MIND, ("default_model",), "default_model")
    return (
        (default,)
        if profile == "default"
        else ((MIND, ("profiles", profile, "model"), _profile_label(profile)), default)
    )


def _options(codex: Codex, persona: str, profile: str) -> Iterator[CodexEntry]:
    file = f"{persona.lower()}.toml"
    for key, value in codex.options_for(persona, profile).items():
        replaced = (MIND, ("profiles", profile, "options", key), _profile_label(profile))
        yield CodexEntry(persona, f"options.{key}", value, (replaced, (file, ("options", key), "")))


def _profile_label(profile: str) -> str:
    return f"the profile {profile}"


_INTENT_KEYS = ("name", "inspiration", "intent", "line", "signature", "examples", "may_learn")
_OPTIONAL_KEYS = ("line", "when", "makes", "given", "metric", "triggers", "exemplars", "shelved")


def _intent(owner: str, file: str, path: tuple[str, int], intent: IntentText) -> Iterator[CodexEntry]:
    for key in dict.fromkeys((*_INTENT_KEYS, *_OPTIONAL_KEYS)):
        value = getattr(intent, key)
        if key not in _OPTIONAL_KEYS or value:
            yield CodexEntry(owner, f"{intent.slot}.{key}", value, ((file, (*path, key), ""),))


def _source(entry: CodexEntry, found: CodexReading, absent: Collection[str]) -> str:
    for file, path, called in entry.places:
        if _written(found.sources[file].values, path):
            where = f"{file}:{found.sources[file].line(path)}"
            shipped = "shipped " if file in absent else ""
            return f"{called} ({shipped}{where})" if called else f"{shipped}{where}"
    return "default"


def _written(values: Any, path: KeyPath) -> bool:
    for part in path:
        if isinstance(values, Mapping):
            if part not in values:
                return False
        elif not isinstance(values, list) or not isinstance(part, int) or part >= len(values):
            return False
        values = values[part]
    return True


def plain(value: object) -> Any:
    """Convert a value of a codex to JSON-compatible data."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


def parameters_of(codex: Codex, persona: str, profile: str) -> list[Any]:
    """Return everything that a persona's own model is made of, except its base's digest and an adapter."""
    made = value_checks.parameters(codex.options_for(persona, profile))
    return [codex.model_for(persona, profile), codex.personas[persona].system, made]


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


def summary_of_differences(before: Codex, after: Codex, was: str, now: str) -> CodexDifferences:
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
