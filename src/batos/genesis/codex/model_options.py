"""Options of a persona: Ollama's, which are sent with each call, and ours, which are not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from batos.genesis.codex.reader import nearest_word
from batos.genesis.codex.value_checks import ValueFault, refusal

MODES = ("direct", "reason_field", "two_phase")

#: No window is larger, whatever a model was trained for.
LARGEST_WINDOW = 2**20


@dataclass(frozen=True, slots=True)
class Option:
    """An option of Ollama: its type, its bounds (inclusive; for texts the number of them), and its meaning."""

    kind: type
    least: float
    most: float
    what: str


#: The daemon takes any value and fails at the first call (500), runs without end, or loads a runner again.
OLLAMA: Mapping[str, Option] = {
    "num_ctx": Option(int, 256, LARGEST_WINDOW, "the window, in tokens: a multiple of 256"),
    "num_predict": Option(
        int, 1, LARGEST_WINDOW, "most tokens of an answer; more if the answer can need more, or was cut"
    ),
    "num_batch": Option(int, 1, 65_536, "prompt tokens read at once"),
    "num_gpu": Option(int, -1, 9_999, "layers on the GPU: -1 lets the daemon choose, 0 is the CPU"),
    "main_gpu": Option(int, 0, 63, "number of the GPU, if there are several"),
    "num_thread": Option(int, 0, 4_096, "threads of a runner on the CPU: 0 lets the daemon choose"),
    "num_keep": Option(int, -1, LARGEST_WINDOW, "tokens kept when a window slides, which BAT OS does not allow"),
    "use_mmap": Option(bool, 0, 1, "true: the weights are mapped from the disk"),
    "seed": Option(int, -1, 2**32 - 1, "the same seed and prompt give the same answer; -1 is a new seed each time"),
    "temperature": Option(float, 0, 5, "randomness: 0 takes the likeliest token, as answers beside documents do"),
    "top_k": Option(int, 0, 100_000, "choose among this many likeliest tokens: 0 is all"),
    "top_p": Option(float, 0, 1, "choose among the likeliest tokens whose probabilities add up to this share"),
    "min_p": Option(float, 0, 1, "leave out tokens less likely than this share of the likeliest token's probability"),
    "typical_p": Option(float, 0, 1, "choose tokens of about the expected probability; 1 is off"),
    "repeat_last_n": Option(int, -1, LARGEST_WINDOW, "last tokens searched for repetition: -1 is the window, 0 is off"),
    "repeat_penalty": Option(float, 0.1, 10, "factor against tokens that occurred already; 1 is off"),
    "presence_penalty": Option(float, -2, 2, "amount against each token that occurred, however often; 0 is off"),
    "frequency_penalty": Option(float, -2, 2, "amount against a token for each time that it occurred; 0 is off"),
    "stop": Option(list, 1, 16, "texts at which the answer ends"),
}

#: Options that belong to the runner: personas that share a base and differ in one reload it at every switch.
RUNNER = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap")

#: Options of BAT OS: `mode` is the form of a request for decisions; `think` permits a model to think. Without `think`
#: the daemon permits it, and the thinking uses the tokens that were reserved for the answer.
OURS = ("mode", "think")

DEFAULTS: Mapping[str, Any] = {"num_ctx": 4096, "num_predict": 1024, "mode": "direct", "think": False}

KIND_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
}


def check(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the options of a table. Raises: PydanticCustomError: one is unknown or wrong."""
    faults: list[ValueFault] = []
    for name, value in values.items():
        if name not in (*OLLAMA, *OURS):
            faults.append(ValueFault("option", path=(name,), known=(*OLLAMA, *OURS)))
            continue
        problem = _fault_of_ours(name, value) if name in OURS else _fault_of_ollama(name, value, OLLAMA[name])
        if problem is not None:
            faults.append(ValueFault(*problem, (name,)))
    if faults:
        raise refusal(*faults)
    return MappingProxyType(dict(values))


def parameters(options: Mapping[str, object]) -> dict[str, object]:
    """Return Ollama's part of the options: the parameters of a made model and of a call."""
    return {name: value for name, value in options.items() if name not in OURS}


def bounds(option: Option) -> str:
    """Describe the bounds of an option in words.

    >>> bounds(OLLAMA["top_p"]), bounds(OLLAMA["num_ctx"])
    ('0 to 1', '256 to 1,048,576')
    """
    if option.kind is bool:
        return "true, false"
    return f"{option.least:g} to {option.most:g}" if option.most < 1_000 else f"{option.least:g} to {option.most:,.0f}"


def _fault_of_ours(name: str, value: object) -> tuple[str, str] | None:
    if name == "think":
        return None if isinstance(value, bool) else ("`think` must be true or false", "Write `think` as true or false.")
    if value in MODES:
        return None
    near = nearest_word(value, MODES) if isinstance(value, str) else None
    hint = f": did you mean {near!r}?" if near else ""
    return f"`mode` is {value!r}{hint}", f"Write one of: {', '.join(MODES)}."


def _fault_of_ollama(name: str, value: Any, option: Option) -> tuple[str, str] | None:
    if not _is_of(value, option.kind):
        return f"`{name}` must be {KIND_NAMES[option.kind]}", f"Write `{name}` as {KIND_NAMES[option.kind]}."
    if option.kind is list:
        return _fault_of_stop(value, option)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return f"`{name}` does not fit 64 bits", "Write a smaller number."
    if not math.isfinite(value):
        return f"`{name}` is {value}", "Write a finite number."
    if name == "num_predict" and value < 1:
        return f"`num_predict` is {value}: the daemon would answer without end", "Write 1 or more, such as 1024."
    if name == "num_ctx" and (value < 256 or value % 256):
        nearest = min(LARGEST_WINDOW, max(256, round(value / 256) * 256))
        return f"`num_ctx` is {value}, not a multiple of 256", f"Write {nearest}: the daemon counts in steps of 256."
    if not option.least <= value <= option.most:
        return f"`{name}` is {value}, and may be {bounds(option)}", f"Write a number from {bounds(option)}."
    return None


def _fault_of_stop(value: list[str], option: Option) -> tuple[str, str] | None:
    if not option.least <= len(value) <= option.most:
        return f"`stop` has {len(value)} texts", f"Write {bounds(option)} of them, or leave `stop` out."
    if not all(value):
        return "`stop` holds an empty text, at which every answer would end at once", "Remove it."
    if any('"""' in text for text in value):
        return "`stop` holds three double quotes in a row, which no Modelfile can hold", "Stop at something else."
    return None


def _is_of(value: object, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
