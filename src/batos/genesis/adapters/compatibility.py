"""Finds out if an adapter fits a base, since the daemon accepts adapters that its runner then refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from batos.genesis.adapters.conversion import KNOWN
from batos.genesis.adapters.inventory import Adapter, AdapterFault, AdapterFaults, TensorPair
from batos.inference.ollama.catalogue import ModelCard

#: The architectures for which the daemon converts what PEFT saves.
CONVERTIBLE = ("llama", "gemma2")
#: Where a fault of the architecture is said to be.
ARCHITECTURE = "general.architecture"
#: Families of models as names tell them, a longer word before one that is a part of it.
_FAMILIES = ("tinyllama", "codellama", "llama", "mixtral", "mistral", "gemma", "qwen", "phi", "smollm", "olmo")
_BLOCK = re.compile(r"blk\.([0-9]+)\.")
_OTHER_BASE = "Name its base in the codex (`model` of the persona), or train it on the one that is there."


def misfits(adapter: Adapter, card: ModelCard) -> tuple[AdapterFault, ...]:
    """Return the reasons why the runner would not load this adapter on that base; empty if it will.

    With the base's `tensors` (a verbose `show`) every name and both widths are compared with the tensors; without them
    with the shapes that follow from the metadata.
    """
    faults = AdapterFaults(adapter.persona, adapter.name)
    blobs = len(re.findall(r"^FROM ", card.modelfile, re.MULTILINE))
    if card.adapters or blobs > 1:
        said = "carries an adapter itself" if card.adapters else "has two sets of weights"
        what = f"the base {card.name} {said}, and the daemon would add this one"
        faults.add(what, "Name the bare model in the codex.", card.name)
    _architecture(adapter, card, faults)
    if not faults or adapter.kind == "peft":
        _widths(adapter, card, faults)
    return tuple(faults)


def doubts(adapter: Adapter, base: str) -> tuple[str, ...]:
    """Return reasons against a base that follow from names alone: the widths decide, a name is only a hint."""
    found = list(adapter.doubts)
    other = _traits(base)
    if adapter.base is not None:
        one = _traits(adapter.base)
        if any(one[key] and other[key] and one[key] != other[key] for key in ("family", "billions")):
            found.append(f"It says that it was trained on {adapter.base}, and the codex names {base}.")
    turned = any(pair.tensor.endswith(("attn_q.weight", "attn_k.weight")) for pair in adapter.pairs)
    if adapter.kind == "peft" and turned and other["family"] != "gemma":
        found.append(
            "On a base of the llama family the daemon's conversion spoils the training of queries and keys: "
            f"`batos adapters convert {adapter.label}` writes it as GGUF, which is correct."
        )
    return tuple(found)


def _architecture(adapter: Adapter, card: ModelCard, faults: AdapterFaults) -> None:
    architecture = str(card.info.get(ARCHITECTURE, ""))
    if adapter.kind == "gguf":
        if adapter.architecture != architecture:
            what = f"it is for the architecture {adapter.architecture}, and {card.name} is {architecture}"
            faults.add(what, _OTHER_BASE, ARCHITECTURE)
        return
    if architecture not in CONVERTIBLE:
        what = (
            f"{card.name} is {architecture or 'of no known architecture'}, and the daemon converts safetensors "
            f"adapters for {' and '.join(CONVERTIBLE)} only"
        )
        remedy = (
            "Convert it with llama.cpp's `convert_lora_to_gguf.py --base BASE_FOLDER`, and put the GGUF file there."
        )
        if architecture in KNOWN:
            remedy = f"Convert it: `batos adapters convert {adapter.label}`."
        faults.add(what, remedy, ARCHITECTURE)


def _widths(adapter: Adapter, card: ModelCard, faults: AdapterFaults) -> None:
    blocks = _number(card.info, "block_count")
    absent: list[TensorPair] = []
    beyond: list[TensorPair] = []
    other: list[tuple[TensorPair, tuple[int, ...]]] = []
    for pair in adapter.pairs:
        match = _BLOCK.match(pair.tensor)
        shape = card.tensors.get(pair.tensor) if card.tensors else _derive_shape(card.info, pair.tensor)
        if match and blocks is not None and int(match[1]) >= blocks:
            beyond.append(pair)
        elif shape is None and card.tensors:
            absent.append(pair)
        elif shape is not None and tuple(shape[:2]) != pair.shape:
            other.append((pair, shape))
    if beyond:
        most = max(int(match[1]) for pair in beyond if (match := _BLOCK.match(pair.tensor)))
        what = f"it adapts block {most}, and {card.name} has {blocks} blocks (0 to {(blocks or 1) - 1})"
        faults.add(what, _OTHER_BASE, _first(beyond))
    if absent:
        faults.add(f"{card.name} has no tensor {absent[0].tensor}", _OTHER_BASE, _first(absent))
    if other:
        pair, shape = other[0]
        ins, outs = pair.shape
        what = (
            f"it is for {ins} in and {outs} out, and {pair.tensor} of {card.name} has {shape[0]} in and {shape[1]} out"
        )
        faults.add(what, _OTHER_BASE, _first([each for each, _ in other]))


def _first(pairs: list[TensorPair]) -> str:
    return pairs[0].written if len(pairs) == 1 else f"{pairs[0].written} and {len(pairs) - 1} more"


def _number(info: Mapping[str, object], key: str) -> int | None:
    found = info.get(f"{info.get('general.architecture', '')}.{key}")
    return found if type(found) is int and found > 0 else None


def _derive_shape(info: Mapping[str, object], tensor: str) -> tuple[int, int] | None:
    """Return the shape of a block's projection as it follows from the metadata; None if it does not follow."""
    width, heads = _number(info, "embedding_length"), _number(info, "attention.head_count")
    inner = _number(info, "feed_forward_length")
    if width is None or heads is None:
        return None
    grouped = _number(info, "attention.head_count_kv")
    key = _number(info, "attention.key_length") or width // heads
    value = _number(info, "attention.value_length") or width // heads
    shapes: dict[str, tuple[int, int | None]] = {
        "attn_q": (width, heads * key),
        "attn_k": (width, grouped and grouped * key),
        "attn_v": (width, grouped and grouped * value),
        "attn_output": (heads * value, width),
        "ffn_gate": (width, inner),
        "ffn_up": (width, inner),
        "ffn_down": (inner or 0, width),
    }
    found = shapes.get(_BLOCK.sub("", tensor).removesuffix(".weight"))
    return None if found is None or not all(found) else (found[0], found[1] or 0)


def _traits(name: str) -> dict[str, str]:
    """Return the family and the billions of weights that a model's name suggests, "" where it suggests none."""
    plain = name.casefold().rstrip("/")
    family = next((each for each in _FAMILIES if each in plain), "")
    size = re.search(r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?) ?b(?![a-z0-9])", plain)
    return {"family": family, "billions": size[1] if size else ""}
