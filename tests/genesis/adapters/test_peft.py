"""What is read of a LoRA as PEFT saves it, and what is refused before the daemon would take it wrongly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.genesis.loras import MODELS, halves, peft_adapter

from batos.genesis.adapters import peft
from batos.genesis.adapters.inventory import AdapterFault, AdapterFaults
from batos.genesis.adapters.peft import Contents


def read(folder: Path) -> tuple[Contents | None, list[AdapterFault]]:
    faults = AdapterFaults("ROBIN", "warm")
    found = peft.read(folder / peft.CONFIG, folder / peft.WEIGHTS, faults)
    return found, list(faults)


def test_what_peft_saves_is_read(tmp_path: Path) -> None:
    """Rank, alpha, base and each adapted matrix come out, the matrices under their names in the base's GGUF."""
    shapes = {**halves("mlp.down_proj", 11, ins=96), **halves("self_attn.k_proj", 2, outs=32)}
    found, faults = read(peft_adapter(tmp_path, shapes=shapes))
    assert not faults
    assert found is not None
    assert (found.rank, found.alpha, found.base) == (4, 8.0, "meta-llama/Llama-3.1-8B-Instruct")
    assert [(pair.tensor, pair.rank, pair.shape) for pair in found.pairs] == [
        ("blk.11.ffn_down.weight", 4, (96, 64)),
        ("blk.2.attn_k.weight", 4, (64, 32)),
    ]


@pytest.mark.parametrize("name", ["robin", "brick"])
def test_what_a_real_daemon_converted_is_read(name: str) -> None:
    """The PEFT folders of the recordings are sound."""
    found, faults = read(MODELS / "peft" / name)
    assert not faults
    assert found is not None
    assert [pair.tensor for pair in found.pairs] == [
        "blk.0.attn_q.weight",
        "blk.0.attn_v.weight",
        "blk.1.attn_q.weight",
        "blk.1.attn_v.weight",
    ]


@pytest.mark.parametrize("module", peft.PROJECTIONS)
def test_every_projection_of_the_conversion_is_known(tmp_path: Path, module: str) -> None:
    """q, k, v, o, gate, up and down go by their GGUF names."""
    found, faults = read(peft_adapter(tmp_path, shapes=halves(module)))
    assert not faults
    assert found is not None
    assert found.pairs[0].tensor == f"blk.0.{peft.PROJECTIONS[module]}.weight"


CONFIGS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"peft_type": "IA3"}, "peft_type", '"IA3"', "LoraConfig"),
    ({"peft_type": ...}, "peft_type", "missing", "LoraConfig"),
    ({"lora_alpha": 16.0}, "lora_alpha", "refuses 16.0", "Write 16."),
    ({"lora_alpha": 16.5}, "lora_alpha", "no whole number", "Train it with a whole number"),
    ({"lora_alpha": "16"}, "lora_alpha", "no whole number", "whole number"),
    ({"lora_alpha": True}, "lora_alpha", "no whole number", "whole number"),
    ({"lora_alpha": 0}, "lora_alpha", "above 0", "whole number"),
    ({"lora_alpha": -8}, "lora_alpha", "above 0", "whole number"),
    ({"lora_alpha": 2**32}, "lora_alpha", "no whole number", "whole number"),
    ({"lora_alpha": ...}, "lora_alpha", "missing", "default is 8"),
    ({"r": ...}, "r", "missing", "save_pretrained"),
    ({"r": 0}, "r", "no whole number above 0", "save_pretrained"),
    ({"use_dora": True}, "use_dora", "DoRA", "merge it"),
    ({"use_qalora": True}, "use_qalora", "QA-LoRA", "merge it"),
    ({"modules_to_save": ["lm_head"]}, "modules_to_save", "whole layers", "merge it"),
    ({"bias": "all"}, "bias", "biases", "merge it"),
    ({"lora_bias": True}, "lora_bias", "biases", "merge it"),
    ({"alpha_pattern": {"q_proj": 32}}, "alpha_pattern", "alpha of their own", "merge it"),
    ({"layer_replication": [[0, 4], [2, 5]]}, "layer_replication", "several times", "merge it"),
    ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens", "behind certain tokens", "merge it"),
    ({"lora_parameters": {"alpha": 4}}, "lora_parameters", "MLX", "merge it"),
    ({"lora_layers": 16}, "lora_layers", "MLX", "merge it"),
    ({"Lora_Alpha": 16.0}, "Lora_Alpha", "reads it as lora_alpha", "Remove it."),
    ({"use_rslora": True}, "use_rslora", "root of the rank", "Write lora_alpha 16 and use_rslora false"),
    ({"use_rslora": True, "r": 5}, "use_rslora", "root of the rank", "use_rslora false, or merge"),
    ({"r": 8}, "r", "said to be 8", "different trainings"),
]


