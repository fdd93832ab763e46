"""A LoRA as PEFT saves it, checked for the parts that the daemon's conversion reads and those it silently ignores."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite, isqrt
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from batos.genesis.adapters.inventory import AdapterFaults, TensorPair
from model_files import safetensors
from model_files.bounded import NotWeights

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
#: The most that a configuration may have, in bytes: PEFT writes about one thousand.
CONFIG_BYTES = 1 << 20
#: The largest number that the daemon reads as `lora_alpha`.
_MOST_ALPHA = 2**32 - 1
_CONVERTED = ("F32", "F16", "BF16")
_SAVE = "Save it again with `model.save_pretrained(FOLDER)` of PEFT."
_TRAIN = "Train it without, or merge it into the base and name the merged model in the codex."

#: The projections that the daemon's conversion knows, and the GGUF name of each.
PROJECTIONS: Mapping[str, str] = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_HALF = re.compile(
    r"(?:base_model\.model\.)?model\.layers\.(?P<block>0|[1-9][0-9]{0,4})\.(?P<module>"
    + "|".join(map(re.escape, PROJECTIONS))
    + r")\.lora_(?P<half>[AB])\.weight"
)
#: Other tensors that may occur: a part of the name, a description, a remedy.
_STRANGERS: tuple[tuple[str, str, str], ...] = (
    ("lora_magnitude_vector", "is DoRA's, which the daemon does not know", _TRAIN),
    ("lora_embedding_", "adapts an embedding, which the conversion does not know", _TRAIN),
    ("embed_tokens", "belongs to the embedding, which the conversion does not know", _TRAIN),
    ("lm_head", "belongs to the output layer, which the conversion does not know", _TRAIN),
    ("modules_to_save", "is a whole trained layer, which no LoRA can hold", _TRAIN),
    (".bias", "is a bias, which the conversion does not know", _TRAIN),
    (".default.", "has the adapter's name inside its own", _SAVE),
)
#: Values of init_lora_weights that change the base at the beginning of the training.
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq")


@dataclass(frozen=True, slots=True)
class Contents:
    """The description of an adapter by its files."""

    rank: int
    alpha: float | None
    architecture: str | None
    base: str | None
    pairs: tuple[TensorPair, ...]
    doubts: tuple[str, ...]


def read(config: Path, weights: Path, faults: AdapterFaults) -> Contents | None:
    """Look at both files; None when a fault was found. OSError: one cannot be read."""
    said = _json(config, faults)
    halves = _halves(weights, faults)
    if said is None or halves is None:
        return None
    doubts = _config(said, config.name, faults)
    pairs = _pairs(halves, weights.name, faults)
    if faults:
        return None
    _ranks(said, pairs, config.name, faults)
    if faults:
        return None
    base = said.get("base_model_name_or_path")
    rank = max(pair.rank for pair in pairs)
    return Contents(rank, float(said["lora_alpha"]), None, base if isinstance(base, str) else None, pairs, doubts)


def _json(path: Path, faults: AdapterFaults) -> dict[str, Any] | None:
    with path.open("rb") as source:
        data = source.read(CONFIG_BYTES + 1)
    if len(data) > CONFIG_BYTES:
        faults.add(f"it has more than {CONFIG_BYTES} bytes", _SAVE, path.name)
        return None
    try:
        found = json.loads(data)
    except json.JSONDecodeError as error:
        faults.add(f"it is not JSON: {error.msg}", "Correct that line.", f"{path.name}:{error.lineno}")
        return None
    except (ValueError, RecursionError):
        faults.add("it is not JSON in UTF-8", _SAVE, path.name)
        return None
    if not isinstance(found, dict):
        faults.add("it is not a JSON object", _SAVE, path.name)
        return None
    return found


# -- the configuration


def _config(said: Mapping[str, object], file: str, faults: AdapterFaults) -> tuple[str, ...]:
    """Add a fault for every key on which the daemon and PEFT would disagree; return the doubts."""

    def wrong(key: str, what: str, remedy: str) -> None:
        faults.add(what, remedy, f"{file}: {key}")

    kind = said.get("peft_type")
    if kind != "LORA":
        wrong("peft_type", f"it is {_abbreviate(kind)}, and only LORA can be used", "Train a LoRA (`peft.LoraConfig`).")
        return ()
    for key in said:
        if key not in _READ and key.casefold() in _READ:
            wrong(key[:40], f"the daemon ignores case and reads it as {key.casefold()}", "Remove it.")
    _alpha(said, wrong)
    if not _count(said.get("r")):
        wrong("r", f"the rank is {_abbreviate(said.get('r'))}, no whole number above 0", _SAVE)
    for key, meaning in _IGNORED.items():
        value = said.get(key)
        if value not in (None, False, "none", [], {}):
            wrong(key, f"it is {_abbreviate(value)}: {meaning}, and the daemon would silently ignore that", _TRAIN)
    if said.get("use_rslora"):
        wrong("use_rslora", *_rslora_fault(said))
    return _doubts(said)


#: Keys that change what an adapter does and that the daemon never reads.
_IGNORED: Mapping[str, str] = {
    "use_dora": "DoRA trains magnitudes beside the LoRA",
    "use_qalora": "QA-LoRA pools what goes in",
    "modules_to_save": "whole layers were trained beside the LoRA",
    "bias": "biases were trained beside the LoRA",
    "lora_bias": "biases were trained beside the LoRA",
    "alpha_pattern": "some modules have an alpha of their own",
    "layer_replication": "blocks of the base are used several times",
    "alora_invocation_tokens": "the adapter acts only behind certain tokens",
    "lora_parameters": "it is MLX's, and would replace lora_alpha",
    "lora_layers": "it is MLX's",
}


#: Keys that the daemon reads from the configuration, ignoring case.
_READ = ("lora_alpha", "lora_layers", "lora_parameters", "num_attention_heads", "num_key_value_heads")


def _alpha(said: Mapping[str, object], wrong: Callable[[str, str, str], None]) -> None:
    value = said.get("lora_alpha")
    if isinstance(value, float) and isfinite(value) and value.is_integer() and 0 < value <= _MOST_ALPHA:
        wrong("lora_alpha", f"the daemon reads only whole numbers there and refuses {value}", f"Write {int(value)}.")
    elif not _count(value) or value > _MOST_ALPHA:
        remedy = "Write the whole number that it was trained with (PEFT's default is 8)."
        if isinstance(value, float):
            remedy = "Train it with a whole number: the daemon knows no other."
        wrong("lora_alpha", f"it is {_abbreviate(value)}, no whole number above 0", remedy)


def _rslora_fault(said: Mapping[str, object]) -> tuple[str, str]:
    """Return fault and remedy for rsLoRA, which divides alpha by the rank's root; another alpha may equal it."""
    alpha, rank = said.get("lora_alpha", 0), said.get("r", 0)
    what = "rank-stabilised LoRA divides alpha by the root of the rank, and the daemon divides by the rank"
    if _count(alpha) and _count(rank) and isqrt(rank) ** 2 == rank and not said.get("rank_pattern"):
        same = alpha * isqrt(rank)
        return what, f"Write lora_alpha {same} and use_rslora false: with r {rank} that is the same."
    return what, "Train it with use_rslora false, or merge it into the base and name the merged model in the codex."


