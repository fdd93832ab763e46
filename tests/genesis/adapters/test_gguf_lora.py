"""What is read of a LoRA in one GGUF file, and what is refused because the runner would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.genesis.loras import MODELS, lora
from tests.model_files.building import gguf

from batos.genesis.adapters import gguf_lora
from batos.genesis.adapters.inventory import AdapterFault, AdapterFaults
from batos.genesis.adapters.peft import Contents

Q = {"blk.0.attn_q.weight.lora_a": (64, 4), "blk.0.attn_q.weight.lora_b": (4, 64)}
METADATA: list[tuple[str, str, Any]] = [
    ("general.architecture", "str", "llama"),
    ("general.type", "str", "adapter"),
    ("adapter.type", "str", "lora"),
    ("adapter.lora.alpha", "f32", 8.0),
]


def read(path: Path) -> tuple[Contents | None, list[AdapterFault]]:
    faults = AdapterFaults("BABS", "atlas")
    found = gguf_lora.read(path, faults)
    return found, list(faults)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "a.gguf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", ["babs-lora", "alfred-lora", "wrong-width-lora", "wrong-arch-lora"])
def test_what_a_real_daemon_took_is_read(name: str) -> None:
    """All adapters of the recordings are sound as files, also those that fit no base of theirs."""
    found, faults = read(MODELS / f"{name}.gguf")
    assert not faults
    assert found is not None
    assert (found.rank, found.alpha) == (4, 8.0)
    assert found.architecture == ("qwen2" if name == "wrong-arch-lora" else "llama")
    assert found.pairs[0].shape == ((128, 128) if name == "wrong-width-lora" else (64, 64))


@pytest.mark.parametrize("name", ["tiny-a", "tiny-embed"])
def test_a_whole_model_is_refused(name: str) -> None:
    """The daemon would take it, and it would be the model that runs: what it is is said, and where it belongs."""
    found, faults = read(MODELS / f"{name}.gguf")
    assert found is None
    assert "not an adapter but a model of" in faults[0].what
    assert "in the codex" in faults[0].remedy


def without(key: str) -> list[tuple[str, str, Any]]:
    return [each for each in METADATA if each[0] != key]


WRONG: list[tuple[bytes, str, str]] = [
    (b"{}", "a.gguf", "not a GGUF file"),
    (gguf(METADATA, Q, cut=9), "a.gguf", "was cut: blk.0.attn_q.weight.lora_b"),
    (gguf([*without("general.type"), ("general.type", "str", "model")], Q), "a.gguf: general.type", "not an adapter"),
    (gguf(without("general.type"), Q), "a.gguf: general.type", "not an adapter"),
    (gguf([*without("adapter.type"), ("adapter.type", "str", "control")], Q), "a.gguf: adapter.type", "'control'"),
    (gguf(without("adapter.type"), Q), "a.gguf: adapter.type", "'None'"),
    (gguf(without("general.architecture"), Q), "a.gguf: general.architecture", "which architecture"),
    (gguf([*without("adapter.lora.alpha"), ("adapter.lora.alpha", "u32", 8)], Q), "a.gguf: adapter.lora.alpha", "8"),
    (lora(alpha=float("nan")), "a.gguf: adapter.lora.alpha", "nan"),
    (gguf(METADATA, {}), "a.gguf", "no LoRA tensor"),
    (gguf(METADATA, {**Q, "blk.0.attn_q.bias": (64,)}), "a.gguf", "not half of a LoRA"),
    (gguf(METADATA, {"x.lora_a": (64, 4)}), "a.gguf", "lora_b is missing"),
    (gguf(METADATA, {"x.lora_b": (4, 64)}), "a.gguf", "lora_a is missing"),
    (gguf(METADATA, {"x.lora_a": (64, 4), "x.lora_b": (8, 64)}), "a.gguf", "rank 4, and x.lora_b has 8"),
    (gguf(METADATA, {"x.lora_a": (64,), "x.lora_b": (4, 64)}), "a.gguf", "not a matrix"),
]


@pytest.mark.parametrize(("data", "where", "said"), WRONG)
def test_what_the_runner_refuses_is_refused_before(tmp_path: Path, data: bytes, where: str, said: str) -> None:
    """Each is told with file and key or tensor."""
    found, faults = read(written(tmp_path, data))
    assert found is None
    assert any(fault.where == where and said in fault.what for fault in faults), faults
    assert all(fault.remedy for fault in faults)


def test_no_alpha_is_a_scale_of_one(tmp_path: Path) -> None:
    """The runner takes it so, and it is said."""
    found, faults = read(written(tmp_path, gguf(without("adapter.lora.alpha"), Q)))
    assert not faults
    assert found is not None
    assert found.alpha is None
    assert "scale is 1" in found.doubts[0]


def test_norms_are_left_out(tmp_path: Path) -> None:
    """The runner passes over norms, and it is said."""
    found, _ = read(written(tmp_path, gguf(METADATA, {**Q, "blk.0.attn_norm.weight": (64,)})))
    assert found is not None
    assert "left out" in found.doubts[0]
    assert len(found.pairs) == 1


def test_the_embedding_lies_on_its_side(tmp_path: Path) -> None:
    """The halves of an adapted embedding are the other way round: its shape is the base's all the same."""
    halves = {"token_embd.weight.lora_a": (4, 372), "token_embd.weight.lora_b": (4, 64)}
    found, faults = read(written(tmp_path, gguf(METADATA, halves)))
    assert not faults
    assert found is not None
    assert (found.pairs[0].rank, found.pairs[0].shape) == (4, (64, 372))


def test_the_base_is_what_the_converter_wrote(tmp_path: Path) -> None:
    """The converter notes the base's name."""
    named = [*METADATA, ("general.base_model.0.name", "str", "Llama 3.1 8B")]
    found, _ = read(written(tmp_path, gguf(named, Q)))
    assert found is not None
    assert found.base == "Llama 3.1 8B"
