"""The metadata of a model's weights: architecture, context length, shape of the attention, size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from model_files import gguf
from ollama_emulator.go.json import encode, human_number
from ollama_emulator.library import quantizing

F16_BYTES = 2
_ALWAYS = ("model_format", "model_family", "model_families", "model_type", "file_type")
_TOLD = (
    "renderer",
    "parser",
    "requires",
    "remote_host",
    "remote_model",
    "capabilities",
    "context_length",
    "embedding_length",
    "base_name",
    "draft",
)
_MADE_FOR = {"architecture": "amd64", "os": "linux"}
NOT_GGUF = "supplied file was not in GGUF format"


@dataclass(frozen=True, slots=True)
class Card:
    """The metadata of a file of weights: `info` as in a GGUF header, `parameters` the number of its parameters."""

    info: Mapping[str, Any]
    parameters: int
    quantization: str
    tensors: tuple[dict[str, Any], ...] = ()
    size_label: str = ""
    thinking: bool = field(default=False)

    @property
    def architecture(self) -> str:
        """Return the name of the architecture, such as `llama`."""
        return str(self.info.get("general.architecture", "llama"))

    def value(self, key: str, default: Any = None) -> Any:
        """Return the architecture's metadata under a key such as `context_length`."""
        return self.info.get(f"{self.architecture}.{key}", default)

    @property
    def trained_window(self) -> int:
        """Return the context length that the model was trained for, in tokens."""
        return int(self.value("context_length", 2048))

    @property
    def width(self) -> int:
        """Return the number of dimensions of an embedding."""
        return int(self.value("embedding_length", 64))

    @property
    def embeds(self) -> bool:
        """Return whether the model gives only embeddings."""
        return self.value("pooling_type") is not None

    @property
    def adapter(self) -> bool:
        """Return whether the file is an adapter."""
        return self.info.get("general.type") == "adapter"

    @property
    def template(self) -> str:
        """Return the Jinja chat template in the weights, or ""."""
        return str(self.info.get("tokenizer.chat_template", ""))

    def kv_bytes(self, window: int, parallel: int) -> int:
        """Return the bytes of an f16 cache of keys and values for `parallel` windows of `window` tokens."""
        heads = int(self.value("attention.head_count", 1))
        cached = self.value("attention.head_count_kv", heads)
        layers = int(self.value("block_count", 1))
        total = sum(cached) if isinstance(cached, list) else int(cached) * layers
        side = self.width // max(heads, 1)
        row = int(self.value("attention.key_length", side)) + int(self.value("attention.value_length", side))
        return window * parallel * total * row * F16_BYTES

    @property
    def projector(self) -> bool:
        """Return whether the file projects images or sound for another model, and is no model itself."""
        if self.info.get("general.type") in ("projector", "mmproj"):
            return True
        blocks = self.value("block_count", 0)
        sees = self.info.get("clip.has_vision_encoder") or self.info.get("clip.has_audio_encoder")
        return not blocks and bool(self.value("vision.block_count", 0) or (self.architecture == "clip" and sees))

    def details(self) -> dict[str, Any]:
        """Return the `details` of /api/ps."""
        return {
            "parent_model": "",
            "format": "gguf",
            "family": self.architecture,
            "families": [self.architecture],
            "parameter_size": self.size_label or human_number(self.parameters),
            "quantization_level": self.quantization,
        }

    def model_info(self, verbose: bool) -> dict[str, Any]:
        """Return the `model_info` of /api/show, sorted by key, with null for lists unless `verbose`."""
        shown: dict[str, Any] = {
            "general.architecture": self.architecture,
            "general.parameter_count": self.parameters,
        }
        for key, value in self.info.items():
            if key not in ("general.name", "tokenizer.chat_template"):
                shown[key] = None if isinstance(value, list) and not verbose else value
        return dict(sorted(shown.items()))


def card_of_header(header: gguf.GgufHeader) -> Card:
    """Return the metadata of an uploaded file from its GGUF header."""
    kind = gguf.FILE_TYPES.get(int(header.metadata.get("general.file_type", 1)), "F16")
    tensors = tuple({"name": each.name, "type": each.type, "shape": list(each.shape)} for each in header.tensors)
    return Card(header.metadata, header.parameters, kind, tensors)


def quantize(card: Card, kind: str) -> tuple[Card, int]:
    """Return the metadata after quantisation to `kind`, and the growth in bytes, negative if it shrinks."""
    numbers = {label: number for number, (label, _, _) in gguf.TYPES.items()}
    before = [(str(each["name"]), tuple(each["shape"]), numbers.get(each["type"], -1)) for each in card.tensors]
    after = quantizing.kinds(before, kind)
    pairs = [(shape, old, new) for (_, shape, old), new in zip(before, after, strict=True) if old != new]
    grown = sum(quantizing.size(shape, new) - quantizing.size(shape, old) for shape, old, new in pairs)
    changed = zip(card.tensors, after, strict=True)
    tensors = tuple(
        {**each, "type": gguf.TYPES[new][0] if new in gguf.TYPES else each["type"]} for each, new in changed
    )
    info = {**card.info, "general.file_type": quantizing.FILE_TYPES[kind]}
    return replace(card, quantization=kind, tensors=tensors, info=info), grown


def config(card: Card) -> dict[str, Any]:
    """Return the configuration of a model with these weights, for its manifest."""
    details = card.details()
    return {
        "model_format": "gguf",
        "model_family": details["family"],
        "model_families": details["families"],
        "model_type": details["parameter_size"],
        "file_type": details["quantization_level"],
    }


def config_text(config: Mapping[str, Any]) -> bytes:
    """Return a configuration as the daemon writes it: some fields always, others only if not empty."""
    always = {key: config.get(key, "") for key in _ALWAYS} | {"model_families": config.get("model_families")}
    told = {key: config[key] for key in _TOLD if config.get(key)}
    return (encode({**{key: always[key] for key in _ALWAYS}, **told, **_MADE_FOR}) + "\n").encode()
