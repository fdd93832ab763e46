"""Convert PEFT adapters to GGUF as the daemon does, byte for byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

from model_files import safetensors
from model_files.bounded import NotWeights
from ollama_emulator.library.quantizing import F16
from ollama_emulator.library.rewriting import GgufWriter, by_layer, word

_LARGEST = 8_000_000  # elements of the largest adapter that is converted, in Python
_CODES = {"F32": ("f", 4), "F16": ("e", 2), "BF16": ("H", 2)}
_NAMES = {
    "base_model.model.": "",
    "model.layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.down_proj": "ffn_down",
    "mlp.up_proj": "ffn_up",
    "lora_A.weight": "weight.lora_a",
    "lora_B.weight": "weight.lora_b",
}


@dataclass(frozen=True, slots=True)
class LoraMatrix:
    """A matrix of an adapter: its name in GGUF, its shape and type in PyTorch, and its offset in the file.

    `heads` is the number of attention heads for a matrix whose rows must be permuted, else 0.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    start: int
    heads: int = 0

    @property
    def turned(self) -> bool:
        """Return whether the matrix is stored transposed, as some trainers do."""
        wide = self.shape[0] > self.shape[-1]
        return (self.name.endswith("lora_a") and wide) or (
            self.name.endswith("lora_b") and not wide and self.shape[0] != self.shape[-1]
        )

    @property
    def gguf_shape(self) -> tuple[int, ...]:
        """Return the shape for GGUF, with the inputs first."""
        return self.shape if self.turned else self.shape[::-1]


def gguf_name(name: str) -> str:
    """Return the name in GGUF of a tensor of a PEFT adapter."""
    for old, new in _NAMES.items():
        name = name.replace(old, new)
    return name


def sides(path: Path, heads: tuple[int, int]) -> list[LoraMatrix]:
    """Return the matrices of a safetensors file in the order of the converted file.

    `heads` are the numbers of query and key heads.
    """
    turns = {"attn_q.weight.lora_a": heads[0], "attn_k.weight.lora_a": heads[1] or heads[0]}
    found = []
    for key, tensor in safetensors.read(path).tensors.items():
        name = gguf_name(key)
        turn = next((count for ending, count in turns.items() if name.endswith(ending)), 0)
        found.append(LoraMatrix(name, tensor.shape, tensor.dtype, tensor.start, turn))
    return sorted(found, key=lambda side: by_layer(side.name))


def can_convert(found: list[LoraMatrix]) -> bool:
    """Return whether the matrices have types and sizes that the emulator converts."""
    plain = all(side.dtype in _CODES and len(side.shape) == 2 and _splits(side) for side in found)
    return plain and sum(prod(side.shape) for side in found) <= _LARGEST


def _splits(side: LoraMatrix) -> bool:
    return not side.heads or (not side.turned and side.shape[1] % (2 * side.heads) == 0)


def convert(source: Path, found: list[LoraMatrix], alpha: float, base: Mapping[str, Any], target: IO[bytes]) -> str:
    """Write the adapter as a GGUF file of f16 matrices to `target`; return its digest.

    `alpha` is the adapter's scale, `base` the metadata of the weights that it is for.
    """
    architecture = str(base["general.architecture"])
    keys = {
        "adapter.lora.alpha": (6, struct.pack("<f", alpha)),
        "adapter.type": word("lora"),
        "general.architecture": word(architecture),
        "general.file_type": (4, struct.pack("<I", 1)),
        "general.type": word("adapter"),
        "general.version": word("v0.2"),
    }
    for key in (f"{architecture}.attention.head_count", f"{architecture}.attention.head_count_kv"):
        if isinstance(base.get(key), int):
            keys[key] = (4, struct.pack("<I", base[key]))
    writer = GgufWriter(target, [(key, *keys[key]) for key in sorted(keys)])
    writer.tensors = [(side.name, side.gguf_shape, F16, 2 * prod(side.shape)) for side in found]
    writer.head()
    with source.open("rb") as opened:
        for side in found:
            opened.seek(side.start)
            writer.weights(iter([_next_halves(opened, side)]))
    return writer.digest()


def _next_halves(opened: IO[bytes], side: LoraMatrix) -> bytes:
    """Return the matrix that is next in the file as packed f16 numbers. Raises: NotWeights: the file ends too early."""
    code, width = _CODES[side.dtype]
    count = prod(side.shape)
    data = opened.read(count * width)
    if len(data) != count * width:
        raise NotWeights("its data is not within the file", side.name)
    numbers = struct.unpack(f"<{count}{code}", data)
    if side.dtype == "BF16":
        numbers = struct.unpack(
            f"<{count}f", b"".join(number.to_bytes(2, "little").rjust(4, b"\0") for number in numbers)
        )
    packed = struct.pack(f"<{count}e", *(max(-65504.0, min(number, 65504.0)) for number in numbers))
    rows, columns = side.shape
    if side.turned:
        return b"".join(packed[2 * (row * columns + at) :][:2] for at in range(columns) for row in range(rows))
    return b"".join(_permuted_rows(packed, side)) if side.heads else packed


def _permuted_rows(packed: bytes, side: LoraMatrix) -> Iterator[bytes]:
    """Yield the rows, permuted as llama.cpp's rotary positions need them."""
    rows, columns = side.shape
    half = columns // side.heads // 2
    for head in range(side.heads):
        for at in range(half):
            for part in (0, 1):
                row = (head * 2 + part) * half + at
                yield packed[2 * row * rows : 2 * (row + 1) * rows]