def _doubts(said: Mapping[str, object]) -> tuple[str, ...]:
    begun = said.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(_CHANGED_BASE):
        doubt = (
            f"init_lora_weights is {begun!r}, which changes the base before the training: with the unchanged base this "
            "adapter is right only if it was converted when it was saved (`path_initial_model_for_weight_conversion`)."
        )
        return (doubt,)
    return ()


# -- the weights


_Half: TypeAlias = tuple[str, safetensors.SafetensorsTensor]
#: The two halves of one matrix, down and up, each with its name in the file; shapes are torch's (rows first).
_Halves: TypeAlias = tuple[_Half | None, _Half | None]


def _halves(path: Path, faults: AdapterFaults) -> dict[str, _Halves] | None:
    try:
        tensors = safetensors.read(path).tensors
    except NotWeights as error:
        where = f"{path.name}: {error.where}" if error.where else path.name
        faults.add(f"it is no whole safetensors file: {error.what}", "Copy it again, or save it again.", where)
        return None
    found: dict[str, _Halves] = {}
    strangers: dict[tuple[str, str], list[str]] = {}
    for name, tensor in tensors.items():
        match = _HALF.fullmatch(name)
        if match is None:
            strangers.setdefault(_stranger(name), []).append(name)
            continue
        target = f"blk.{match['block']}.{PROJECTIONS[match['module']]}.weight"
        down, up = found.get(target, (None, None))
        half = (name, tensor)
        if (down if match["half"] == "A" else up) is not None:
            strangers.setdefault(("occurs twice, with `base_model.model.` and without", _SAVE), []).append(name)
        found[target] = (half, up) if match["half"] == "A" else (down, half)
    for (what, remedy), names in strangers.items():
        faults.add(f"{_first(names)} {what}", remedy, path.name)
    if not tensors:
        faults.add("it holds no tensor", _SAVE, path.name)
    return found


