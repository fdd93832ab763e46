"""Whether an adapter fits a base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.genesis.loras import MODELS, halves, peft_adapter
from tests.model_files.building import gguf as built

from batos.genesis import adapter_check
from batos.genesis.adapters.folder import discover
from batos.genesis.adapters.inventory import Adapter
from batos.inference.ollama.catalogue import ModelCard
from model_files import gguf

INFO: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.key_length": 16,
    "llama.attention.value_length": 16,
}


def card(*, tensors: bool = True, **changed: Any) -> ModelCard:
    """What `show` says of the tiny base, with its tensors or without."""
    header = gguf.read(MODELS / "tiny-a.gguf")
    shapes = {each.name: each.shape for each in header.tensors} if tensors else {}
    modelfile = "FROM /blobs/sha256-0\n"
    made = ModelCard("tiny:latest", ("completion",), INFO, modelfile, "", "", "llama", "109K", "F16", shapes)
    return replace(made, **changed)


def adapter(folder: Path, name: str = "babs-lora") -> Adapter:
    """An adapter of the recordings."""
    place = folder / "adapters" / "babs" / name
    place.mkdir(parents=True)
    if name in ("robin", "brick"):
        for path in (MODELS / "peft" / name).iterdir():
            (place / path.name).write_bytes(path.read_bytes())
    else:
        (place / "a.gguf").write_bytes((MODELS / f"{name}.gguf").read_bytes())
    return discover(folder / "adapters").adapters[0]


@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("name", ["babs-lora", "alfred-lora", "robin", "brick"])
def test_what_a_real_daemon_ran_fits(tmp_path: Path, name: str, tensors: bool) -> None:
    """The adapters that the recorded daemon loaded fit, by the base's tensors and by its metadata alone."""
    assert adapter_check.misfits(adapter(tmp_path, name), card(tensors=tensors)) == ()


@pytest.mark.parametrize("tensors", [True, False])
def test_another_width_is_told_with_both(tmp_path: Path, tensors: bool) -> None:
    """The first matrix is named with what it is for and what is there, and how many more there are."""
    (fault,) = adapter_check.misfits(adapter(tmp_path, "wrong-width-lora"), card(tensors=tensors))
    assert "for 128 in and 128 out" in fault.what
    assert "64 in and 64 out" in fault.what
    assert fault.where == "blk.0.attn_q.weight.lora_a and 3 more"
    assert "codex" in fault.remedy


def test_another_architecture_is_told(tmp_path: Path) -> None:
    """A GGUF adapter is for one architecture."""
    (fault,) = adapter_check.misfits(adapter(tmp_path, "wrong-arch-lora"), card())
    assert fault.what == "it is for the architecture qwen2, and tiny:latest is llama"


def test_safetensors_are_converted_for_two_families(tmp_path: Path) -> None:
    """For any other base the verb or the tool is named that makes a GGUF adapter."""
    peft = adapter(tmp_path, "robin")
    for architecture, remedy in (("qwen2", "batos adapters convert BABS/robin"), ("phi3", "convert_lora_to_gguf.py")):
        (fault,) = adapter_check.misfits(peft, card(info={"general.architecture": architecture}))
        assert "llama and gemma2" in fault.what
        assert remedy in fault.remedy
    assert adapter_check.misfits(peft, card(info={"general.architecture": "gemma2"})) == ()


def test_a_base_with_an_adapter_is_none(tmp_path: Path) -> None:
    """The daemon would put the second one on top of the first."""
    stacked = card(modelfile="FROM /blobs/sha256-0\nADAPTER /blobs/sha256-1\n")
    (fault,) = adapter_check.misfits(adapter(tmp_path), stacked)
    assert "carries an adapter itself" in fault.what
    doubled = card(modelfile="FROM /blobs/sha256-0\nFROM /blobs/sha256-1\n")
    assert "two sets of weights" in adapter_check.misfits(adapter(tmp_path / "again"), doubled)[0].what


@pytest.mark.parametrize("tensors", [True, False])
def test_a_block_that_is_not_there_is_told(tmp_path: Path, tensors: bool) -> None:
    """An adapter of a larger model says which block it wants and how many there are."""
    folder = tmp_path / "adapters"
    peft_adapter(folder / "robin" / "big", shapes={**halves(), **halves(block=40)})
    (fault,) = adapter_check.misfits(discover(folder).adapters[0], card(tensors=tensors))
    assert fault.what == "it adapts block 40, and tiny:latest has 2 blocks (0 to 1)"
    assert "layers.40" in fault.where


