"""A persona's own model: what it is made of, the name that follows from that, and the Modelfile to make it by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from batos.errors import CodexError, UsageError
from batos.genesis.codex import Codex, digest_of
from batos.genesis.options import parameters

_QUOTES = '"""'


@dataclass(frozen=True, slots=True)
class Recipe:
    """What one persona's model is made of; `base_digest` is the base's in the daemon's list (64 hex digits)."""

    persona: str
    base: str
    base_digest: str
    system: str
    parameters: Mapping[str, Any]
    adapter_digests: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """`batos-<persona>:<12 hex digits>`: another base, text, parameter or adapter is another name."""
        made_of = [self.base_digest, self.system, dict(self.parameters), list(self.adapter_digests)]
        return f"{family(self.persona)}:{digest_of(made_of)[:12]}"


def family(persona: str) -> str:
    """The name without its tag, under which all models of a persona go."""
    return f"batos-{persona.lower()}"


def recipe(codex: Codex, persona: str, profile: str, base_digest: str) -> Recipe:
    """The recipe of a persona's model on a base that the daemon has."""
    return Recipe(
        persona=persona,
        base=codex.model_for(persona, profile),
        base_digest=base_digest,
        system=codex.personas[persona].system,
        parameters=parameters(codex.options_for(persona, profile)),
    )


def text(made: Recipe) -> str:
    """The Modelfile of a recipe, for `ollama create NAME -f FILE`.

    CodexError if a text holds three double quotes in a row: a Modelfile has no way to write them.
    """
    lines = [
        f"# {made.persona}, written by `batos genesis`; it is written again when the codex changes.",
        f"# By hand: ollama create {family(made.persona)} -f {file_name(made.persona)}",
        f"FROM {made.base}",
        *(line for name, value in sorted(made.parameters.items()) for line in _parameter(made.persona, name, value)),
        f"SYSTEM {_quoted(made.persona, 'core_identity', made.system)}",
    ]
    return "\n".join(lines) + "\n"


def file_name(persona: str) -> str:
    """The name of a persona's Modelfile: `batos-robin.Modelfile`."""
    return f"{family(persona)}.Modelfile"


def write(folder: Path, recipes: Iterable[Recipe]) -> list[Path]:
    """Write the Modelfiles whose content differs; answers their paths. A file is replaced whole or not at all.

    UsageError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for made in recipes if _replaced(path := folder / file_name(made.persona), text(made))]
    except OSError as error:
        remedy = "Make it a folder that you may write, with room on its disk."
        raise UsageError(f"the Modelfiles cannot be written to {folder}: {error.strerror}", remedy=remedy) from error


def _replaced(path: Path, content: str) -> bool:
    data = content.encode()
    if path.is_file() and path.read_bytes() == data:
        return False
    beside = path.with_suffix(".new")
    beside.write_bytes(data)
    beside.replace(path)
    return True


def _parameter(persona: str, name: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [f"PARAMETER {name} {_quoted(persona, name, item)}" for item in value]
    return [f"PARAMETER {name} {str(value).lower() if isinstance(value, bool) else value}"]


def _quoted(persona: str, key: str, value: str) -> str:
    if _QUOTES in value:
        raise CodexError(
            f"`{key}` has three double quotes in a row, which no Modelfile can hold",
            file=f"{persona.lower()}.toml",
            remedy="Write single quotes there.",
            field=key,
        )
    return f"{_QUOTES}{value}{_QUOTES}" if "\n" in value or '"' in value else f'"{value}"'
