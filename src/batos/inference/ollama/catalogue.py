"""Models and runners as the daemon describes them, converted to types of our own."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from batos.inference.ollama.client import (
    MOST,
    ListResponse,
    ProcessResponse,
    ProgressResponse,
    ShowResponse,
    check_count,
    clean,
)
from batos.protocol.errors import WireError

_VERSION_MOST = 100  # characters
_FROM = re.compile(r"^FROM (.+)$", re.MULTILINE)
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([KMBT]?)", re.IGNORECASE)
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
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
    """The description of a model by `show`: `info` is the GGUF's metadata, `parameters` one line for each key and
    value.

    `tensors` is each tensor's shape (input dimension first) by name, empty unless everything was asked for.
    """

    name: str
    capabilities: tuple[str, ...]
    info: Mapping[str, Any]
    modelfile: str
    parameters: str
    template: str
    family: str
    parameter_size: str
    quantization: str
    tensors: Mapping[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    @property
    def blob(self) -> str:
        """Return the path of the base's blob, "" if the modelfile names none. Models with the same blob share
        a runner.
        """
        found = _FROM.findall(self.modelfile)
        return found[0].strip() if found else ""

    @property
    def adapters(self) -> tuple[str, ...]:
        """Return the paths of the adapters' blobs."""
        return tuple(path.strip() for path in _ADAPTER.findall(self.modelfile))

    @property
    def parameter_count(self) -> int:
        """Return the number of the model's parameters, 0 if the daemon does not tell it."""
        found = self.info.get("general.parameter_count")
        return found if type(found) is int and found > 0 else parameters_in(self.parameter_size)

    @property
    def trained_window(self) -> int | None:
        """Return the context length in tokens that the model was trained for, or None."""
        found = self.info.get(f"{self.info.get('general.architecture', '')}.context_length")
        return found if type(found) is int and found > 0 else None


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
class PullProgress:
    """A line of a pull or create; `total` and `completed` in bytes, None if the daemon names none."""

    status: str
    digest: str | None = None
    total: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Embedding:
    """Vectors of texts in the order of the texts; `prompt_tokens` counts all of them."""

    vectors: list[list[float]]
    prompt_tokens: int
    load_seconds: float
    total_seconds: float


def parameters_in(size: str) -> int:
    """Return the number of parameters that a size such as `134.52M` means, 0 if it means none.

    >>> parameters_in("134.52M"), parameters_in("8.0B"), parameters_in("")
    (134520000, 8000000000, 0)
    """
    found = _SIZE.fullmatch(size.strip())
    return round(float(found[1]) * _UNITS[found[2].upper()]) if found else 0


def version_of(body: bytes) -> str:
    """Read the version from the reply of /api/version.

    Raises: WireError: the reply names none.
    """
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    version = said.get("version") if isinstance(said, dict) else None
    if not isinstance(version, str) or not version or len(version) > _VERSION_MOST or not version.isprintable():
        raise WireError("the server does not report its version of Ollama")
    return version


def vectors_of(embeddings: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    """Read the `count` vectors from the reply of /api/embed.

    Raises: WireError: there are more or fewer, or a number is not finite.
    """
    if len(embeddings) != count:
        raise WireError(f"{count} texts were sent and {len(embeddings)} vectors came back")
    if not all(math.isfinite(sum(vector)) for vector in embeddings):
        raise WireError("a vector came back with values that are not finite numbers")
    return [list(vector) for vector in embeddings]


def model_rows(listed: ListResponse) -> list[ModelRow]:
    """Convert the rows of /api/tags, newest first."""
    rows = []
    for model in listed.models:
        details = model.details
        rows.append(
            ModelRow(
                name=clean(model.model),
                digest=clean(model.digest),
                size=check_count(model.size, "size"),
                modified_at=model.modified_at,
                family=clean(details.family if details else None),
                parameter_size=clean(details.parameter_size if details else None),
                quantization=clean(details.quantization_level if details else None),
                parent=clean(details.parent_model if details else None),
            )
        )
    return rows


def model_card(name: str, shown: ShowResponse) -> ModelCard:
    """Convert the reply of /api/show."""
    details = shown.details
    return ModelCard(
        name=name,
        capabilities=tuple(map(clean, shown.capabilities or ())),
        info={clean(key): _clean_value(value) for key, value in (shown.modelinfo or {}).items()},
        modelfile=clean(shown.modelfile),
        parameters=clean(shown.parameters),
        template=clean(shown.template),
        family=clean(details.family if details else None),
        parameter_size=clean(details.parameter_size if details else None),
        quantization=clean(details.quantization_level if details else None),
    )


def whole_card(name: str, body: bytes) -> ModelCard:
    """Convert the reply of a verbose /api/show. Its arrays are megabytes: run this in a thread, not on the loop.

    Raises: WireError: the reply is not of that form.
    """
    try:
        found = json.loads(body)
        card = model_card(name, ShowResponse.model_validate(found))
        return replace(card, tensors=dict(map(_tensor, found.get("tensors") or ())))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as raw:  # pydantic's is a ValueError
        raise WireError("Ollama's description of a model does not follow its protocol") from raw


def _tensor(row: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    return clean(row["name"]), tuple(check_count(side, "side of a tensor") for side in row["shape"])


def _clean_value(value: object) -> Any:
    """Return a value of the metadata unchanged or with clean text.

    Raises: WireError: a number that no file's header can hold.
    """
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, float | int) and not abs(value) <= MOST:  # NaN is not either
        raise WireError("Ollama reports an impossible number of a model: more than 2**53")
    return value


def runner_rows(listed: ProcessResponse) -> list[RunnerRow]:
    """Convert the rows of /api/ps."""
    return [
        RunnerRow(
            name=clean(row.model or row.name),
            digest=clean(row.digest),
            size=check_count(row.size, "size"),
            size_vram=check_count(row.size_vram, "size"),
            context_length=_counted_or_none(row.context_length),
            expires_at=row.expires_at,
        )
        for row in listed.models
    ]


def progress(line: ProgressResponse) -> PullProgress:
    """Convert a line of a pull or create."""
    return PullProgress(
        clean(line.status),
        None if line.digest is None else clean(line.digest),
        _counted_or_none(line.total),
        _counted_or_none(line.completed),
    )


def _counted_or_none(value: int | None) -> int | None:
    return None if value is None else check_count(value, "number")
