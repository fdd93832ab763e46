"""GGUF and safetensors files written by hand, right or wrong at any place."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "data" / "ollama-wire" / "models"

CODES = {"u8": (0, "B"), "u32": (4, "I"), "i32": (5, "i"), "f32": (6, "f"), "bool": (7, "?"), "u64": (10, "Q")}
Shapes = Mapping[str, Sequence[int]]


def text(value: str) -> bytes:
    """A GGUF string."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind: str, content: Any) -> bytes:
    """A GGUF value with its type before it; `[u32]` is an array."""
    if kind == "str":
        return struct.pack("<I", 8) + text(content)
    if kind.startswith("["):
        inner = kind[1:-1]
        head = struct.pack("<IIQ", 9, 8 if inner == "str" else CODES[inner][0], len(content))
        return head + b"".join(value(inner, each)[4:] for each in content)
    number, code = CODES[kind]
    return struct.pack(f"<I{code}", number, content)


def gguf(
    metadata: Sequence[tuple[str, str, Any]], shapes: Shapes, *, version: int = 3, kind: int = 0, cut: int = 0
) -> bytes:
    """A whole file of F32 tensors (zeros), or one that lacks its last `cut` bytes; metadata is (key, type, value)."""
    head = b"GGUF" + struct.pack("<IQQ", version, len(shapes), len(metadata))
    head += b"".join(text(key) + value(form, content) for key, form, content in metadata)
    offset = 0
    for name, shape in shapes.items():
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
        count = 4
        for side in shape:
            count *= side
        offset += -(-count // 32) * 32
    whole = head + b"\0" * (-len(head) % 32 + offset)
    return whole[: len(whole) - cut]


def lora(shapes: Shapes | None = None, *, architecture: str = "llama", alpha: float = 8.0) -> bytes:
    """A GGUF adapter, by default of rank 4 on the queries of a base 64 wide."""
    shapes = shapes or {"blk.0.attn_q.weight.lora_a": (64, 4), "blk.0.attn_q.weight.lora_b": (4, 64)}
    metadata = [
        ("general.architecture", "str", architecture),
        ("general.type", "str", "adapter"),
        ("adapter.type", "str", "lora"),
        ("adapter.lora.alpha", "f32", alpha),
    ]
    return gguf(metadata, shapes)


def safetensors(shapes: Shapes, *, dtype: str = "F32", width: int = 4, metadata: Any = None, cut: int = 0) -> bytes:
    """A whole safetensors file of zeros, or one that lacks its last `cut` bytes."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name, shape in shapes.items():
        size = width
        for side in shape:
            size *= side
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, start + size]}
        start += size
    return raw_safetensors(json.dumps(header).encode(), start - cut)


def raw_safetensors(header: bytes, data: int) -> bytes:
    """A header as it is given, and so many bytes of data."""
    return struct.pack("<Q", len(header)) + header + b"\0" * data
