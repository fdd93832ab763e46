"""Models as the routes see them: parts of the prompt, parameters, capabilities, and the replies of show and tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ollama_emulator.go.json import general, quote, stamp
from ollama_emulator.library import store as layers
from ollama_emulator.library.cards import Card
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.store import Manifest, Store
from ollama_emulator.templating import templates

PROMPT_ALONE = "{{ .Prompt }}"
_NO_CARD = Card({}, 0, "unknown")


@dataclass(frozen=True)
class Model:
    """A model read from its manifest; `base` is the digest of the weights that run.

    `misfits` says that an adapter was made for other weights: `create` accepts it, and the runner fails to load it.
    """

    manifest: Manifest
    base: str
    card: Card
    adapters: tuple[str, ...]
    template: str
    system: str
    parameters: dict[str, Any]
    messages: tuple[dict[str, str], ...]
    licenses: tuple[str, ...]
    misfits: bool = False
    parent: str = ""
    projectors: tuple[str, ...] = ()

    @property
    def name(self) -> Name:
        """Return the name under which the model is stored."""
        return self.manifest.name

    @property
    def config(self) -> Mapping[str, Any]:
        """Return the configuration in the model's manifest."""
        return self.manifest.config

    @property
    def remote(self) -> bool:
        """Return whether the weights are on another host."""
        return bool(self.config.get("remote_host"))

    @cached_property
    def rendered(self) -> bool:
        """Return whether the daemon renders the prompt (by a Go template or built-in code), and not the runner."""
        built_in = bool(self.config.get("renderer") or self.config.get("parser"))
        return built_in or templates.renders(self.template, self.card.template)

    @cached_property
    def capabilities(self) -> list[str]:
        """Return the capabilities in the order of /api/show, from the weights, the template and the configuration."""
        if not self.remote and not self.base:
            return []  # an adapter without weights under it
        found = [] if self.remote else ["embedding" if self.card.embeds else "completion"]
        if self.projectors or self.card.value("vision.block_count"):
            found.append("vision")
        found += [str(each) for each in self.config.get("capabilities") or () if each not in found]
        if not self.card.embeds:
            known = templates.capabilities(self.template) if self.rendered else self._native
            found += [each for each in known if each not in found]
        if self.card.thinking and "thinking" not in found:
            found.append("thinking")
        return found

    @property
    def _native(self) -> list[str]:
        return templates.chat_capabilities(self.card.template) if self.card.template else []

    @property
    def details(self) -> dict[str, Any]:
        """Return the `details` of /api/tags and /api/show."""
        return {
            "parent_model": self.parent,
            "format": self.config.get("model_format", ""),
            "family": self.config.get("model_family", ""),
            "families": self.config.get("model_families"),
            "parameter_size": self.config.get("model_type", ""),
            "quantization_level": self.config.get("file_type", ""),
        }


def resolve(store: Store, manifest: Manifest) -> Model:
    """Read the layers of a manifest into a model."""
    base, card, parent = "", _NO_CARD, ""
    of: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for layer in manifest.layers:
        if layer.media == layers.MODEL:
            base, card, parent = layer.digest, store.card(layer.digest) or card, layer.source
        elif layer.media in (layers.ADAPTER, layers.PROJECTOR, layers.DRAFT):
            of.setdefault(layer.media, []).append(layer.digest)
        elif layer.media == layers.LICENSE:
            of.setdefault(layer.media, []).append(_text(store, layer.digest))
        else:
            texts[layer.media] = _text(store, layer.digest)
    adapters = tuple(of.get(layers.ADAPTER, ()))
    return Model(
        manifest,
        base,
        card,
        adapters,
        texts.get(layers.TEMPLATE, ""),
        texts.get(layers.SYSTEM, ""),
        layers.read_json(texts.get(layers.PARAMS, "{}"), dict),
        tuple(each for each in layers.read_json(texts.get(layers.MESSAGES, "[]"), list) if isinstance(each, dict)),
        tuple(of.get(layers.LICENSE, ())),
        any(_misfit(store.card(digest), card) for digest in adapters),
        parent,
        tuple(of.get(layers.PROJECTOR, ())),
    )


def _text(store: Store, digest: str) -> str:
    return store.content(digest).decode("utf-8", "replace")


def _misfit(adapter: Card | None, base: Card) -> bool:
    """Return whether an adapter has another architecture or width than the weights."""
    if adapter is None or not base.info:
        return False
    if adapter.architecture != base.architecture:
        return True
    queries = [tensor for tensor in adapter.tensors if tensor["name"].endswith("attn_q.weight.lora_a")]
    return any(tensor["shape"][0] != base.width for tensor in queries)