def _stranger(name: str) -> tuple[str, str]:
    for sign, what, remedy in _STRANGERS:
        if sign in name:
            return what, remedy
    known = ", ".join(module.rpartition(".")[2] for module in PROJECTIONS)
    return (
        f"is not among what the daemon's conversion knows ({known})",
        "Train it for those target_modules only, or convert it with llama.cpp's `convert_lora_to_gguf.py`.",
    )


def _pairs(halves: dict[str, _Halves], file: str, faults: AdapterFaults) -> tuple[TensorPair, ...]:
    found = []
    for tensor, (down, up) in halves.items():
        if down is not None and up is not None:
            pair = _pair(tensor, down, up, file, faults)
            if pair is not None:
                found.append(pair)
            continue
        for half, missing in ((down, "B"), (up, "A")):
            if half is not None:
                faults.add(f"{half[0]} has no partner: its lora_{missing} is missing", _SAVE, file)
    return tuple(sorted(found, key=lambda pair: pair.tensor))


def _pair(
    tensor: str,
    down: tuple[str, safetensors.SafetensorsTensor],
    up: tuple[str, safetensors.SafetensorsTensor],
    file: str,
    faults: AdapterFaults,
) -> TensorPair | None:
    (name_a, a), (name_b, b) = down, up
    for name, half in (down, up):
        if half.dtype not in _CONVERTED:
            remedy = "Save it in float16, bfloat16 or float32."
            faults.add(f"{name} is {half.dtype}, which the conversion cannot read", remedy, file)
            return None
        if len(half.shape) != 2 or 0 in half.shape:
            faults.add(f"{name} has the shape {list(half.shape)}, which is not a matrix", _SAVE, file)
            return None
    rank, width_in = a.shape
    width_out, other = b.shape
    if rank != other:
        faults.add(f"{name_a} has the rank {rank}, and {name_b} has {other}", _SAVE, file)
        return None
    if rank > min(width_in, width_out):
        what = f"{name_a} has the rank {rank}, more than its {width_in} in or {width_out} out"
        remedy = "Train it with a smaller rank: the conversion takes such a matrix for one that lies on its side."
        faults.add(what, remedy, file)
        return None
    return TensorPair(tensor, rank, (width_in, width_out), name_a)


def _ranks(said: Mapping[str, object], pairs: tuple[TensorPair, ...], file: str, faults: AdapterFaults) -> None:
    """Add a fault if the written rank is not that of the tensors; the daemon uses theirs, so a pattern is right."""
    if said.get("rank_pattern"):
        return
    other = next((pair for pair in pairs if pair.rank != said["r"]), None)
    if other is not None:
        what = f"the rank is said to be {said['r']}, and {other.written} has {other.rank}"
        remedy = "The two files are of different trainings: copy both of one."
        faults.add(what, remedy, f"{file}: r")


def _count(value: object) -> TypeGuard[int]:
    return type(value) is int and value > 0


def _abbreviate(value: object) -> str:
    text = "missing" if value is None else json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _first(names: list[str]) -> str:
    return names[0][:120] if len(names) == 1 else f"{names[0][:120]} (and {len(names) - 1} more)"
