"""What becomes of weights at each quantisation: types by name, place and width, and blocks near to their numbers."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ollama_emulator.recordings import MODELS

from model_files import gguf
from ollama_emulator.library import cards, quantizing, rewriting
from ollama_emulator.library.quantizing import F16, F32, Q4_K, Q5_0, Q5_1, Q6_K, Q8_0, Shape

_NUMBERS = st.lists(st.floats(-1e4, 1e4, width=16), min_size=32, max_size=32)


def blocks(width: int, count: int) -> list[Shape]:
    """A model of so many blocks in F16."""
    found: list[Shape] = [
        ("output.weight", (width, 100), F16),
        ("output_norm.weight", (width,), F32),
        ("token_embd.weight", (width, 100), F16),
    ]
    for at in range(count):
        found += [(f"blk.{at}.{name}.weight", (width, width), F16) for name in ("attn_k", "attn_v", "ffn_down")]
    return found


def chosen(width: int, count: int, wanted: str) -> dict[str, int]:
    tensors = blocks(width, count)
    return {name: kind for (name, _, _), kind in zip(tensors, quantizing.kinds(tensors, wanted), strict=True)}


def test_some_tensors_keep_more_bits() -> None:
    """Of Q4_K_M: the output, and values and downs of the first and last eighth and of every third block between."""
    found = chosen(256, 16, "Q4_K_M")
    assert (found["output.weight"], found["token_embd.weight"], found["output_norm.weight"]) == (Q6_K, Q4_K, F32)
    rich = [at for at in range(16) if found[f"blk.{at}.attn_v.weight"] == Q6_K]
    assert rich == [0, 1, 4, 7, 10, 13, 14, 15]
    assert rich == [at for at in range(16) if found[f"blk.{at}.ffn_down.weight"] == Q6_K]
    assert {found[f"blk.{at}.attn_k.weight"] for at in range(16)} == {Q4_K}


def test_narrow_rows_take_types_of_smaller_blocks() -> None:
    """A width that 256 does not divide has Q5_0, Q5_1 and Q8_0 instead; one that 32 does not divide has F16."""
    assert set(chosen(64, 2, "Q4_K_M").values()) == {Q5_0, Q8_0, F32}
    found = chosen(64, 8, "Q4_K_S")
    assert [found[f"blk.{at}.attn_v.weight"] for at in range(8)] == [Q5_1] * 4 + [Q5_0] * 4
    assert found["blk.0.ffn_down.weight"] == Q5_1
    assert chosen(40, 1, "Q4_K_M")["blk.0.attn_k.weight"] == F16


def test_embeddings_that_are_the_output_too_are_its_type() -> None:
    """Without an output of its own, the table of tokens is kept as well as one."""
    tensors = [one for one in blocks(256, 1) if one[0] != "output.weight"]
    assert quantizing.kinds(tensors, "Q4_K_S")[1] == Q6_K


@pytest.mark.parametrize(
    ("wanted", "size"), [("F32", 447_648), ("Q8_0", 127_328), ("Q4_K_M", 98_432), ("Q4_K_S", 95_616)]
)
def test_a_file_is_as_long_as_its_types_ask(wanted: str, size: int, tmp_path: Path) -> None:
    """The file says its quantisation, its tensors have the types that were chosen, and the described sizes are real."""
    path = tmp_path / "made.gguf"
    source = tmp_path / "source.gguf"
    with source.open("wb") as target:
        rewriting.copy_file(MODELS / "tiny-a.gguf", target)
    with path.open("wb") as target:
        rewriting.quantize_file(source, target, wanted)
    made, card = gguf.read(path), cards.card_of_header(gguf.read(source))
    described, grown = cards.quantize(card, wanted)
    assert (made.size, source.stat().st_size + grown) == (size, size)
    assert cards.card_of_header(made).quantization == wanted
    assert cards.card_of_header(made).tensors == described.tensors
    assert made.metadata["general.file_type"] == described.info["general.file_type"]


def test_weights_that_need_a_search_are_only_described(tmp_path: Path) -> None:
    """Blocks of 256 are not written; the tiny models have none."""
    assert rewriting.can_shrink(MODELS / "tiny-a.gguf", "Q4_K_M")
    assert not quantizing.can_write(Q4_K)
    path = tmp_path / "whole.gguf"
    with path.open("wb") as target:
        rewriting.quantize_file(MODELS / "tiny-a.gguf", target, "F32")
    again = io.BytesIO()
    assert rewriting.quantize_file(path, again, "F16") == rewriting.copy_file(MODELS / "tiny-a.gguf", io.BytesIO())


@given(_NUMBERS)
def test_a_block_of_eight_bits_is_near_to_its_numbers(numbers: list[float]) -> None:
    """Within half a step of the block's scale, and what the scale of 16 bits itself loses."""
    scale, *whole = struct.unpack("<e32b", quantizing.q8_block(numbers))
    largest = max(map(abs, numbers))
    for number, byte in zip(numbers, whole, strict=True):
        assert abs(number - scale * byte) <= largest / 127 * 0.51 + largest * 0.001 + 1e-5


def five_bits(data: bytes) -> list[int]:
    """The steps of a block of five bits."""
    fifths, *pairs = struct.unpack("<I16B", data)
    low = [pair & 15 for pair in pairs] + [pair >> 4 for pair in pairs]
    return [step | (fifths >> at & 1) << 4 for at, step in enumerate(low)]


@given(_NUMBERS)
def test_blocks_of_five_bits_are_near_to_their_numbers(numbers: list[float]) -> None:
    """Within a step of their scale, and what the numbers of 16 bits themselves lose."""
    spread = max(map(abs, numbers))
    data = quantizing.q5_0_block(numbers)
    (scale,) = struct.unpack("<e", data[:2])
    for number, step in zip(numbers, five_bits(data[2:]), strict=True):
        assert abs(number - scale * (step - 16)) <= spread / 16 + spread * 0.002 + 1e-4
    data = quantizing.q5_1_block(numbers)
    scale, least = struct.unpack("<ee", data[:4])
    for number, step in zip(numbers, five_bits(data[4:]), strict=True):
        assert abs(number - least - scale * step) <= 2 * spread / 31 + spread * 0.003 + 1e-4