def tag_row(model: Model) -> dict[str, Any]:
    """Return a model's entry in /api/tags."""
    details = model.details
    sizes = {
        "context_length": model.card.value("context_length"),
        "embedding_length": model.card.value("embedding_length"),
    }
    sizes = {key: model.config.get(key) or value for key, value in sizes.items()}
    row: dict[str, Any] = {"name": model.name.display, "model": model.name.display}
    row |= {key: model.config[key] for key in ("remote_model", "remote_host") if model.config.get(key)}
    row |= {
        "modified_at": stamp(model.manifest.modified_ns),
        "size": model.manifest.size,
        "digest": model.manifest.digest,
        "details": {**details, **{key: value for key, value in sizes.items() if value}},
    }
    return {**row, "capabilities": model.capabilities} if model.capabilities else row


def show(model: Model, store: Store, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply of /api/show, without empty parts. `asked`, the request, may replace system text and options."""
    system = str(asked.get("system") or model.system)
    shown: dict[str, Any] = {
        "license": "\n".join(model.licenses),
        "modelfile": _modelfile(model, store, system, {**model.parameters, **(asked.get("options") or {})}),
        "parameters": "\n".join(f"{key:<30} {_literal(value)}" for key, value in _each(model.parameters)),
        "template": _template(model),
        "system": system,
        "details": model.details,
        "messages": [{"role": each.get("role", ""), "content": each.get("content", "")} for each in model.messages],
        "remote_model": model.config.get("remote_model"),
        "remote_host": model.config.get("remote_host"),
        "model_info": _remote_info(model) if model.remote else model.card.model_info(bool(asked.get("verbose"))),
        "tensors": list(model.card.tensors),
        "capabilities": model.capabilities,
        "modified_at": stamp(model.manifest.modified_ns),
        "requires": model.config.get("requires"),
    }
    return {key: value for key, value in shown.items() if value or key == "model_info"}


def _template(model: Model) -> str:
    if model.card.template and not model.rendered:
        return model.card.template
    return model.template or PROMPT_ALONE


def _remote_info(model: Model) -> dict[str, Any]:
    """Return the `model_info` of a cloud model, as far as its stub knows it."""
    family = model.config.get("model_family")
    if not family:
        return {}
    found = {"general.architecture": family, "general.basename": model.config.get("base_name")}
    found |= {f"{family}.{key}": model.config.get(key) for key in ("context_length", "embedding_length")}
    return {key: value for key, value in sorted(found.items()) if value}


def _each(parameters: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every parameter, the values of a list one by one, sorted by name. The daemon's order varies."""
    for key, value in sorted(parameters.items()):
        for item in value if isinstance(value, list) else [value]:
            yield key, item


def _literal(value: Any) -> str:
    """Return a value as Go's `%#v` prints it."""
    return quote(value) if isinstance(value, str) else _print_value(value)


def _print_value(value: Any) -> str:
    """Return a value as Go's `%v` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_print_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_print_value, value)) + "]"
    if isinstance(value, str):
        return value
    return general(value)


def _modelfile(model: Model, store: Store, system: str, parameters: Mapping[str, Any]) -> str:
    """Return the Modelfile from which the model could be created again."""
    lines = [
        '# Modelfile generated by "ollama show"',
        "# To build a new Modelfile based on this, replace FROM with:",
        f"# FROM {model.name.display}",
        "",
        f"FROM {store.blob_path(model.base) if model.base else ''}",
    ]
    lines += [f"ADAPTER {store.blob_path(digest)}" for digest in model.adapters]
    lines += [f"FROM {store.blob_path(digest)}" for digest in model.projectors]
    lines.append(f"TEMPLATE {_value(model.template or PROMPT_ALONE)}")
    said = (("SYSTEM", system), ("RENDERER", model.config.get("renderer")), ("PARSER", model.config.get("parser")))
    lines += [f"{word} {_value(str(text))}" for word, text in said if text]
    lines += [f"PARAMETER {key} {_value(_print_value(value))}" for key, value in _each(parameters)]
    lines += [f"LICENSE {_value(text)}" for text in model.licenses]
    lines += [f"MESSAGE {each.get('role', '')} {_value(each.get('content', ''))}" for each in model.messages]
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    """Return a value as a Modelfile writes it: bare if possible, else in one or three quotation marks."""
    if "\n" not in text and not text.startswith(" ") and not text.endswith(" "):
        return text
    return f'"""{text}"""' if '"' in text else f'"{text}"'
