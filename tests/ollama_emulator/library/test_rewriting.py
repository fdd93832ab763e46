"""GGUF files written anew have the digests that the daemon's own tools gave them."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from tests.ollama_emulator.recordings import MODELS

from model_files import gguf
from model_files.bounded import NotWeights
from ollama_emulator.library import lora, rewriting

_BASE = {"general.architecture": "llama", "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2}


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("tiny-a", "771b4fbeccf6a79fac4bfac000789fafccc927a81c7fc5bbe570890deb934185"),
        ("tiny-embed", "a94eda4dde9f33061be15f4bb6cff89db486bd6a9b36abb22717cb08a1738a54"),
    ],
)
def test_an_upload_is_copied_to_the_recorded_digest(name: str, digest: str) -> None:
    """Two keys move to the end, tensors are ordered by block and name."""
    target = io.BytesIO()
    assert rewriting.copy_file(MODELS / f"{name}.gguf", target) == f"sha256:{digest}"
    assert hashlib.sha256(target.getvalue()).hexdigest() == digest


def test_weights_are_quantised_to_the_recorded_digest() -> None:
    """Q8_0 of every matrix; vectors stay as they are."""
    target = io.BytesIO()
    found = rewriting.quantize_file(MODELS / "tiny-a.gguf", target, "Q8_0")
    assert found == "sha256:79b71ecef83574aa4a298ce258dd783c81b60a9460d598b87d31695beabfdf08"
    assert len(target.getvalue()) == 127_328


def test_a_copy_of_a_copy_is_the_same(tmp_path: Path) -> None:
    """Its keys and tensors are where they belong already, and all weights are what they were."""
    path = tmp_path / "copy.gguf"
    with path.open("wb") as target:
        digest = rewriting.copy_file(MODELS / "tiny-b.gguf", target)
    assert rewriting.copy_file(path, io.BytesIO()) == digest
    before, after = gguf.read(MODELS / "tiny-b.gguf"), gguf.read(path)
    assert {key: before.metadata[key] for key in before.metadata} == {
        key: value for key, value in after.metadata.items() if key != "general.quantization_version"
    }
    assert {tensor.name: tensor.shape for tensor in before.tensors} == {
        tensor.name: tensor.shape for tensor in after.tensors
    }


def test_a_file_without_its_weights_is_not_copied(tmp_path: Path) -> None:
    """The daemon's tools refuse it, too."""
    path = tmp_path / "cut.gguf"
    path.write_bytes((MODELS / "tiny-a.gguf").read_bytes()[:150_000])
    with pytest.raises(NotWeights):
        rewriting.copy_file(path, io.BytesIO())


def test_a_peft_adapter_is_converted_to_the_recorded_digest() -> None:
    """The rows of the queries' first matrix are put as rotary positions want them, numbers have 16 bits."""
    path = MODELS / "peft" / "robin" / "adapter_model.safetensors"
    sides = lora.sides(path, (4, 0))
    assert lora.can_convert(sides)
    found = lora.convert(path, sides, 8.0, _BASE, io.BytesIO())
    assert found == "sha256:c9e7fe78791172f77706613758977d9e100d2bc34329da009a381939caeb3535"


def test_a_matrix_that_lies_the_other_way_is_turned() -> None:
    """Some trainers write what goes in first; the converted file has it last, as the others do."""
    side = lora.LoraMatrix("blk.0.ffn_up.weight.lora_a", (64, 4), "F32", 0)
    assert side.turned
    assert side.gguf_shape == (64, 4)
    assert not lora.LoraMatrix("blk.0.ffn_up.weight.lora_a", (4, 64), "F32", 0).turned
