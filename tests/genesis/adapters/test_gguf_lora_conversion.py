"""PEFT adapters written as GGUF: the same change of the base's weights, to the number."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.genesis.loras import MODELS, gguf_adapter, halves, peft_adapter
from tests.model_files.building import raw_safetensors

from batos.genesis.adapters import gguf_lora
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.inventory import Adapter, AdapterFaults
from batos.protocol.errors import AdapterError, UsageError
from model_files import gguf, safetensors
from model_files.gguf import TensorSource, write

Matrix: TypeAlias = list[list[float]]

INFO: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
}


def matrix(path: Path, start: int, shape: tuple[int, int]) -> Matrix:
    """F32 numbers of a file by rows; `shape` is rows and columns."""
    rows, columns = shape
    with path.open("rb") as file:
        file.seek(start)
        numbers = struct.unpack(f"<{rows * columns}f", file.read(4 * rows * columns))
    return [list(numbers[row * columns : (row + 1) * columns]) for row in range(rows)]


def product(one: Matrix, other: Matrix) -> Matrix:
    columns = list(zip(*other, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in one]


def as_the_base_is_ordered(rows: Matrix, heads: int) -> Matrix:
    """What llama.cpp does to the rows of queries and keys when a llama becomes GGUF."""
    half = len(rows) // heads // 2
    return [rows[head * 2 * half + part * half + at] for head in range(heads) for at in range(half) for part in (0, 1)]


def filled(folder: Path, shapes: dict[str, tuple[int, int]]) -> Path:
    """A PEFT adapter whose numbers are all different."""
    peft_adapter(folder, shapes=shapes)
    header: dict[str, Any] = {}
    numbers: list[float] = []
    start = 0
    for name, (rows, columns) in shapes.items():
        count = rows * columns
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [start, start + 4 * count]}
        numbers += [(len(numbers) + at) % 97 / 16 - 3 for at in range(count)]
        start += 4 * count
    data = raw_safetensors(json.dumps(header).encode(), 0) + struct.pack(f"<{len(numbers)}f", *numbers)
    (folder / "adapter_model.safetensors").write_bytes(data)
    return folder


def changes(adapter: Adapter) -> dict[str, Matrix]:
    """What a PEFT adapter adds to each tensor of its base, less the scale."""
    path = adapter.files["adapter_model.safetensors"]
    tensors = safetensors.read(path).tensors
    found = {}
    for pair in adapter.pairs:
        a = tensors[pair.written]
        b = tensors[pair.written.replace("lora_A", "lora_B")]
        ups, downs = (
            matrix(path, b.start, (pair.shape[1], pair.rank)),
            matrix(path, a.start, (pair.rank, pair.shape[0])),
        )
        found[pair.tensor] = product(ups, downs)
    return found


def written_changes(path: Path) -> dict[str, Matrix]:
    """What a GGUF adapter adds to each tensor of its base, less the scale."""
    header = gguf.read(path)
    places = {tensor.name: tensor for tensor in header.tensors}
    found = {}
    for name, up in places.items():
        if name.endswith(".lora_b"):
            down = places[name.removesuffix("b") + "a"]
            ups = matrix(path, header.data + up.offset, (up.shape[1], up.shape[0]))
            downs = matrix(path, header.data + down.offset, (down.shape[1], down.shape[0]))
            found[name.removesuffix(".lora_b")] = product(ups, downs)
    return found


def converted(folder: Path, shapes: dict[str, tuple[int, int]], info: dict[str, Any]) -> tuple[Adapter, Path]:
    filled(folder / "adapters" / "robin" / "warm", shapes)
    (adapter,) = discover(folder / "adapters").adapters
    target = folder / "out" / "adapter.gguf"
    gguf_lora.convert(adapter, info, target)
    return adapter, target


def test_every_projection_changes_what_it_changed(tmp_path: Path) -> None:
    """On a llama base: queries and keys in the order that the base's rows have there, all others as they were."""
    shapes = {
        **halves("self_attn.q_proj"),
        **halves("self_attn.k_proj", outs=32),
        **halves("self_attn.v_proj", outs=32),
        **halves("self_attn.o_proj", 1),
        **halves("mlp.down_proj", 1, ins=96),
    }
    adapter, target = converted(tmp_path, shapes, INFO)
    wanted, found = changes(adapter), written_changes(target)
    heads = {"blk.0.attn_q.weight": 4, "blk.0.attn_k.weight": 2}
    assert found == {
        name: as_the_base_is_ordered(rows, heads[name]) if name in heads else rows for name, rows in wanted.items()
    }
    assert found["blk.0.attn_q.weight"] != wanted["blk.0.attn_q.weight"]