@pytest.mark.parametrize(("config", "key", "said", "remedy"), CONFIGS)
def test_what_the_daemon_reads_otherwise_is_refused(
    tmp_path: Path, config: dict[str, Any], key: str, said: str, remedy: str
) -> None:
    """Each key on which PEFT and the daemon disagree is refused by its name, with what to write or do."""
    found, faults = read(peft_adapter(tmp_path, config))
    assert found is None
    fault = next(fault for fault in faults if fault.where == f"adapter_config.json: {key}")
    assert said in fault.what
    assert remedy in fault.remedy


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """Whoever corrects one does not learn of the next by another run."""
    _, faults = read(peft_adapter(tmp_path, {"lora_alpha": 8.0, "use_dora": True}, {"lm_head.lora_A.weight": (4, 64)}))
    assert len(faults) == 3


TEXTS: list[tuple[bytes, str, str]] = [
    (b'{\n "r": 4,\n "lora_alpha": ,\n}', "adapter_config.json:3", "not JSON"),
    (b"", "adapter_config.json:1", "not JSON"),
    (b"\xff\xfe\x00", "adapter_config.json", "UTF-8"),
    (b"[" * 100_000, "adapter_config.json", "not JSON"),
    (b"[1]", "adapter_config.json", "not a JSON object"),
    (b" " * (1 << 20) + b"{}", "adapter_config.json", "more than"),
]


@pytest.mark.parametrize(("data", "where", "said"), TEXTS)
def test_a_configuration_that_is_none_is_told_by_line(tmp_path: Path, data: bytes, where: str, said: str) -> None:
    """What is not JSON is told with the file and, where there is one, the line."""
    folder = peft_adapter(tmp_path)
    (folder / peft.CONFIG).write_bytes(data)
    _, faults = read(folder)
    assert [(fault.where, said in fault.what) for fault in faults] == [(where, True)]


LAYER = "base_model.model.model.layers.0.self_attn.q_proj"
TENSORS: list[tuple[dict[str, tuple[int, ...]], str, str]] = [
    ({}, "no tensor", "save_pretrained"),
    ({f"{LAYER}.lora_A.weight": (4, 64)}, "lora_B is missing", "save_pretrained"),
    ({f"{LAYER}.lora_B.weight": (64, 4)}, "lora_A is missing", "save_pretrained"),
    ({f"{LAYER}.lora_A.weight": (4, 64), f"{LAYER}.lora_B.weight": (64, 8)}, "rank 4, and", "save_pretrained"),
    ({f"{LAYER}.lora_A.weight": (4, 64, 1), f"{LAYER}.lora_B.weight": (64, 4)}, "not a matrix", "save_pretrained"),
    ({f"{LAYER}.lora_A.weight": (0, 64), f"{LAYER}.lora_B.weight": (64, 0)}, "not a matrix", "save_pretrained"),
    ({**halves(), **halves("self_attn.v_proj", outs=3)}, "more than its 64 in or 3 out", "smaller rank"),
    ({**halves(), f"{LAYER}.lora_magnitude_vector": (64,)}, "DoRA", "merge it"),
    ({**halves(), "base_model.model.lm_head.lora_A.weight": (4, 64)}, "output layer", "merge it"),
    ({**halves(), "base_model.model.model.embed_tokens.lora_embedding_A": (4, 9)}, "embedding", "merge it"),
    ({**halves(), f"{LAYER}.lora_B.bias": (64,)}, "bias", "merge it"),
    ({f"{LAYER}.lora_A.default.weight": (4, 64)}, "adapter's name inside", "save_pretrained"),
    (
        {**halves(), LAYER.removeprefix("base_model.model.") + ".lora_A.weight": (4, 64)},
        "occurs twice",
        "save_pretrained",
    ),
    ({**halves("mlp.experts.3.w1")}, "knows (q_proj", "convert_lora_to_gguf.py"),
    ({**halves(block=100_000)}, "knows (q_proj", "convert_lora_to_gguf.py"),
]


