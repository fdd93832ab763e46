"""Compares adapters with their bases: refuses a misfit before anything is made of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from batos.genesis.adapters.gguf_lora import KNOWN
from batos.genesis.adapters.inventory import NONE, Adapter, AdapterFault, AdapterFaults, AdapterInventory, TensorPair
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import DaemonModels, GenesisDaemon
from batos.genesis.integrity import Finding
from batos.genesis.persona_models import family
from batos.genesis.plan import Plan, in_words
from batos.inference import model_names
from batos.inference.ollama.catalogue import ModelCard
from batos.protocol.errors import AdapterError, ModelMissing

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


#: The last version of Ollama whose create takes adapters.
LAST = (0, 34, 0)


async def unfit(wanted: Iterable[tuple[Adapter, str]], daemon: GenesisDaemon) -> tuple[AdapterFault, ...]:
    """Return the reasons why adapters would not load on the bases they are paired with; one request for each base.

    A missing base is no fault of its adapters: nothing is made of it either.
    """
    cards: dict[str, ModelCard | None] = {}
    faults: list[AdapterFault] = []
    for adapter, base in wanted:
        if base not in cards:
            cards[base] = await _card(base, daemon)
        card = cards[base]
        if card is not None:
            faults.extend(misfits(adapter, card))
    return tuple(faults)


def version_faults(wanted: Iterable[Adapter], version: str) -> tuple[AdapterFault, ...]:
    """Return a fault for each adapter if this version of Ollama makes no models with any; existing ones work."""
    numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
    if numbers is None or (int(numbers[1]), int(numbers[2]), int(numbers[3])) <= LAST:
        return ()
    what = f"Ollama {version} makes no model with an adapter: {'.'.join(map(str, LAST))} is the last that does"
    remedy = (
        "Make it once with that version or an older one (models that are made stay usable), or merge the adapter into "
        "its base (PEFT: merge_and_unload), convert that to GGUF, and name it in the codex."
    )
    return tuple(AdapterFault(each.persona, each.name, what, remedy, "") for each in wanted)


async def check_inventory(
    inventory: AdapterInventory, codex: Codex, profile: str, listed: DaemonModels, daemon: GenesisDaemon
) -> AdapterInventory:
    """Add to the inventory's faults the adapters of which no model can be made, by one request for each base."""
    there = [model_names.key(row.name) for row in listed.rows]
    families = [f"{family(each.persona, each.name)}:" for each in inventory.adapters]
    made = [any(name.startswith(each) for name in there) for each in families]
    new = (each for each, is_made in zip(inventory.adapters, made, strict=True) if not is_made)
    pairs = [(each, codex.model_for(each.persona, profile)) for each in inventory.adapters]
    known = [pair for pair in pairs if listed.row(pair[1]) is not None]
    return inventory.without((*version_faults(new, listed.version), *await unfit(known, daemon)))


async def _card(base: str, daemon: GenesisDaemon) -> ModelCard | None:
    try:
        return await daemon.show(base, verbose=True)
    except ModelMissing:
        return None


def gate(daemon: GenesisDaemon) -> Callable[[Plan], Awaitable[None]]:
    """Return a check that refuses a plan's unfit adapters. Call it when all bases are there, before anything is sent.

    Only adapters of which a model is to be made are checked: the others were checked when theirs was made. The check
    raises AdapterError with the first fault, and the other faults in `also`.
    """

    async def refuse(todo: Plan) -> None:
        recipes = [todo.recipes[step.name] for step in todo.steps if step.kind == "create" and step.name is not None]
        pairs = [(made.adapter, made.base) for made in recipes if made.adapter is not None]
        faults = version_faults((adapter for adapter, _ in pairs), todo.version) or await unfit(pairs, daemon)
        if faults:
            raise refusal(faults)

    return refuse


def refusal(faults: Sequence[AdapterFault]) -> AdapterError:
    """Return the error for adapters that are not used; at least one fault is needed."""
    first, *others = faults
    told = tuple(fault.as_dict() for fault in faults)
    error = AdapterError(str(first), faults=told, remedy=f"{first.remedy} Or take it out of its folder.")
    return error.add_faults(f"{fault}. {fault.remedy}" for fault in others)


class UnfitAdapters:
    """Adapters that were found not to fit, remembered for as long as they and their bases stay what they are."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], list[AdapterFault]] = {}

    def learn(self, refused: AdapterError, inventory: AdapterInventory, bases: Mapping[str, str]) -> None:
        """Remember what a gate refused; `bases` says by persona what it was held against."""
        for told in refused.faults:
            adapter = inventory.find(told["persona"], told["name"])
            if adapter is not None:
                self._known.setdefault(_key(adapter, bases), []).append(AdapterFault(**told))

    def apart(self, inventory: AdapterInventory, bases: Mapping[str, str]) -> AdapterInventory:
        """Move the adapters that are known not to fit to the inventory's faults."""
        known = (self._known.get(_key(adapter, bases), ()) for adapter in inventory.adapters)
        return inventory.without(fault for found in known for fault in found)


def _key(adapter: Adapter, bases: Mapping[str, str]) -> tuple[str, str, str]:
    return adapter.label, adapter.digest, bases.get(adapter.persona, "")


def findings(
    inventory: AdapterInventory,
    choices: Mapping[str, str | None],
    used: Mapping[str, Adapter],
    codex: Codex,
    profile: str = "default",
) -> list[Finding]:
    """Return the audit's findings on adapters: faults, choices, missing choices, doubts and costs."""
    found = [Finding("adapters.files", False, str(fault), fault.remedy) for fault in inventory.faults]
    if not inventory.faults and inventory.adapters:
        count = len(inventory.adapters)
        found.append(Finding("adapters.files", True, f"the files of {count} adapter{'s' * (count != 1)} are sound"))
    for persona, choice in choices.items():
        if choice not in (None, NONE) and persona not in used:
            what = f"{persona}'s adapter {choice!r} is gone or refused, so {persona} thinks with its bare base"
            remedy = f"Put it back, or choose: `batos adapters use {persona} NAME`, or `none`."
            found.append(Finding("adapters.choice", False, what, remedy))
    for persona, adapter in used.items():
        found.append(Finding("adapters.choice", True, f"{persona} thinks with the adapter {adapter.name}"))
    for adapter in inventory.adapters:
        found += [
            Finding("adapters.doubt", True, f"{adapter.label}: {doubt}")
            for doubt in doubts(adapter, codex.model_for(adapter.persona, profile))
        ]
    cost = reload_cost(used, codex, profile)
    if cost:
        found.append(Finding("adapters.reload", True, cost))
    return found


def reload_cost(used: Mapping[str, Adapter], codex: Codex, profile: str = "default") -> str:
    """Describe the cost of different adapters on one base; "" if there is none.

    The daemon holds one runner for a base: a persona with another adapter, or with none, makes the daemon load it
    again.
    """
    by_base: dict[str, list[str]] = {}
    for persona in codex.personas:
        by_base.setdefault(codex.model_for(persona, profile), []).append(persona)
    split = [
        f"{in_words(personas)} share {base}"
        for base, personas in by_base.items()
        if len({used[persona].digest if persona in used else "" for persona in personas}) > 1
    ]
    if not split:
        return ""
    return (
        f"{'; '.join(split)}, and not one adapter: Ollama holds one runner for a base and loads it again each time "
        "another adapter is needed"
    )
