"""The requests of genesis to Ollama: its version and its models."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from batos.inference import model_names
from batos.inference.ollama import catalogue
from batos.inference.ollama.chat import ChatRequest
from batos.protocol.errors import OllamaUnfit

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
