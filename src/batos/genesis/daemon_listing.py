"""The requests of genesis to Ollama: its version, its models, and its state within a moment."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from batos.inference import model_names
from batos.inference.ollama import catalogue
from batos.inference.ollama.chat import ChatRequest
from batos.inference.vram.placement import place_of
from batos.protocol.errors import BatosError, ModelMissing, OllamaTimeout, OllamaUnfit
from batos.protocol.image_documents import StandingDocument
from batos.protocol.mission_documents import ErrorDocument, LoadedModel
from batos.protocol.server_documents import MindStatus, StandingStatus

#: The oldest daemon whose wire is the one that the bridge knows.
OLDEST = (0, 30)

Runners = Sequence[catalogue.RunnerRow]


class GenesisDaemon(Protocol):
    """The part of the bridge that genesis needs."""

    async def version(self) -> str:
        """Return the daemon's version."""
        ...

    async def list(self) -> Sequence[catalogue.ModelRow]:
        """List the daemon's models."""
        ...

    async def show(self, model: str, *, verbose: bool = False) -> catalogue.ModelCard:
        """Return a model's card, with its tensors if `verbose`."""
        ...

    async def ps(self) -> Runners:
        """List the models in memory."""
        ...

    def pull(self, model: str) -> AsyncGenerator[catalogue.PullProgress, None]:
        """Fetch a model."""
        ...

    async def upload_blob(
        self, path: Path, digest: str | None = None, on_bytes: Callable[[int, int], None] | None = None
    ) -> str:
        """Give it a file, unless it has it; the file's digest, which is computed where it is not given."""
        ...

    def create(
        self,
        model: str,
        *,
        from_: str,
        system: str | None = None,
        parameters: Mapping[str, object] | None = None,
        adapters: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[catalogue.PullProgress, None]:
        """Make a model from one it has."""
        ...

    async def count(self, request: ChatRequest) -> int:
        """Count the tokens of a prompt."""
        ...

    async def unload(self, model: str) -> bool:
        """Take a model out of memory; whether it left."""
        ...

    async def delete(self, model: str) -> None:
        """Delete a model."""
        ...


@dataclass(frozen=True, slots=True)
class DaemonModels:
    """The daemon's version and its models at one moment."""

    version: str
    rows: tuple[catalogue.ModelRow, ...] = field(repr=False)

    def row(self, name: str) -> catalogue.ModelRow | None:
        """Return the model of that name, or None. Names are compared without case, as the daemon does."""
        key = model_names.key(name)
        return next((row for row in self.rows if model_names.key(row.name) == key), None)


async def look(daemon: GenesisDaemon, version: str | None = None) -> DaemonModels:
    """Ask the daemon what it is and has: two requests, or one where the version is known.

    OllamaUnfit if it is older than our wire; any other OllamaError if it cannot be asked.
    """
    checked = version or _checked_version(await daemon.version())
    return DaemonModels(checked, tuple(await daemon.list()))


def _checked_version(version: str) -> str:
    numbers = re.match(r"v?(\d+)\.(\d+)", version)
    found = (int(numbers[1]), int(numbers[2])) if numbers else None
    if found is not None and found != (0, 0) and found < OLDEST:
        raise OllamaUnfit(f"this Ollama is {version}, and BAT OS needs 0.30 or newer")
    return version


#: Seconds that the daemon has to answer in.
PATIENCE: Final = 1.5


async def ask_standing(
    daemon: GenesisDaemon, models: Mapping[str, str], patience: float = PATIENCE
) -> StandingDocument:
    """Ask the daemon for {answers, version, loaded, missing, error}, held against the models that personas use.

    `models` has a model's name for each persona, and is empty before genesis. `error` is why it cannot be thought with,
    None if it can.
    """
    try:
        async with asyncio.timeout(patience):
            listed, runners = await look(daemon), await daemon.ps()
    except TimeoutError:
        late = OllamaTimeout("reply", patience)
        return {"answers": False, "version": None, "loaded": [], "missing": [], "error": late.as_dict()}
    except BatosError as error:
        return {"answers": False, "version": None, "loaded": [], "missing": [], "error": error.as_dict()}
    missing = sorted({name for name in models.values() if listed.row(name) is None})
    lacks = _lacks(models, missing)
    return {
        "answers": True,
        "version": listed.version,
        "loaded": loaded_models(runners),
        "missing": missing,
        "error": None if lacks is None else lacks.as_dict(),
    }


def loaded_models(runners: Runners) -> list[LoadedModel]:
    """List what is in memory, and where, as samples have it."""
    return [
        {
            "model": each.name,
            "where": place_of(each, runners),
            "size": each.size,
            "size_vram": each.size_vram,
            "context_length": each.context_length,
        }
        for each in runners
    ]


def _lacks(models: Mapping[str, str], missing: list[str]) -> BatosError | None:
    if not models:
        return ModelMissing("", "the mind's models are not made yet", remedy="Run `batos genesis`.")
    if missing:
        return ModelMissing(missing[0], f"Ollama lacks {', '.join(missing)}")
    return None


async def add_standing(
    found: MindStatus, daemon: GenesisDaemon, before: Sequence[ErrorDocument] = (), patience: float = PATIENCE
) -> StandingStatus:
    """Add what the daemon says now, and what keeps a question from being answered, with what does so `before`."""
    said = await ask_standing(daemon, found["models"], patience)
    reasons = [*before, *([] if said["error"] is None else [said["error"]])]
    return {**found, "ollama": {**found["ollama"], **said}, "ready": not reasons, "reasons": reasons}
