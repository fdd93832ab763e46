"""A simulated model registry: its models, the sizes of their downloads, and its refusals."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import HOST, Name, parse

_KEYS = ("models", "offline", "only")
_PAGE = "The emulator's manual says under 'The registry' which keys it has."
ABSENT = "pull model manifest: file does not exist"
LLAMA = (
    "{{- if .Tools }}<|start_header_id|>system<|end_header_id|>\n\n{{ .Tools }}<|eot_id|>{{ end }}"
    "{{- range .Messages }}<|start_header_id|>{{ .Role }}<|end_header_id|>\n\n{{ .Content }}<|eot_id|>{{ end }}"
    "<|start_header_id|>assistant<|end_header_id|>\n\n"
)
CHATML = "{{- range .Messages }}<|im_start|>{{ .Role }}\n{{ .Content }}<|im_end|>\n{{ end }}<|im_start|>assistant\n"
_CHATML_TOOLS = "{{- if .Tools }}<|im_start|>system\n{{ .Tools }}<|im_end|>\n{{ end }}" + CHATML
_STOPS = {LLAMA: ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], CHATML: ["<|im_start|>", "<|im_end|>"]}


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """A model that can be pulled; `size` is the size of its weights in bytes.

    `error` is the registry's reply in place of the model. `fails_at` breaks the download after that many bytes, `cuts`
    times. `seconds` is the time of the whole download; None takes the emulator's setting. The first download of a
    `corrupt` entry fails the check of its digest.
    """

    name: str
    architecture: str = "llama"
    parameters: int = 1_000_000
    label: str = ""
    quantization: str = "Q4_K_M"
    size: int = 600_000
    blocks: int = 2
    heads: int = 4
    kv_heads: int = 2
    key_length: int = 16
    window: int = 2048
    width: int = 64
    template: str = LLAMA
    params: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    license: str = ""
    embeds: bool = False
    thinking: bool = False
    error: str = ""
    fails_at: int | None = None
    cuts: int = 1
    seconds: float | None = None
    corrupt: bool = False

    @property
    def digest(self) -> str:
        """Return the invented digest of the weights, which depends only on the entry."""
        text = f"{self.name}|{self.architecture}|{self.parameters}|{self.quantization}|{self.size}"
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()

    @property
    def card(self) -> Card:
        """Return the metadata of the weights, as read from a GGUF header."""
        prefix = self.architecture
        info: dict[str, Any] = {
            "general.architecture": prefix,
            "general.file_type": 15 if self.quantization == "Q4_K_M" else 1,
            "general.quantization_version": 2,
            f"{prefix}.attention.head_count": self.heads,
            f"{prefix}.attention.head_count_kv": self.kv_heads,
            f"{prefix}.attention.key_length": self.key_length,
            f"{prefix}.attention.value_length": self.key_length,
            f"{prefix}.block_count": self.blocks,
            f"{prefix}.context_length": self.window,
            f"{prefix}.embedding_length": self.width,
        }
        if self.embeds:
            info |= {f"{prefix}.attention.causal": False, f"{prefix}.pooling_type": 1}
        return Card(info, self.parameters, self.quantization, (), self.label, self.thinking)


_LLAMA_8B = RegistryEntry(
    "llama3.1:8b-instruct-q4_K_M",
    "llama",
    8_030_261_248,
    "8.0B",
    "Q4_K_M",
    4_920_738_944,
    32,
    32,
    8,
    128,
    131_072,
    4096,
)
_LLAMA_3B = RegistryEntry(
    "llama3.2:3b-instruct-q4_K_M",
    "llama",
    3_212_749_888,
    "3.2B",
    "Q4_K_M",
    2_019_377_376,
    28,
    24,
    8,
    128,
    131_072,
    3072,
)
_LLAMA_1B = RegistryEntry(
    "llama3.2:1b-instruct-q8_0", "llama", 1_235_814_432, "1.2B", "Q8_0", 1_321_082_688, 16, 32, 8, 64, 131_072, 2048
)
_QWEN_7B = RegistryEntry(
    "qwen2.5:7b-instruct-q4_K_M", "qwen2", 7_615_616_512, "7.6B", "Q4_K_M", 4_683_073_184, 28, 28, 4, 128, 32_768, 3584,
    _CHATML_TOOLS,
)  # fmt: skip
_QWEN_CODER = RegistryEntry(
    "qwen2.5-coder:7b-instruct-q4_K_M", "qwen2", 7_615_616_512, "7.6B", "Q4_K_M", 4_683_074_240, 28, 28, 4, 128, 32_768,
    3584, _CHATML_TOOLS,
)  # fmt: skip
_QWEN_4B = RegistryEntry(
    "qwen3:4b", "qwen3", 4_022_468_096, "4.0B", "Q4_K_M", 2_497_281_120, 36, 32, 8, 128, 40_960, 2560, _CHATML_TOOLS,
    thinking=True,
)  # fmt: skip
_MINILM = RegistryEntry(
    "all-minilm:latest", "bert", 22_565_376, "23M", "F16", 45_960_996, 6, 12, 12, 32, 512, 384, "", {"num_ctx": 256},
    embeds=True,
)  # fmt: skip
_NOMIC = RegistryEntry(
    "nomic-embed-text:latest", "nomic-bert", 136_727_040, "137M", "F16", 274_290_656, 12, 12, 12, 64, 2048, 768, "",
    {"num_ctx": 8192}, embeds=True,
)  # fmt: skip
_ALSO = {
    "llama3.1:latest": _LLAMA_8B,
    "llama3.1:8b": _LLAMA_8B,
    "llama3.2:latest": _LLAMA_3B,
    "llama3.2:3b": _LLAMA_3B,
    "llama3.2:1b": _LLAMA_1B,
    "qwen2.5:7b": _QWEN_7B,
    "qwen2.5-coder:7b": _QWEN_CODER,
    "all-minilm:22m": _MINILM,
    "all-minilm:l6-v2": _MINILM,
    "nomic-embed-text:v1.5": _NOMIC,
}
_SHIPPED = (_LLAMA_8B, _LLAMA_3B, _LLAMA_1B, _QWEN_7B, _QWEN_CODER, _QWEN_4B, _MINILM, _NOMIC)


@dataclass(slots=True)
class Registry:
    """The models that can be pulled, by name, and the state of their downloads.

    With `offline` every pull fails as without a network. By digest of a layer, `pulled` counts the bytes that were
    transferred, `partial` those that an unfinished download left, and `cut` the breaks. `downloads` holds the running
    downloads from real registries.
    """

    entries: dict[str, RegistryEntry] = field(default_factory=dict)
    offline: bool = False
    pulled: Counter[str] = field(default_factory=Counter)
    partial: dict[str, int] = field(default_factory=dict)
    cut: Counter[str] = field(default_factory=Counter)
    downloads: dict[str, Any] = field(default_factory=dict)

    def find(self, name: Name, scheme: str = "https") -> RegistryEntry | str:
        """Return the entry of a name, or the message of the error that pulling it ends with."""
        url = f"{scheme}://{name.host}/v2/{name.namespace}/{name.model}/manifests/{name.tag}"
        where = name.host.partition(":")[0]
        unreached = f'pull model manifest: Get "{url}": dial tcp: lookup {where} on 127.0.0.53:53: no such host'
        if self.offline and name.host == HOST:
            return unreached
        entry = self.entries.get(name.key)
        if entry is not None:
            return entry.error or entry
        return ABSENT if name.host == HOST else unreached

    def add(self, entry: RegistryEntry, alias: str = "") -> None:
        """Add a model under its own name or an alias, in place of one that has the name.

        Raises: OptionError: it is no name.
        """
        name = parse(alias or entry.name)
        if name is None:
            raise OptionError(f"{alias or entry.name!r} is not a model name", field="registry")
        self.entries[name.key] = entry

    def lay(self, document: Any) -> None:
        """Change the registry by a document of the form that `read` describes.

        A model that is given again may break again. Raises: OptionError: the document is wrong, and nothing was
        changed.
        """
        made = Registry(dict(self.entries), self.offline)
        try:
            _refuse_unknown(document)
            if document.get("only"):
                made.entries.clear()
            made.offline = bool(document.get("offline", made.offline))
            for described in document.get("models", []):
                made.add(_entry(self, dict(described)))
        except (ValueError, TypeError, AttributeError, KeyError) as fault:
            what = f"the registry's description cannot be used: {fault}"
            raise OptionError(what, field="registry", remedy=_PAGE) from fault
        self.entries, self.offline = made.entries, made.offline
        for described in document.get("models", []):
            self.cut.pop(made.entries[_key(described["name"])].digest, None)

    def as_dict(self) -> dict[str, Any]:
        """Return the state as JSON: models with their digest or error, bytes pulled, and bytes of unfinished layers."""
        models = {key: entry.error or entry.digest for key, entry in sorted(self.entries.items())}
        return {
            "models": models,
            "offline": self.offline,
            "pulled": dict(self.pulled),
            "partial": {digest: done for digest, done in self.partial.items() if done},
        }


def shipped_registry() -> Registry:
    """Return a new registry of the models that BAT OS uses by default, and a few similar ones."""
    registry = Registry()
    for entry in _SHIPPED:
        registry.add(entry)
    for alias, entry in _ALSO.items():
        registry.add(entry, alias)
    return registry


def read(path: Path | None) -> Registry:
    """Return the shipped registry, changed by a JSON file if there is one.

    The file: {"models": [{"name": ..., any field of RegistryEntry}], "only": bool (forget the shipped ones), "offline":
    bool}. A model may say "like": NAME and change some fields. Raises: OptionError: the file is wrong.
    """
    registry = shipped_registry()
    if path is None:
        return registry
    try:
        registry.lay(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, OptionError) as fault:
        what = f"the registry file {path} cannot be used: {fault}"
        raise OptionError(what, field="registry", remedy=_PAGE) from fault
    return registry


def _refuse_unknown(document: Any) -> None:
    """Check the keys of a document. Raises: ValueError: one is unknown and would have been ignored."""
    for what, described, known in [
        ("key", document, _KEYS),
        *(
            ("field of a model", each, {"like", *RegistryEntry.__dataclass_fields__})
            for each in document.get("models", [])
        ),
    ]:
        unknown = sorted(set(described) - set(known))
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no {what}; there are {', '.join(sorted(known))}")


def _key(text: str) -> str:
    """Return the key of a model name. Raises: OptionError: it is no name."""
    name = parse(text)
    if name is None:
        raise OptionError(f"{text!r} is not a model name", field="registry")
    return name.key


def _entry(registry: Registry, described: dict[str, Any]) -> RegistryEntry:
    """Return the entry that a document describes, based on the one that it names with `like`."""
    like = described.pop("like", None)
    if like is None:
        return RegistryEntry(**described)
    known = registry.entries[_key(like)]
    fields = {name: getattr(known, name) for name in RegistryEntry.__dataclass_fields__}
    return RegistryEntry(**(fields | described))


def parameters(entry: RegistryEntry) -> dict[str, Any]:
    """Return the parameters (PARAMETER) that come with a pulled model."""
    stops = _STOPS.get(entry.template, _STOPS[CHATML] if "im_start" in entry.template else [])
    return {**({"stop": stops} if stops else {}), **entry.params}
