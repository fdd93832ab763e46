"""The metadata of a model's weights: architecture, window, attention shape, size."""

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
    """The metadata of a set of weights: `info` is GGUF's, `parameters` a count, `template` the chat template that it
    carries.
    """

    info: Mapping[str, Any]
    parameters: int
    quantization: str
    tensors: tuple[dict[str, Any], ...] = ()
    size_label: str = ""
    thinking: bool = field(default=False)

    @property
    def architecture(self) -> str:
        """Return the architecture, `llama` and the like."""
        return str(self.info.get("general.architecture", "llama"))

    def value(self, key: str, default: Any = None) -> Any:
        """Return a metadata value of the architecture, `context_length` and the like."""
        return self.info.get(f"{self.architecture}.{key}", default)

    @property
    def trained_window(self) -> int:
        """Return the number of tokens that the weights were trained for."""
        return int(self.value("context_length", 2048))

    @property
    def width(self) -> int:
        """Return the length of an embedding."""
        return int(self.value("embedding_length", 64))

    @property
    def embeds(self) -> bool:
        """Return whether the weights give embeddings, and then nothing else."""
        return self.value("pooling_type") is not None

    @property
    def adapter(self) -> bool:
        """Return whether the file is an adapter."""
        return self.info.get("general.type") == "adapter"

    @property
    def template(self) -> str:
        """Return the chat template that the weights carry, or ""."""
        return str(self.info.get("tokenizer.chat_template", ""))

    def kv_bytes(self, window: int, parallel: int) -> int:
        """Return bytes of the f16 cache of keys and values."""
        heads = int(self.value("attention.head_count", 1))
        cached = self.value("attention.head_count_kv", heads)
        layers = int(self.value("block_count", 1))
        total = sum(cached) if isinstance(cached, list) else int(cached) * layers
        side = self.width // max(heads, 1)
        row = int(self.value("attention.key_length", side)) + int(self.value("attention.value_length", side))
        return window * parallel * total * row * F16_BYTES

    @property
    def projector(self) -> bool:
        """Return whether the file is a projector for images or sound, and no model."""
        if self.info.get("general.type") in ("projector", "mmproj"):
            return True
        blocks = self.value("block_count", 0)
        sees = self.info.get("clip.has_vision_encoder") or self.info.get("clip.has_audio_encoder")
        return not blocks and bool(self.value("vision.block_count", 0) or (self.architecture == "clip" and sees))

    def details(self) -> dict[str, Any]:
        """Return the `details` object of ps."""
        return {
            "parent_model": "",
            "format": "gguf",
            "family": self.architecture,
            "families": [self.architecture],
            "parameter_size": self.size_label or human_number(self.parameters),
            "quantization_level": self.quantization,
        }

    def model_info(self, verbose: bool) -> dict[str, Any]:
        """Return the `model_info` of show: sorted, arrays as null unless `verbose`."""
        shown: dict[str, Any] = {
            "general.architecture": self.architecture,
            "general.parameter_count": self.parameters,
        }
        for key, value in self.info.items():
            if key not in ("general.name", "tokenizer.chat_template"):
                shown[key] = None if isinstance(value, list) and not verbose else value
        return dict(sorted(shown.items()))


def of_header(header: gguf.GgufHeader) -> Card:
    """Return the card of an uploaded file."""
    kind = gguf.FILE_TYPES.get(int(header.metadata.get("general.file_type", 1)), "F16")
    tensors = tuple({"name": each.name, "type": each.type, "shape": list(each.shape)} for each in header.tensors)
    return Card(header.metadata, header.parameters, kind, tensors)


def quantized(card: Card, kind: str) -> tuple[Card, int]:
    """Return the same weights at another quantisation, and how many bytes more they take."""
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
    """Return the configuration that a manifest keeps of its weights."""
    details = card.details()
    return {
        "model_format": "gguf",
        "model_family": details["family"],
        "model_families": details["families"],
        "model_type": details["parameter_size"],
        "file_type": details["quantization_level"],
    }


def config_text(config: Mapping[str, Any]) -> bytes:
    """Return a configuration as the daemon writes it: some fields always, others only when they say something."""
    always = {key: config.get(key, "") for key in _ALWAYS} | {"model_families": config.get("model_families")}
    told = {key: config[key] for key in _TOLD if config.get(key)}
    return (encode({**{key: always[key] for key in _ALWAYS}, **told, **_MADE_FOR}) + "\n").encode()
