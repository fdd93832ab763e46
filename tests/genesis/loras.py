"""Adapters folders made by hand: PEFT and GGUF, right or wrong at one place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.model_files.building import MODELS, Shapes, lora, safetensors

__all__ = ["MODELS", "Shapes", "gguf_adapter", "halves", "lora", "peft_adapter"]

CONFIG: Mapping[str, Any] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "base_model_name_or_path": "meta-llama/Llama-3.1-8B-Instruct",
    "r": 4,
    "lora_alpha": 8,
    "lora_dropout": 0.0,
    "bias": "none",
    "use_dora": False,
    "use_rslora": False,
    "modules_to_save": None,
    "alpha_pattern": {},
    "rank_pattern": {},
    "target_modules": ["q_proj", "v_proj"],
}


def halves(
    module: str = "self_attn.q_proj", block: int = 0, *, rank: int = 4, ins: int = 64, outs: int = 64
) -> dict[str, tuple[int, int]]:
    """The two tensors of one adapted matrix, as PEFT names them."""
    name = f"base_model.model.model.layers.{block}.{module}"
    return {f"{name}.lora_A.weight": (rank, ins), f"{name}.lora_B.weight": (outs, rank)}


def peft_adapter(
    folder: Path, config: Mapping[str, Any] | None = None, shapes: Shapes | None = None, **form: Any
) -> Path:
    """A PEFT folder; `config` replaces keys, and removes those whose value is `...`."""
    folder.mkdir(parents=True, exist_ok=True)
    said = {key: value for key, value in {**CONFIG, **(config or {})}.items() if value is not ...}
    (folder / "adapter_config.json").write_text(json.dumps(said, indent=1), encoding="utf-8")
    (folder / "adapter_model.safetensors").write_bytes(safetensors(halves() if shapes is None else shapes, **form))
    return folder


def gguf_adapter(folder: Path, data: bytes | None = None, name: str = "lora.gguf") -> Path:
    """A folder with one GGUF file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(lora() if data is None else data)
    return folder
