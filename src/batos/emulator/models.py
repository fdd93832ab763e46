"""A stored model as the routes see it: prompt parts, parameters, capabilities, what show and tags print."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from batos.emulator import store as layers
from batos.emulator.cards import Card
from batos.emulator.gojson import quote, stamp
from batos.emulator.names import Name
from batos.emulator.store import Manifest, Store

_NO_CARD = Card({}, 0, "unknown")


@dataclass(frozen=True, slots=True)
class Model:
    """One model resolved from its manifest; `base` is the digest of the weights that run.

    `misfits` says that an adapter was made for other weights: create takes it, and the runner dies of it.
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

    @property
    def name(self) -> Name:
        return self.manifest.name

    @property
    def rendered(self) -> bool:
        """Whether the daemon renders the prompt itself (a TEMPLATE layer) and not the runner."""
        return bool(self.template)

    @property
    def parent(self) -> str:
        return str(self.manifest.config.get("parent_model", ""))

    @property
    def capabilities(self) -> list[str]:
        """As show lists them: from the weights, the template and the configuration."""
        if self.card.embeds:
            return ["embedding"]
        found = ["completion"]
        text = self.template or self.card.template
        if ".Tools" in text or "tools" in self.manifest.config.get("capabilities", ()):
            found.append("tools")
        if ".Suffix" in text:
            found.append("insert")
        if self.card.thinking or ".Thinking" in text:
            found.append("thinking")
        return found


def resolve(store: Store, manifest: Manifest) -> Model:
    """Read a manifest's layers."""
    base, card, adapters = "", _NO_CARD, []
    texts: dict[str, str] = {}
    licenses: list[str] = []
    for layer in manifest.layers:
        if layer.media == layers.MODEL:
            base, card = layer.digest, store.card(layer.digest) or card
        elif layer.media == layers.ADAPTER:
            adapters.append(layer.digest)
        elif layer.media == layers.LICENSE:
            licenses.append(store.content(layer.digest).decode())
        else:
            texts[layer.media] = store.content(layer.digest).decode()
    return Model(
        manifest,
        base,
        card,
        tuple(adapters),
        texts.get(layers.TEMPLATE, ""),
        texts.get(layers.SYSTEM, ""),
        json.loads(texts.get(layers.PARAMS, "{}")),
        tuple(json.loads(texts.get(layers.MESSAGES, "[]"))),
        tuple(licenses),
        any(_misfit(store.card(digest), card) for digest in adapters),
    )


def _misfit(adapter: Card | None, base: Card) -> bool:
    """Whether an adapter has another architecture or another width than the weights."""
    if adapter is None or not base.info:
        return False
    if adapter.architecture != base.architecture:
        return True
    queries = [tensor for tensor in adapter.tensors if tensor["name"].endswith("attn_q.weight.lora_a")]
    return any(tensor["shape"][0] != base.width for tensor in queries)


def tag_row(model: Model) -> dict[str, Any]:
    """One entry of /api/tags."""
    details = model.card.details(model.parent)
    details["context_length"] = model.card.trained_window
    details["embedding_length"] = model.card.width
    return {
        "name": model.name.display,
        "model": model.name.display,
        "modified_at": stamp(model.manifest.modified_ns),
        "size": model.manifest.size,
        "digest": model.manifest.digest,
        "details": details,
        "capabilities": model.capabilities,
    }


def show(model: Model, store: Store, verbose: bool) -> dict[str, Any]:
    """The reply of /api/show; empty parts are left out."""
    template = model.template or "{{ .Prompt }}"
    shown: dict[str, Any] = {
        "license": "\n".join(model.licenses),
        "modelfile": _modelfile(model, store, template),
        "parameters": _parameters(model),
        "template": template,
        "system": model.system,
        "details": model.card.details(model.parent),
        "messages": [dict(message) for message in model.messages],
        "model_info": model.card.model_info(verbose),
        "tensors": list(model.card.tensors),
        "capabilities": model.capabilities,
        "modified_at": stamp(model.manifest.modified_ns),
    }
    return {key: value for key, value in shown.items() if value or key == "model_info"}


def _parameters(model: Model) -> str:
    lines = []
    for key, value in sorted(model.parameters.items()):
        for item in value if isinstance(value, list) else [value]:
            text = quote(item) if isinstance(item, str) else json.dumps(item)
            lines.append(f"{key:<30} {text}")
    return "\n".join(lines)


def _modelfile(model: Model, store: Store, template: str) -> str:
    lines = [
        '# Modelfile generated by "ollama show"',
        "# To build a new Modelfile based on this, replace FROM with:",
        f"# FROM {model.name.display}",
        "",
        f"FROM {store.blob_path(model.base)}",
    ]
    lines += [f"ADAPTER {store.blob_path(digest)}" for digest in model.adapters]
    lines.append(f"TEMPLATE {_value(template)}")
    if model.system:
        lines.append(f"SYSTEM {_value(model.system)}")
    for key, value in sorted(model.parameters.items()):
        for item in value if isinstance(value, list) else [value]:
            lines.append(f"PARAMETER {key} {_value(item) if isinstance(item, str) else json.dumps(item)}")
    lines += [f"LICENSE {_value(text)}" for text in model.licenses]
    lines += [f"MESSAGE {message['role']} {_value(message['content'])}" for message in model.messages]
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    """A Modelfile value: bare, quoted where it spans lines or has outer blanks, in threes where it holds a quote."""
    if "\n" not in text and text == text.strip():
        return text
    return f'"""{text}"""' if '"' in text else f'"{text}"'