@pytest.mark.parametrize(("shapes", "said", "remedy"), TENSORS)
def test_tensors_that_the_conversion_does_not_take_are_told_by_name(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], said: str, remedy: str
) -> None:
    """What would be lost, or make the runner give up, is refused with its tensor and what to do."""
    found, faults = read(peft_adapter(tmp_path, shapes=shapes))
    assert found is None
    assert [(said in fault.what, remedy in fault.remedy) for fault in faults] == [(True, True)]


def test_types_that_cannot_be_converted_are_refused(tmp_path: Path) -> None:
    """Only float16, bfloat16 and float32 are."""
    _, faults = read(peft_adapter(tmp_path, dtype="F8_E4M3", width=1))
    assert "is F8_E4M3" in faults[0].what
    assert not read(peft_adapter(tmp_path, dtype="BF16", width=2))[1]


def test_weights_that_were_cut_are_refused(tmp_path: Path) -> None:
    """A copy that did not come to its end is told as one."""
    _, faults = read(peft_adapter(tmp_path, cut=8))
    assert "was cut" in faults[0].what
    assert faults[0].where.startswith("adapter_model.safetensors")


def test_ranks_of_their_own_are_right(tmp_path: Path) -> None:
    """With a rank_pattern matrices may differ: PEFT and the runner both divide by each one's own rank."""
    shapes = {**halves(), **halves("self_attn.v_proj", rank=8)}
    found, faults = read(peft_adapter(tmp_path, {"rank_pattern": {"v_proj": 8}}, shapes))
    assert not faults
    assert found is not None
    assert found.rank == 8


def test_a_base_that_was_changed_before_the_training_is_doubted(tmp_path: Path) -> None:
    """PiSSA and its kin are right only on the base that they changed, unless they were converted."""
    found, _ = read(peft_adapter(tmp_path, {"init_lora_weights": "pissa_niter_4"}))
    assert found is not None
    assert "changes the base" in found.doubts[0]
    assert read(peft_adapter(tmp_path, {"init_lora_weights": "gaussian"}))[0].doubts == ()  # type: ignore[union-attr]


values = (
    st.none()
    | st.booleans()
    | st.integers(-5, 2**40)
    | st.floats()
    | st.text(max_size=4)
    | st.just([1])
    | st.just({"a": 1})
)


@settings(max_examples=60, deadline=None)
@given(config=st.dictionaries(st.sampled_from(["r", "lora_alpha", "bias", "use_rslora", "rank_pattern", "use_dora",
                                               "base_model_name_or_path", "init_lora_weights"]), values))  # fmt: skip
def test_any_configuration_is_read_or_refused(reused_folder: Path, config: dict[str, Any]) -> None:
    """Whatever stands behind its keys, a configuration gives contents or faults, never both and never neither."""
    folder = reused_folder / "any"
    peft_adapter(folder)
    (folder / peft.CONFIG).write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 8, **config}))
    found, faults = read(folder)
    assert (found is None) == bool(faults)
