"""Adapters in a `create` request: taken as GGUF or converted from PEFT, with as few checks as in the daemon."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from model_files import safetensors
from model_files.bounded import NotWeights
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go.scan import GoError, exact
from ollama_emulator.go.types import FLOAT32, GoStruct, Scalar, decode
from ollama_emulator.library import lora, store
from ollama_emulator.library.cards import Card
from ollama_emulator.library.store import Blob, Layer, Store, digest_in

_CONVERTIBLE = ("llama", "gemma2")
_UINT = Scalar("uint32", "uint", 32)
_LORA = GoStruct("", {"rank": _UINT, "alpha": FLOAT32, "scale": FLOAT32})
_CONFIG = GoStruct(
    "convert.AdapterParameters",
    {"lora_alpha": _UINT, "lora_layers": _UINT, "lora_parameters": _LORA, "num_key_value_heads": _UINT},
)


def stage(given: Mapping[str, str]) -> dict[str, str]:
    """Return the files of a conversion, digests by path. Raises: ApiError: 400, a path or a digest is invalid."""
    found = {}
    for path, digest in given.items():
        if not valid_path(path):
            raise ApiError(400, f"file path must be relative: {path}")
        known = digest_in(digest)
        if not known:
            raise ApiError(400, "invalid digest format")
        found[path] = known
    return found


def valid_path(path: str) -> bool:
    """Return whether a path is relative and stays below its folder."""
    return path == "." or all(part not in ("", ".", "..") for part in path.split("/"))


async def convert(stored: Store, given: Mapping[str, str], base: Card) -> Layer:
    """Convert a PEFT adapter for a base; return its layer. Raises: ApiError: 400, a file is missing or unfit."""
    config = _configuration(stored, given)
    if base.architecture not in _CONVERTIBLE:
        raise ApiError(400, "unsupported architecture")
    weights = [digest for path, digest in sorted(given.items()) if path.endswith(".safetensors")]
    blobs = [stored.blobs.get(digest) for digest in weights]
    if None in blobs:
        missing = next(path for path, digest in sorted(given.items()) if digest not in stored.blobs)
        raise ApiError(400, f"open {missing}: no such file or directory")
    told = config.get("lora_parameters") or {}
    alpha = float(told.get("alpha") or config.get("lora_alpha") or 0)
    blob, fresh = await _convert(stored, [blob for blob in blobs if blob], config, alpha, base)
    return Layer(store.ADAPTER, blob.digest, blob.size, note=layer_line(blob.digest, fresh))


def layer_line(digest: str, fresh: bool) -> str:
    """Return the progress line that `create` prints for a layer."""
    return f"{'creating new' if fresh else 'using existing'} layer {digest}"


def _configuration(stored: Store, given: Mapping[str, str]) -> dict[str, Any]:
    """Read an adapter's configuration. Raises: ApiError: 400, it is missing or invalid."""
    digest = given.get("adapter_config.json")
    if digest is None or digest not in stored.blobs:
        raise ApiError(400, "open adapter_config.json: no such file or directory")
    try:
        found = decode(_CONFIG, exact(stored.content(digest)))
    except GoError as fault:
        text = str(fault)
        raise ApiError(400, "unexpected end of JSON input" if text in ("EOF", "unexpected EOF") else text) from None
    return dict(found or {})


async def _convert(
    stored: Store, blobs: list[Blob], config: Mapping[str, Any], alpha: float, base: Card
) -> tuple[Blob, bool]:
    """Return the converted file's blob, and whether it is new. Weights that `lora` cannot convert stay
    metadata only.
    """
    first = blobs[0]
    if first.path is not None and not _readable(first.path):
        raise ApiError(400, "EOF")
    if len(blobs) == 1 and first.path is not None:
        heads = int(base.value("attention.head_count", 0) or 0)
        sides = lora.sides(first.path, (heads, int(config.get("num_key_value_heads") or 0)))
        if lora.can_convert(sides):
            return await stored.write(partial(_write, first.path, sides, alpha, base), first.size)
    names = " ".join(blob.digest for blob in blobs)
    digest = store.digest_of(f"converted {names} {alpha} {base.architecture}".encode())
    known = stored.blobs.get(digest)
    size = sum(blob.size for blob in blobs)
    return known or stored.put_card(digest, size, _card(blobs, base.architecture)), known is None


def _write(path: Path, sides: list[lora.LoraMatrix], alpha: float, base: Card, target: Any) -> str:
    info = {"general.architecture": base.architecture, **base.info}
    return lora.convert(path, sides, alpha, info, target)


def _readable(path: Path) -> bool:
    """Test if a file is a safetensors file."""
    try:
        safetensors.read(path)
    except NotWeights:
        return False
    return True


def _card(blobs: list[Blob], architecture: str) -> Card:
    """Return the metadata of a converted adapter, with the shapes that name the weights it was made for."""
    info = {"general.architecture": architecture, "general.type": "adapter", "adapter.type": "lora"}
    tensors = []
    for blob in blobs:
        for name, shape in _shapes(blob.path).items():
            if name.endswith("q_proj.lora_A.weight"):
                tensors.append({"name": "blk.0.attn_q.weight.lora_a", "type": "F16", "shape": shape[::-1]})
    return Card(info, 0, "F16", tuple(tensors))


def _shapes(path: Path | None) -> dict[str, list[int]]:
    """Return the shapes of the tensors in a safetensors file, {} without a readable header."""
    if path is None:
        return {}
    try:
        tensors = safetensors.read(path).tensors
    except NotWeights:
        return {}
    return {name: list(tensor.shape) for name, tensor in tensors.items()}
