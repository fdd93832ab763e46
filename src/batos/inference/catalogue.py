"""What the daemon says of its models and runners, as values of our own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from batos.inference.client import ListResponse, ProcessResponse, ProgressResponse, ShowResponse

_FROM = re.compile(r"^FROM (.+)$", re.MULTILINE)
_ADAPTER = re.compile(r"^ADAPTER (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model on the daemon's disk; `size` in bytes counts all its layers, `digest` is 64 hex digits."""

    name: str
    digest: str
    size: int
    modified_at: datetime | None = None
    family: str = ""
    parameter_size: str = ""
    quantization: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What `show` says of a model; `info` is the GGUF's metadata, `parameters` one line per key and value."""

    name: str
    capabilities: tuple[str, ...]
    info: Mapping[str, Any]
    modelfile: str
    parameters: str
    template: str
    family: str
    parameter_size: str
    quantization: str

    @property
    def blob(self) -> str:
        """The path of the base's blob, "" if none is named: models with the same one share a runner."""
        found = _FROM.findall(self.modelfile)
        return found[0].strip() if found else ""

    @property
    def adapters(self) -> tuple[str, ...]:
        """The paths of the adapters' blobs."""
        return tuple(path.strip() for path in _ADAPTER.findall(self.modelfile))

    @property
    def trained_window(self) -> int | None:
        """The context length that the model was trained for, in tokens."""
        found = self.info.get(f"{self.info.get('general.architecture', '')}.context_length")
        return found if isinstance(found, int) else None


@dataclass(frozen=True, slots=True)
class RunnerRow:
    """A runner the daemon believes to be alive, under the name of the model that made it load; sizes in bytes."""

    name: str
    digest: str
    size: int
    size_vram: int
    context_length: int | None
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of a pull or create; `total` and `completed` are bytes, None where the daemon names none."""

    status: str
    digest: str | None = None
    total: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """One vector per text, in their order; `prompt_tokens` over all of them."""

    vectors: list[list[float]]
    prompt_tokens: int
    load_seconds: float
    total_seconds: float


def model_rows(listed: ListResponse) -> list[ModelRow]:
    """The rows of /api/tags, newest first."""
    rows = []
    for model in listed.models:
        details = model.details
        rows.append(
            ModelRow(
                name=model.model or "",
                digest=model.digest or "",
                size=int(model.size or 0),
                modified_at=model.modified_at,
                family=(details and details.family) or "",
                parameter_size=(details and details.parameter_size) or "",
                quantization=(details and details.quantization_level) or "",
                parent=(details and details.parent_model) or "",
            )
        )
    return rows


def model_card(name: str, shown: ShowResponse) -> ModelCard:
    """The card of /api/show."""
    details = shown.details
    return ModelCard(
        name=name,
        capabilities=tuple(shown.capabilities or ()),
        info=shown.modelinfo or {},
        modelfile=shown.modelfile or "",
        parameters=shown.parameters or "",
        template=shown.template or "",
        family=(details and details.family) or "",
        parameter_size=(details and details.parameter_size) or "",
        quantization=(details and details.quantization_level) or "",
    )


def runner_rows(listed: ProcessResponse) -> list[RunnerRow]:
    """The rows of /api/ps."""
    return [
        RunnerRow(
            name=row.model or row.name or "",
            digest=row.digest or "",
            size=int(row.size or 0),
            size_vram=int(row.size_vram or 0),
            context_length=row.context_length,
            expires_at=row.expires_at,
        )
        for row in listed.models
    ]


def progress(line: ProgressResponse) -> Progress:
    """One line of a pull or create."""
    return Progress(line.status or "", line.digest, line.total, line.completed)
