"""A codex in a folder that tests may edit, an image to build the graph in, and a daemon written by hand."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.stages import Stage, staged
from tests.minds.conftest import mind
from transaction import TransactionManager
from ZODB.Connection import Connection
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage

from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import Codex
from batos.inference import model_names
from batos.inference.ollama import transport
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.ollama.catalogue import ModelCard, ModelRow, PullProgress, RunnerRow
from batos.protocol.errors import ModelMissing, OllamaError, RequestRejected, StreamCut

__all__ = ["mind"]

Edit = Callable[[str, str, str], int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The shipped codex, copied."""
    copied = tmp_path / "codex"
    codices.install(copied)
    return copied


@pytest.fixture
def codex(folder: Path) -> Codex:
    """The shipped codex, read."""
    return codices.load(folder)


@pytest.fixture
def edit(folder: Path) -> Edit:
    """Replace a text that stands once in a file; answers the line on which the new text begins."""

    def replaced(file: str, old: str, new: str) -> int:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {file}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        return text[: text.index(old)].count("\n") + 1

    return replaced


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    """A connection to an empty image in a file, with a transaction begun."""
    db = DB(FileStorage(str(tmp_path / "image.fs")))
    manager = TransactionManager(explicit=True)
    opened = db.open(manager)
    manager.begin()
    yield opened
    manager.abort()
    opened.close()
    db.close()


@dataclass(slots=True)
class HandDaemon:
    """What genesis asks of a daemon, done in memory: it lists, pulls from `registry` and makes models."""

    registry: dict[str, int] = field(default_factory=dict)
    rows: dict[str, ModelRow] = field(default_factory=dict)
    refused: dict[str, OllamaError] = field(default_factory=dict)
    cuts: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    made_of: dict[str, tuple[str, str | None, Mapping[str, Any]]] = field(default_factory=dict)
    speaks: str = "0.33.0"
    forgets: bool = False
    blobs: set[str] = field(default_factory=set)
    busy: set[str] = field(default_factory=set)

    async def version(self) -> str:
        self.asked.append("version")
        return self.speaks

    async def list(self) -> list[ModelRow]:
        self.asked.append("list")
        return list(self.rows.values())

    async def pull(self, model: str) -> AsyncGenerator[PullProgress, None]:
        self.asked.append(f"pull {model}")
        yield PullProgress("pulling manifest")
        if model in self.refused:
            raise self.refused[model]
        if model not in self.registry:
            raise RequestRejected("pull model manifest: file does not exist")
        size = self.registry[model]
        yield PullProgress("pulling 0a0b", f"sha256:{model}", size, size // 2)
        if self.cuts.get(model, 0):
            self.cuts[model] -= 1
            raise StreamCut("the stream ended")
        yield PullProgress("pulling 0a0b", f"sha256:{model}", size, size)
        self.has(model, size)
        yield PullProgress("success")

    async def create(
        self,
        model: str,
        *,
        from_: str,
        system: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        adapters: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[PullProgress, None]:
        self.asked.append(f"create {model}")
        if model in self.refused:
            raise self.refused[model]
        if model_names.with_tag(from_) not in self.rows:
            raise ModelMissing(from_)
        assert set((adapters or {}).values()) <= self.blobs, "a file that was not uploaded"
        yield PullProgress("writing manifest")
        if not self.forgets:
            self.has(model, self.rows[model_names.with_tag(from_)].size)
            self.made_of[model] = (from_, system, dict(parameters or {}))
        yield PullProgress("success")

    async def ps(self) -> Sequence[RunnerRow]:
        self.asked.append("ps")
        return [RunnerRow(name, "", 1, 1, 4096, None) for name in sorted(self.busy)]

    async def show(self, model: str, *, verbose: bool = False) -> ModelCard:
        self.asked.append(f"show {model}")
        if model_names.with_tag(model) not in self.rows:
            raise ModelMissing(model)
        weights = f"FROM /blobs/sha256-{self.rows[model_names.with_tag(model)].digest}"
        return ModelCard(model, ("completion",), {}, weights, "", "", "llama", "", "")

    async def count(self, request: ChatRequest) -> int:
        self.asked.append(f"count {request.model}")
        if request.model in self.refused:
            raise self.refused[request.model]
        return sum(len(each["content"].encode()) for each in request.messages) // 4

    async def upload_blob(
        self, path: Path, digest: str | None = None, on_bytes: Callable[[int, int], None] | None = None
    ) -> str:
        file = transport.measure_file(path, digest)
        self.asked.append(f"upload {path.name}")
        self.blobs.add(file.digest)
        return file.digest

    async def unload(self, model: str) -> bool:
        self.asked.append(f"unload {model}")
        return model not in self.refused

    async def delete(self, model: str) -> None:
        self.asked.append(f"delete {model}")
        del self.rows[model_names.with_tag(model)]

    def has(self, model: str, size: int = 1) -> None:
        """The daemon has this model from now on."""
        name = model_names.with_tag(model)
        self.rows[name] = ModelRow(name, sha256(name.encode()).hexdigest(), size)


@pytest.fixture
def daemon() -> HandDaemon:
    """A daemon without models, with a registry that has what the shipped codex names."""
    return HandDaemon(
        {"llama3.1:8b-instruct-q4_K_M": 4_900, "llama3.2:3b-instruct-q4_K_M": 2_000, "all-minilm:latest": 46}
    )


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A home after its genesis, in an open image."""
    async with staged(tmp_path / "home") as made:
        yield made