@pytest.mark.parametrize("architecture", ["gemma2", "qwen2", "qwen3"])
def test_other_bases_keep_their_rows(tmp_path: Path, architecture: str) -> None:
    """Their GGUF has queries and keys as the original has them."""
    adapter, target = converted(tmp_path, halves(), {"general.architecture": architecture})
    assert written_changes(target) == changes(adapter)


def test_what_is_written_is_a_sound_adapter(tmp_path: Path) -> None:
    """It says what the runner asks for, and is read back with the rank, alpha, base and widths that it had."""
    adapter, target = converted(tmp_path, {**halves(), **halves("mlp.up_proj", outs=96)}, INFO)
    faults = AdapterFaults("ROBIN", "warm")
    found = gguf_lora.read(target, faults)
    assert not faults
    assert found is not None
    assert (found.rank, found.alpha, found.base, found.architecture) == (4, 8.0, adapter.base, "llama")
    assert [(pair.tensor, pair.shape) for pair in found.pairs] == [(pair.tensor, pair.shape) for pair in adapter.pairs]
    assert found.doubts == ()


def test_the_recorded_adapters_are_converted(tmp_path: Path) -> None:
    """Those whose conversion by a real daemon is known (and is noise in the queries)."""
    place = tmp_path / "adapters" / "robin" / "warm"
    place.mkdir(parents=True)
    for path in (MODELS / "peft" / "robin").iterdir():
        (place / path.name).write_bytes(path.read_bytes())
    (adapter,) = discover(tmp_path / "adapters").adapters
    target = tmp_path / "adapter.gguf"
    gguf_lora.convert(adapter, gguf.read(MODELS / "tiny-a.gguf").metadata, target)
    wanted = {
        name: as_the_base_is_ordered(rows, 4) if "attn_q" in name else rows for name, rows in changes(adapter).items()
    }
    assert written_changes(target) == wanted


def test_types_stay_what_they_are(tmp_path: Path) -> None:
    """No number is computed: 16-bit ones are written as they are."""
    peft_adapter(tmp_path / "robin" / "warm", dtype="BF16", width=2)
    (adapter,) = discover(tmp_path).adapters
    gguf_lora.convert(adapter, INFO, tmp_path / "a.gguf")
    header = gguf.read(tmp_path / "a.gguf")
    assert {tensor.type for tensor in header.tensors} == {"BF16"}
    assert header.metadata["general.file_type"] == 32
    assert header.cut is None


def test_what_cannot_be_converted_says_why(tmp_path: Path) -> None:
    """A GGUF file, a base of another kind, one that does not say its heads, a file that is there already."""
    gguf_adapter(tmp_path / "babs" / "atlas")
    peft_adapter(tmp_path / "robin" / "warm")
    warm, atlas = discover(tmp_path).adapters
    target = tmp_path / "a.gguf"
    for adapter, info, said in (
        (atlas, INFO, "already"),
        (warm, {"general.architecture": "phi3"}, "the base is phi3"),
        (warm, {}, "unknown"),
        (warm, {"general.architecture": "llama"}, "does not say"),
        (warm, {**INFO, "llama.attention.head_count": 5}, "does not say"),
    ):
        with pytest.raises(AdapterError, match=said):
            gguf_lora.convert(adapter, info, target)
        assert not target.exists()
    with pytest.raises(AdapterError) as refused:
        gguf_lora.convert(atlas, INFO, target)
    assert refused.value.remedy == "There is nothing to do: it is used as it is."
    target.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        gguf_lora.convert(warm, INFO, target)
    assert target.read_text() == "mine"
    with pytest.raises(UsageError, match="cannot be written"):
        gguf_lora.convert(warm, INFO, target / "below.gguf")


def test_a_file_that_is_cut_meanwhile_is_told(tmp_path: Path) -> None:
    """What was sound when it was looked at and is not any more leaves no half of a file."""
    peft_adapter(tmp_path / "robin" / "warm")
    (warm,) = discover(tmp_path).adapters
    data = warm.files["adapter_model.safetensors"].read_bytes()
    source = tmp_path / "grown.safetensors"
    source.write_bytes(data)
    (tensor,) = [each for each in safetensors.read(source).tensors.values() if each.shape == (64, 4)]
    source.write_bytes(data[: tensor.end - 100])
    with pytest.raises(ValueError, match="bytes instead of"):
        write(tmp_path / "a.gguf", [], [TensorSource("t", "F32", (4, 64), 1024, gguf_lora._pieces(source, tensor, 0))])
    warm.files["adapter_model.safetensors"].write_bytes(data[:-100])
    with pytest.raises(UsageError, match="changed"):
        gguf_lora.convert(warm, INFO, tmp_path / "out" / "a.gguf")
    assert not (tmp_path / "out").exists()