def test_a_tensor_that_is_not_there_is_told(tmp_path: Path) -> None:
    """A GGUF adapter may name anything; the base's own tensors say whether it is there."""
    place = tmp_path / "adapters" / "babs" / "odd"
    place.mkdir(parents=True)
    metadata: list[tuple[str, str, Any]] = [
        ("general.architecture", "str", "llama"),
        ("general.type", "str", "adapter"),
        ("adapter.type", "str", "lora"),
        ("adapter.lora.alpha", "f32", 8.0),
    ]
    data = built(metadata, {"blk.0.attn_qkv.weight.lora_a": (64, 4), "blk.0.attn_qkv.weight.lora_b": (4, 64)})
    (place / "a.gguf").write_bytes(data)
    (fault,) = adapter_check.misfits(discover(tmp_path / "adapters").adapters[0], card())
    assert fault.what == "tiny:latest has no tensor blk.0.attn_qkv.weight"


@pytest.mark.parametrize(
    ("module", "ins", "outs"),
    [
        ("self_attn.q_proj", 64, 64),
        ("self_attn.k_proj", 64, 32),
        ("self_attn.v_proj", 64, 32),
        ("self_attn.o_proj", 64, 64),
        ("mlp.gate_proj", 64, 96),
        ("mlp.up_proj", 64, 96),
        ("mlp.down_proj", 96, 64),
    ],
)
@pytest.mark.parametrize("tensors", [True, False])
def test_both_widths_of_every_projection_are_compared(
    tmp_path: Path, module: str, ins: int, outs: int, tensors: bool
) -> None:
    """One more or less on either side of any projection does not fit."""
    for number, (more, less) in enumerate([(0, 0), (8, 0), (0, 8)]):
        folder = tmp_path / str(number)
        peft_adapter(folder / "robin" / "x", shapes=halves(module, ins=ins + more, outs=outs + less))
        found = adapter_check.misfits(discover(folder).adapters[0], card(tensors=tensors))
        assert bool(found) == bool(more or less)


@pytest.mark.parametrize("tensors", [True, False])
def test_the_blocks_are_counted_from_zero(tmp_path: Path, tensors: bool) -> None:
    """A base of two blocks has the blocks 0 and 1."""
    for block, fits in ((1, True), (2, False)):
        folder = tmp_path / str(block)
        peft_adapter(folder / "robin" / "x", shapes=halves(block=block))
        assert (adapter_check.misfits(discover(folder).adapters[0], card(tensors=tensors)) == ()) is fits


def test_what_metadata_does_not_say_is_not_a_fault(tmp_path: Path) -> None:
    """Heads that differ by block are an array, which a plain `show` leaves out: then nothing is derived of them."""
    info = {**INFO, "llama.attention.head_count_kv": None}
    folder = tmp_path / "adapters"
    peft_adapter(folder / "robin" / "x", shapes=halves("self_attn.k_proj", outs=48))
    assert adapter_check.misfits(discover(folder).adapters[0], card(tensors=False, info=info)) == ()


NAMES: list[tuple[str, str, bool]] = [
    ("meta-llama/Llama-3.1-8B-Instruct", "llama3.1:8b-instruct-q4_K_M", False),
    ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama3.1:8b-instruct-q4_K_M", False),
    ("meta-llama/Llama-3.2-3B-Instruct", "llama3.1:8b-instruct-q4_K_M", True),
    ("mistralai/Mistral-7B-Instruct-v0.3", "llama3.1:8b", True),
    ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5:7b", False),
    ("./checkpoints/last", "llama3.1:8b", False),
    ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama:1.1b", False),
]


@pytest.mark.parametrize(("trained_on", "base", "doubted"), NAMES)
def test_a_name_is_a_hint(tmp_path: Path, trained_on: str, base: str, doubted: bool) -> None:
    """Another family or size in the name is told as a doubt; what a name does not say is none."""
    made = replace(adapter(tmp_path), base=trained_on)
    assert bool(adapter_check.doubts(made, base)) == doubted


def test_what_the_daemon_would_spoil_is_doubted(tmp_path: Path) -> None:
    """Queries and keys of a PEFT adapter on any base that may be a llama; other projections, GGUF, gemma are not."""
    robin = adapter(tmp_path, "robin")
    (doubt,) = adapter_check.doubts(replace(robin, base=None), "llama3.1:8b")
    assert "batos adapters convert BABS/robin" in doubt
    values = replace(robin, base=None, pairs=tuple(pair for pair in robin.pairs if "attn_v" in pair.tensor))
    assert adapter_check.doubts(values, "llama3.1:8b") == ()
    assert adapter_check.doubts(replace(robin, base=None), "gemma2:2b") == ()
    assert adapter_check.doubts(adapter(tmp_path / "gguf"), "llama3.1:8b") == ()
