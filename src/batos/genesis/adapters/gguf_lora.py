"""A LoRA in one GGUF file: judged by what the daemon's runner demands of it, and made from a PEFT adapter.

No number is computed. If the base's queries and keys were re-ordered for GGUF (the llama family), the rows of the
second halves of those projections are put into the same order. The daemon's own conversion re-orders the first halves,
which makes noise of them (docs/decisions/0008-weights.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

from batos.genesis.adapters import peft
from batos.genesis.adapters.inventory import Adapter, AdapterFaults, TensorPair
from batos.genesis.adapters.peft import Contents
from batos.protocol.errors import AdapterError, UsageError
from model_files import gguf, safetensors
from model_files.bounded import NotWeights
from model_files.gguf import TensorSource, write

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


#: Architectures whose GGUF has the tensors of the original, but for those in _TURNED, whose queries and keys differ.
KNOWN = ("llama", "gemma2", "qwen2", "qwen3")
_TURNED = ("llama",)
_FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}
_PIECE = 1 << 20


def convert(adapter: Adapter, info: Mapping[str, object], target: Path) -> None:
    """Write a sound PEFT adapter as a GGUF file for the base whose metadata is `info`, whole or not at all.

    AdapterError: it is no PEFT adapter, or nobody here knows the order of that base's rows. UsageError: the
    file is there already, or cannot be written.
    """
    architecture = str(info.get("general.architecture", ""))
    if adapter.kind != "peft" or architecture not in KNOWN:
        what = f"the base is {architecture or 'unknown'}"
        remedy = f"Adapters for {', '.join(KNOWN)} are converted; for others use llama.cpp's `convert_lora_to_gguf.py`."
        if adapter.kind != "peft":
            what, remedy = "it is a GGUF file already", "There is nothing to do: it is used as it is."
        raise AdapterError(f"{adapter.label} cannot be converted: {what}", remedy=remedy)
    if target.exists():
        raise UsageError(f"{target} is there already", remedy="Remove it first, if you want another.")
    path = adapter.files[peft.WEIGHTS]
    heads = [_heads(info, pair) for pair in adapter.pairs]
    try:
        tensors = safetensors.read(path).tensors
        halves = zip(adapter.pairs, heads, strict=True)
        sources = [source for pair, turned in halves for source in _sources(path, tensors, pair, turned)]
    except (OSError, NotWeights, KeyError) as error:
        raise UsageError(f"{path} changed since it was read", remedy="Try it again.") from error
    _write(target, _converted_metadata(adapter, architecture, {source.type for source in sources}), sources)


def _converted_metadata(
    adapter: Adapter, architecture: str, types: Collection[str]
) -> list[tuple[str, str | int | float]]:
    kind = next(iter(types)) if len(types) == 1 else "F16"
    found: list[tuple[str, str | int | float]] = [
        ("general.architecture", architecture),
        ("general.type", "adapter"),
        ("general.name", adapter.name),
        ("general.file_type", _FILE_TYPES[kind]),
        ("adapter.type", "lora"),
        ("adapter.lora.alpha", float(adapter.alpha or 0)),
    ]
    return found if adapter.base is None else [*found, ("general.base_model.0.name", adapter.base)]


def _write(target: Path, metadata: Sequence[tuple[str, str | int | float]], sources: Sequence[TensorSource]) -> None:
    """Write beside the target and rename, so that it is there whole or not at all; an empty folder is not left."""
    begun = target.with_name(f".{target.name}.begun")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        begun.unlink(missing_ok=True)
        write(begun, metadata, sources)
        begun.rename(target)
    except (OSError, ValueError) as error:
        with suppress(OSError):
            begun.unlink()
            target.parent.rmdir()
        if isinstance(error, OSError):
            remedy = "Make it a folder that you may write, with room on its disk."
            raise UsageError(f"{target} cannot be written: {error.strerror}", remedy=remedy) from error
        raise UsageError(f"the adapter changed while it was read: {error}", remedy="Try it again.") from error


def _heads(info: Mapping[str, object], pair: TensorPair) -> int:
    """Return the number of heads by which the rows of a pair's second half are re-ordered; 0 if they stay.

    Raises: AdapterError: the base does not tell the order of these rows.
    """
    architecture = str(info.get("general.architecture"))
    if architecture not in _TURNED:
        return 0
    queries = info.get(f"{architecture}.attention.head_count")
    keys = info.get(f"{architecture}.attention.head_count_kv", queries)
    found = {"attn_q.weight": queries, "attn_k.weight": keys}.get(
        pair.tensor.rpartition("blk.")[2].partition(".")[2], 0
    )
    if type(found) is not int or (found and pair.shape[1] % (2 * found)):
        remedy = "Convert it with llama.cpp's `convert_lora_to_gguf.py`."
        raise AdapterError(f"the base does not say how the rows of {pair.tensor} are ordered", remedy=remedy)
    return found


def _sources(
    path: Path, tensors: Mapping[str, safetensors.SafetensorsTensor], pair: TensorPair, heads: int
) -> Iterator[TensorSource]:
    down = tensors[pair.written]
    up = tensors[pair.written.removesuffix("A.weight") + "B.weight"]
    for name, half, turned in ((f"{pair.tensor}.lora_a", down, 0), (f"{pair.tensor}.lora_b", up, heads)):
        yield TensorSource(name, half.dtype, half.shape[::-1], half.end - half.start, _pieces(path, half, turned))


def _pieces(path: Path, half: safetensors.SafetensorsTensor, heads: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(half.start)
        if heads:
            yield _interleave_halves(file.read(half.end - half.start), half.shape[0], heads)
            return
        left = half.end - half.start
        while left > 0 and (piece := file.read(min(_PIECE, left))):
            left -= len(piece)
            yield piece


def _interleave_halves(data: bytes, rows: int, heads: int) -> bytes:
    """Sort rows so that the two halves of each head, which the original keeps apart, alternate."""
    width, half = len(data) // rows, rows // heads // 2
    order = ((head * 2 + part) * half + at for head in range(heads) for at in range(half) for part in (0, 1))
    return b"".join(data[row * width : (row + 1) * width] for row in order)
