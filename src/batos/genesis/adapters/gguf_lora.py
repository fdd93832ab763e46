"""A LoRA in one GGUF file, judged by what the daemon's runner demands of it when it loads."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

from batos.genesis.adapters.inventory import AdapterFaults, TensorPair
from batos.genesis.adapters.peft import Contents
from model_files import gguf
from model_files.bounded import NotWeights

_CONVERT = "Make it with llama.cpp's `convert_lora_to_gguf.py`, which writes all that is needed."
_COPY = "Copy it again, or convert it again."
_DOWN, _UP, _NORM = ".lora_a", ".lora_b", "_norm.weight"
#: The tensor whose halves are the other way round: tokens go in by number.
_EMBEDDING = "token_embd.weight"


def read(path: Path, faults: AdapterFaults) -> Contents | None:
    """Look at the file; None when a fault was found. OSError: it cannot be read."""
    try:
        header = gguf.read(path, arrays=False)
    except NotWeights as error:
        where = f"{path.name}: {error.where}" if error.where else path.name
        faults.add(f"it is not a GGUF file: {error.what}", _COPY, where)
        return None
    kind = header.metadata.get("general.type")
    architecture = header.metadata.get("general.architecture")
    if kind != "adapter":
        what = (
            f"it is not an adapter but a {kind if isinstance(kind, str) else 'model'} of {header.parameters:,} "
            "weights: the daemon would take it and run it in the base's place"
        )
        faults.add(what, f"Name a model in the codex, not here. A LoRA: {_CONVERT}", f"{path.name}: general.type")
        return None
    cut = header.cut
    if cut is not None:
        faults.add(f"the file was cut: {cut.name} lies beyond its {header.size} bytes", _COPY, path.name)
    _metadata(header.metadata.get, path.name, faults)
    pairs, doubts = _pairs(header.tensors, path.name, faults)
    if faults:
        return None
    alpha = header.metadata.get("adapter.lora.alpha")
    if not alpha:
        doubts.append("It has no adapter.lora.alpha, so its scale is 1.")
    base = header.metadata.get("general.base_model.0.name")
    rank = max(pair.rank for pair in pairs)
    said = base if isinstance(base, str) else None
    return Contents(rank, alpha, architecture, said, pairs, tuple(doubts))


def _metadata(said: Any, file: str, faults: AdapterFaults) -> None:
    kind = said("adapter.type")
    if kind != "lora":
        faults.add(f"its type is {str(kind)[:40]!r}, and only `lora` can be used", _CONVERT, f"{file}: adapter.type")
    alpha = said("adapter.lora.alpha")
    if alpha is not None and (not isinstance(alpha, float) or not isfinite(alpha)):
        remedy = f"It must be a 32-bit float. {_CONVERT}"
        faults.add(f"it is {str(alpha)[:40]}, no usable number", remedy, f"{file}: adapter.lora.alpha")
    architecture = said("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        faults.add("it does not say for which architecture it is", _CONVERT, f"{file}: general.architecture")


def _pairs(
    tensors: tuple[gguf.GgufTensor, ...], file: str, faults: AdapterFaults
) -> tuple[tuple[TensorPair, ...], list[str]]:
    halves: dict[str, dict[str, gguf.GgufTensor]] = {}
    norms: list[str] = []
    strangers: list[str] = []
    for tensor in tensors:
        for sign in (_DOWN, _UP):
            if tensor.name.endswith(sign):
                halves.setdefault(tensor.name.removesuffix(sign), {})[sign] = tensor
                break
        else:
            (norms if tensor.name.endswith(_NORM) else strangers).append(tensor.name)
    if strangers:
        more = f" (and {len(strangers) - 1} more)" if len(strangers) > 1 else ""
        what = f"{strangers[0][:120]}{more} is not half of a LoRA, and the runner refuses it"
        faults.add(what, _CONVERT, file)
    if not halves:
        faults.add("it holds no LoRA tensor", _CONVERT, file)
    found = [pair for name, each in halves.items() if (pair := _pair(name, each, file, faults)) is not None]
    doubts = [f"Its {len(norms)} norms ({norms[0][:120]}, ...) are left out by the runner."] if norms else []
    return tuple(sorted(found, key=lambda pair: pair.tensor)), doubts


def _pair(name: str, halves: dict[str, gguf.GgufTensor], file: str, faults: AdapterFaults) -> TensorPair | None:
    down, up = halves.get(_DOWN), halves.get(_UP)
    if down is None or up is None:
        missing = _UP if up is None else _DOWN
        faults.add(f"{name[:120]} has no partner: its {missing[1:]} is missing", _CONVERT, file)
        return None
    for half in (down, up):
        if len(half.shape) not in (2, 3) or 0 in half.shape:
            faults.add(f"{half.name[:120]} has the shape {list(half.shape)}, which is not a matrix", _CONVERT, file)
            return None
    embedding = name.endswith(_EMBEDDING)
    rank, other = (down.shape[0], up.shape[0]) if embedding else (down.shape[1], up.shape[0])
    if rank != other:
        faults.add(f"{down.name[:120]} has the rank {rank}, and {up.name[:120]} has {other}", _CONVERT, file)
        return None
    shape = (up.shape[1], down.shape[1]) if embedding else (down.shape[0], up.shape[1])
    return TensorPair(name, rank, shape, down.name)
