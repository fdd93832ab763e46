"""Adapters as create takes them: by file name, converted from PEFT or as GGUF, with almost nothing checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from batos.emulator import store
from batos.emulator.cards import NOT_GGUF, Card
from batos.emulator.replies import ApiError
from batos.emulator.store import Layer, Store, digest_in
from batos.weights import safetensors
from batos.weights.bounded import NotWeights

_CONVERTIBLE = ("llama", "gemma2")


def _converted(given: Mapping[str, str]) -> bool:
    return any(name.endswith(".safetensors") for name in given)


def check(given: Mapping[str, str]) -> None:
    """What is refused before any line: nothing to go by, two GGUF files, a malformed digest of a safetensors file."""
    if not given:
        raise ApiError(400, "unknown type")
    if _converted(given):
        if not all(map(digest_in, given.values())):
            raise ApiError(400, "invalid digest format")
    elif all(name.endswith(".json") for name in given):
        raise ApiError(400, "unknown type")
    elif len(given) > 1:
        raise ApiError(400, "only one adapter is currently supported")


def announced(given: Mapping[str, str]) -> str:
    """The status line of the work to come."""
    return "converting adapter" if _converted(given) else "parsing GGUF"


def add(stored: Store, given: Mapping[str, str], base: Card | None) -> Layer:
    """The adapter's layer; a GGUF that is a whole model becomes a second model layer, and is what runs."""
    if _converted(given):
        return _convert(stored, given, base)
    digest = digest_in(next(iter(given.values())))
    if not digest:
        raise ApiError(400, "invalid digest format")
    if digest not in stored.blobs:
        raise ApiError(400, f"open {stored.blob_path(digest)}: no such file or directory")
    card = stored.card(digest)
    if card is None:
        raise ApiError(400, NOT_GGUF)
    media = store.ADAPTER if card.adapter else store.MODEL
    return Layer(media, digest, stored.blobs[digest].size, f"using existing layer {digest}")


def _convert(stored: Store, given: Mapping[str, str], base: Card | None) -> Layer:
    paths = {name: digest_in(digest) for name, digest in given.items()}
    for digest in paths.values():
        if digest not in stored.blobs:
            raise ApiError(400, f"open {stored.blob_path(digest)}: no such file or directory")
    architecture = base.architecture if base is not None else "llama"
    if architecture not in _CONVERTIBLE:
        raise ApiError(400, "unsupported architecture")
    config = paths.get("adapter_config.json")
    if config is None:
        raise ApiError(400, "open adapter_config.json: no such file or directory")
    try:
        alpha = json.loads(stored.content(config)).get("lora_alpha", 0)
    except (ValueError, AttributeError):
        raise ApiError(400, "invalid character in adapter_config.json") from None
    if isinstance(alpha, float):
        raise ApiError(400, f"json: cannot unmarshal number {alpha} into Go struct field .lora_alpha of type uint32")
    weights = next(digest for name, digest in paths.items() if name.endswith(".safetensors"))
    digest = store.digest_of(f"converted {weights} {config} {architecture}".encode())
    fresh = digest not in stored.blobs
    blob = stored.blobs.get(digest) or stored.put_card(
        digest, stored.blobs[weights].size, _card(stored.blobs[weights].path, architecture)
    )
    return Layer(store.ADAPTER, digest, blob.size, f"{'creating new' if fresh else 'using existing'} layer {digest}")


def _card(path: Path | None, architecture: str) -> Card:
    """The converted adapter's card, with the shapes that say which weights it was made for."""
    info = {"general.architecture": architecture, "general.type": "adapter", "adapter.type": "lora"}
    tensors = []
    for name, shape in _shapes(path).items():
        if name.endswith("q_proj.lora_A.weight"):
            tensors.append({"name": "blk.0.attn_q.weight.lora_a", "type": "F32", "shape": shape[::-1]})
    return Card(info, 0, "F16", tuple(tensors))


def _shapes(path: Path | None) -> dict[str, list[int]]:
    """The tensors' shapes in a safetensors file; none where it has no readable header."""
    if path is None:
        return {}
    try:
        tensors = safetensors.read(path).tensors
    except NotWeights:
        return {}
    return {name: list(tensor.shape) for name, tensor in tensors.items()}
