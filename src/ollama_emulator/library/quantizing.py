"""Quantised weights as the runner's tools make them: the type of every tensor, and blocks of numbers.

`kinds` follows the tools' choice of types, which depends on a tensor's name, its place among its like and its width.
`q8_block` and its like write the types that need no search. The others (blocks of 256) are only described.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from math import floor, prod

from model_files import gguf

F32, F16, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, BF16 = 0, 1, 6, 7, 8, 12, 13, 14, 30
BLOCK = 32  # elements of a block of the types that can be written, and the alignment of tensors in bytes
FILE_TYPES = {"F32": 0, "F16": 1, "Q8_0": 7, "Q4_K_S": 14, "Q4_K_M": 15, "BF16": 32}
_DEFAULTS = {"F32": F32, "F16": F16, "BF16": BF16, "Q8_0": Q8_0, "Q4_K_S": Q4_K, "Q4_K_M": Q4_K}
_NARROW = {Q4_K: Q5_0, Q5_K: Q5_1, Q6_K: Q8_0}  # types for rows that blocks of 256 do not divide
_LEFT = re.compile(
    r"_norm\.weight|ffn_gate_inp\.weight|position_embd|token_types\.weight|ssm_conv1d|altup|laurel|per_layer_model_proj"
)
_VALUES = re.compile(r"attn_(v|qkv|kv_b)\.weight")
Shape = tuple[str, tuple[int, ...], int]  # a tensor's name, its shape as ggml has it, the number of its type


def kinds(tensors: Sequence[Shape], wanted: str) -> list[int]:
    """Return the type of each tensor, in order, after quantisation to F32, F16, Q8_0, Q4_K_S or Q4_K_M."""
    default = _DEFAULTS[wanted]
    names = [name for name, _, _ in tensors]
    values, downs = ([name for name in names if pattern.search(name)] for pattern in (_VALUES, re.compile("ffn_down")))
    found = []
    for name, shape, kind in tensors:
        if not _quantises(name, shape, kind):
            found.append(kind)
            continue
        chosen = default
        if default == Q4_K:
            if name == "output.weight" or (name == "token_embd.weight" and "output.weight" not in names):
                chosen = Q6_K
            elif name in values:
                chosen = _value(wanted, values.index(name), len(values))
            elif name in downs:
                chosen = _down_type(wanted, downs.index(name), len(downs))
        found.append(_fitting_type(chosen, shape[0]))
    return found


def _quantises(name: str, shape: tuple[int, ...], kind: int) -> bool:
    """Return whether the tools quantise a tensor of this name, shape and type."""
    whole = len(shape) > 1 and kind in (F32, F16, BF16)
    return whole and name.endswith("weight") and _LEFT.search(name) is None


def _value(wanted: str, at: int, count: int) -> int:
    if wanted == "Q4_K_M":
        return Q6_K if _more_bits(at, count) else Q4_K
    return Q5_K if at < 4 else Q4_K


def _down_type(wanted: str, at: int, count: int) -> int:
    if wanted == "Q4_K_M":
        return Q6_K if _more_bits(at, count) else Q4_K
    return Q5_K if at < count // 8 else Q4_K


def _more_bits(at: int, count: int) -> bool:
    """Return whether the tensor `at` among `count` alike is one of those that Q4_K_M stores with more bits."""
    return at < count // 8 or at >= 7 * count // 8 or (at - count // 8) % 3 == 2


def _fitting_type(kind: int, width: int) -> int:
    """Return the type, or a narrower one whose blocks divide the row's width."""
    if width % gguf.TYPES[kind][1] == 0:
        return kind
    narrow = _NARROW.get(kind, F16)
    return narrow if width % gguf.TYPES[narrow][1] == 0 else F16


def size(shape: Sequence[int], kind: int) -> int:
    """Return the bytes of a tensor in a file, padding included."""
    _, block, width = gguf.TYPES[kind]
    held = prod(shape) // block * width
    return held + -held % BLOCK


def q8_block(numbers: Sequence[float]) -> bytes:
    """Encode 32 numbers as a 16-bit scale and a byte each, rounded as by the runner's library."""
    scale = _single(max(map(abs, numbers)) / 127.0)
    inverse = _single(1.0 / scale) if scale else 0.0
    scaled = [_single(number * inverse) for number in numbers]
    rounded = [floor(abs(number) + 0.5) * (1 if number >= 0 else -1) for number in scaled]
    return struct.pack("<e32b", scale, *rounded)


def q5_0_block(numbers: Sequence[float]) -> bytes:
    """Encode 32 numbers as a 16-bit scale and five bits each; the number furthest from zero sets the scale."""
    furthest = max(numbers, key=abs)
    scale = _single(furthest / -16.0)
    inverse = _single(1.0 / scale) if scale else 0.0
    steps = [min(31, int(_single(_single(number * inverse) + 16.5))) for number in numbers]
    return struct.pack("<e", scale) + _five_bits(steps)


def q5_1_block(numbers: Sequence[float]) -> bytes:
    """Encode 32 numbers as a 16-bit scale, their minimum, and five bits each."""
    least = min(numbers)
    scale = _single(_single(max(numbers) - least) / 31.0)
    inverse = _single(1.0 / scale) if scale else 0.0
    steps = [int(_single(_single(_single(number - least) * inverse) + 0.5)) for number in numbers]
    return struct.pack("<ee", scale, least) + _five_bits(steps)


def _five_bits(steps: Sequence[int]) -> bytes:
    """Pack 5-bit numbers: all fifth bits in one word, then the low bits of both halves in pairs."""
    fifths = sum((step >> 4 & 1) << at for at, step in enumerate(steps))
    half = len(steps) // 2
    pairs = [steps[at] & 15 | (steps[at + half] & 15) << 4 for at in range(half)]
    return struct.pack(f"<I{half}B", fifths, *pairs)


def _single(number: float) -> float:
    """Round a number to single precision."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


_WRITTEN: Mapping[int, Callable[[Sequence[float]], bytes]] = {
    F32: lambda numbers: struct.pack(f"<{len(numbers)}f", *numbers),
    F16: lambda numbers: struct.pack(f"<{len(numbers)}e", *numbers),
    Q5_0: q5_0_block,
    Q5_1: q5_1_block,
    Q8_0: q8_block,
}


def can_write(kind: int) -> bool:
    """Return whether the emulator can encode numbers in a type."""
    return kind in _WRITTEN


def encode_row(kind: int, numbers: Sequence[float]) -> bytes:
    """Encode a row of numbers in a type that `can_write` accepts."""
    encode = _WRITTEN[kind]
    return b"".join(encode(numbers[at : at + BLOCK]) for at in range(0, len(numbers), BLOCK))
