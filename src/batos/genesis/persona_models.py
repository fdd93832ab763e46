"""The models of personas: their recipes and names, a Modelfile to read, and the image's records of their origin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from batos import home_folder
from batos.genesis.adapters import repository
from batos.genesis.adapters.inventory import Adapter
from batos.genesis.codex.codex import PILLARS, Codex
from batos.genesis.codex.declarations import prototype_name
from batos.genesis.codex.value_checks import digest_of, parameters
from batos.image import roots
from batos.image.roots import Root, named_objects
from batos.inference.ollama.catalogue import ModelRow
from batos.objects.prototype import own_slots
from batos.protocol.errors import CodexError, UsageError

_QUOTES = '"""'
_WRITTEN = re.compile(r"# Written by `batos genesis` \(([0-9a-f]{12})\)")
_OURS = re.compile(rf"batos-(?:{'|'.join(PILLARS)})(?:-[a-z0-9_.-]+)?:[0-9a-f]{{12}}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that a model is made of: a persona's plain model, or that with an adapter.

    `base_digest` is the base's in the daemon's list (64 hex digits).
    """

    persona: str
    base: str
    base_digest: str
    system: str
    parameters: Mapping[str, object]
    adapter: Adapter | None = None

    @property
    def digest(self) -> str:
        """Return the sha256 (hex) of everything that the model is made of: base, text, parameters, adapter."""
        adapter = [] if self.adapter is None else sorted(self.adapter.digests.values())
        return digest_of([self.base_digest, self.system, dict(self.parameters), adapter])

    @property
    def name(self) -> str:
        """Return `batos-<persona>[-<adapter>]:<12 hex digits>`: any other recipe has another name."""
        return f"{self.family}:{self.digest[:12]}"

    @property
    def family(self) -> str:
        """Return the name without its tag, which all models of a persona and adapter share."""
        return family(self.persona, None if self.adapter is None else self.adapter.name)

    @property
    def label(self) -> str:
        """Return the name for people: `ROBIN`, or `ROBIN with the adapter poet`."""
        return self.persona if self.adapter is None else f"{self.persona} with the adapter {self.adapter.name}"


def family(persona: str, adapter: str | None = None) -> str:
    """Return `batos-robin`, or `batos-robin-poet`."""
    return f"batos-{persona.lower()}" if adapter is None else f"batos-{persona.lower()}-{adapter.lower()}"


def is_of_a_persona(name: str) -> bool:
    """Test if a model's name has the form that genesis gives: `batos-<persona>[-<adapter>]:<12 hex digits>`."""
    return _OURS.fullmatch(name) is not None


def recipe(codex: Codex, persona: str, profile: str, base_digest: str, adapter: Adapter | None = None) -> Recipe:
    """Return the recipe of a persona's model on a base that the daemon has."""
    return Recipe(
        persona=persona,
        base=codex.model_for(persona, profile),
        base_digest=base_digest,
        system=codex.personas[persona].system,
        parameters=parameters(codex.options_for(persona, profile)),
        adapter=adapter,
    )


def text(made: Recipe, adapter: str = "") -> str:
    """Return the Modelfile of a recipe for `ollama create NAME -f FILE`; `adapter` is the path in its ADAPTER line.

    Raises: CodexError: a text holds three double quotes in a row, which no Modelfile can hold.
    """
    lines = [
        f"# {made.label}: made of the codex, and written again when that changes.",
        f"# By hand: ollama create {made.family} -f {file_name(made)}",
        f"FROM {made.base}",
        *([f"ADAPTER {adapter}"] if made.adapter is not None else []),
        *(line for name, value in sorted(made.parameters.items()) for line in _parameter(made.persona, name, value)),
        f"SYSTEM {_quote(made.persona, 'core_identity', made.system)}",
    ]
    body = "\n".join(lines) + "\n"
    return f"# Written by `batos genesis` ({digest_of(body)[:12]})\n{body}"


def file_name(made: Recipe) -> str:
    """Return the name of a recipe's Modelfile: `batos-robin.Modelfile`, `batos-robin-poet.Modelfile`."""
    return f"{made.family}.Modelfile"


def write(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the Modelfiles whose content differs (file name to text), and remove those of ours that are no longer
    wanted; answers the paths of both. A file is replaced whole or not at all; one that a person changed is not removed.

    UsageError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = [path for name, content in texts.items() if _replace_if_changed(path := folder / name, content)]
        return [*written, *_remove_stale(folder, texts)]
    except OSError as error:
        remedy = "Make it a folder that you may write, with room on its disk."
        raise UsageError(f"the Modelfiles cannot be written to {folder}: {error.strerror}", remedy=remedy) from error


def is_current(folder: Path, made: Recipe) -> bool:
    """Test if a folder has a recipe's Modelfile as it should be, and the ADAPTER line leads to a file."""
    try:
        content = (folder / file_name(made)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    adapter = next((line[8:] for line in content.splitlines() if line.startswith("ADAPTER ")), "")
    return content == text(made, adapter) and (made.adapter is None or (folder / adapter).exists())


def _replace_if_changed(path: Path, content: str) -> bool:
    if path.is_file() and path.read_bytes() == content.encode():
        return False
    home_folder.write_shared(path, content)
    return True


def _remove_stale(folder: Path, wanted: Iterable[str]) -> list[Path]:
    stale = [path for path in sorted(folder.glob("batos-*.Modelfile")) if path.name not in wanted and _is_ours(path)]
    for path in stale:
        path.unlink()
    return stale


def _is_ours(path: Path) -> bool:
    """Test if a file is exactly what genesis wrote: its first line has the digest of the others."""
    try:
        first, _, body = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return False
    found = _WRITTEN.fullmatch(first)
    return found is not None and found[1] == digest_of(body)[:12]


def _parameter(persona: str, name: str, value: object) -> list[str]:
    if isinstance(value, list):
        return [f"PARAMETER {name} {_quote(persona, name, item)}" for item in value]
    return [f"PARAMETER {name} {str(value).lower() if isinstance(value, bool) else value}"]


def _quote(persona: str, key: str, value: str) -> str:
    if _QUOTES in value:
        raise CodexError(
            f"`{key}` has three double quotes in a row, which no Modelfile can hold",
            file=f"{persona.lower()}.toml",
            remedy="Write single quotes there.",
            field=key,
        )
    return f"{_QUOTES}{value}{_QUOTES}" if "\n" in value or '"' in value else f'"{value}"'


#: The slot of a persona with a model of Ollama that it thinks with instead of the one that genesis made.
OTHER_MODEL = "other_model"
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


def acting_models(root: Root) -> dict[str, str]:
    """Return the model that each persona thinks with: that of its slot OTHER_MODEL, else the one that genesis made."""
    objects = named_objects(root)
    used = read_record(root).used
    return {who: own_slots(objects[prototype_name(who)]).get(OTHER_MODEL) or made for who, made in used.items()}


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
