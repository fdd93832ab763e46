"""Write the GGUF file of a sentence embedder from its safetensors file with its vocab.txt behind it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from ollama_emulator.library.rewriting import GgufWriter, word

_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_PLAIN, _UNKNOWN, _CONTROL = 1, 2, 3
_F32_WEIGHTS, _MEAN = 0, 1
_FLOAT_BYTES = 4
#: Marks of the vocabulary by the names that llama.cpp gives them (the spelling of one is its own).
_MARKS = {"padding": "[PAD]", "unknown": "[UNK]", "cls": "[CLS]", "seperator": "[SEP]", "mask": "[MASK]"}
#: Tensors by their names in transformers and in llama.cpp.
_WORDS, _PLACES = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
_FIXED = {
    _WORDS: "token_embd.weight",
    _PLACES: "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}
_OF_LAYER = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_INNER = "encoder.layer.{}.intermediate.dense.bias"


def write(source: Path, target: Path, about: Mapping[str, Any]) -> None:
    """Write a file with the weights as they are; `about` has `name`, `licence`, `heads` and `window` in tokens.

    Weights of places beyond the window are left out. Raises: ValueError: `source` is no such file.
    """
    data = source.read_bytes()
    begins = 8 + int.from_bytes(data[:8], "little")
    found = json.loads(data[8:begins])
    found.pop("__metadata__", None)
    try:
        ends = begins + max(each["data_offsets"][1] for each in found.values())
        shapes = {name: tuple(each["shape"]) for name, each in found.items()}
        shapes[_PLACES] = (about["window"], shapes[_PLACES][1])
        names = _names(shapes)
        pieces = data[ends:].decode().removesuffix("\n").split("\n")
        if len(pieces) != shapes[_WORDS][0]:
            raise ValueError(f"{source} has weights for {shapes[_WORDS][0]} pieces, and names {len(pieces)}")
        keys = list(_keys(shapes, pieces, about))
        places = [(shapes[name], begins + found[name]["data_offsets"][0]) for name in names]
    except (KeyError, IndexError) as fault:
        raise ValueError(f"{source} is no embedder of the kind BERT: it lacks {fault}") from fault
    with target.open("wb") as file:
        writer = GgufWriter(file, keys)
        for name, (shape, _) in zip(names.values(), places, strict=True):
            writer.tensors.append((name, shape[::-1], _F32_WEIGHTS, _FLOAT_BYTES * prod(shape)))
        writer.head()
        for shape, start in places:
            writer.weights(iter([data[start : start + _FLOAT_BYTES * prod(shape)]]))


def _names(shapes: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Return the names in llama.cpp of the tensors that it takes."""
    found, layer = dict(_FIXED), 0
    while _INNER.format(layer) in shapes:
        for theirs, ours in _OF_LAYER.items():
            for part in ("weight", "bias"):
                found[f"encoder.layer.{layer}.{theirs}.{part}"] = f"blk.{layer}.{ours}.{part}"
        layer += 1
    return found


def _keys(
    shapes: Mapping[str, Sequence[int]], pieces: Sequence[str], about: Mapping[str, Any]
) -> Iterator[tuple[str, int, bytes]]:
    """Yield the metadata: each key with its type and the bytes of its value."""
    numbers = {
        "general.file_type": _F32_WEIGHTS,
        "bert.block_count": sum(name.endswith(".intermediate.dense.bias") for name in shapes),
        "bert.context_length": about["window"],
        "bert.embedding_length": shapes[_WORDS][1],
        "bert.feed_forward_length": shapes[_INNER.format(0)][0],
        "bert.attention.head_count": about["heads"],
        "bert.pooling_type": _MEAN,
        "tokenizer.ggml.token_type_count": shapes["embeddings.token_type_embeddings.weight"][0],
        **{f"tokenizer.ggml.{name}_token_id": pieces.index(mark) for name, mark in _MARKS.items()},
    }
    texts = {
        "general.architecture": "bert",
        "general.name": about["name"],
        "general.license": about["licence"],
        "tokenizer.ggml.model": "bert",
    }
    for key, text in texts.items():
        yield (key, *word(text))
    for key, number in numbers.items():
        yield key, _U32, struct.pack("<I", number)
    yield "bert.attention.layer_norm_epsilon", _F32, struct.pack("<f", 1e-12)
    yield "bert.attention.causal", _BOOL, b"\0"
    spelled = b"".join(word(_as_in_llama_cpp(piece))[1] for piece in pieces)
    yield "tokenizer.ggml.tokens", _ARRAY, struct.pack("<IQ", _STRING, len(pieces)) + spelled
    kinds = [_UNKNOWN if piece == "[UNK]" else _CONTROL if piece in _MARKS.values() else _PLAIN for piece in pieces]
    yield "tokenizer.ggml.token_type", _ARRAY, struct.pack(f"<IQ{len(kinds)}i", _I32, len(kinds), *kinds)


def _as_in_llama_cpp(piece: str) -> str:
    """Return a piece as llama.cpp spells it: with the sign of a blank where it begins a word."""
    if piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
        return piece
    return piece[2:] if piece.startswith("##") else f"▁{piece}"
