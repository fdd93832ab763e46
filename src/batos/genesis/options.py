"""The options a persona may set: Ollama's, which travel with each call, and ours, which do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batos.genesis.reader import Table, suggestion

MODES = ("direct", "reason_field", "two_phase")

#: Ollama's options and the type the daemon demands (it answers a wrong one with 500, at the first call).
OLLAMA: Mapping[str, type] = {
    "num_ctx": int,
    "num_predict": int,
    "num_batch": int,
    "num_gpu": int,
    "main_gpu": int,
    "num_thread": int,
    "num_keep": int,
    "use_mmap": bool,
    "seed": int,
    "temperature": float,
    "top_k": int,
    "top_p": float,
    "min_p": float,
    "typical_p": float,
    "repeat_last_n": int,
    "repeat_penalty": float,
    "presence_penalty": float,
    "frequency_penalty": float,
    "stop": list,
}

#: Options that belong to the runner: personas that share a base and differ in one reload it at every switch.
RUNNER = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap")

#: Options of ours: `mode` is how decisions are asked for, `think` whether a model that can think is let to. Left to
#: itself the daemon lets it, and the thinking takes the tokens that were reserved for the answer.
OURS = ("mode", "think")

DEFAULTS: Mapping[str, Any] = {"num_ctx": 4096, "num_predict": 1024, "mode": "direct", "think": False}

_TYPE_NAMES: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list of texts",
}


def read(table: Table) -> dict[str, Any]:
    """The options of a table, checked; faults are kept in its file."""
    found: dict[str, Any] = {}
    for name in table.names():
        value = table.raw(name)
        problem = _fault(name, value)
        if problem is None:
            found[name] = value
        else:
            table.fault(name, *problem)
    return found


def parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """What of the options is Ollama's: the parameters of a made model and of a call."""
    return {name: value for name, value in options.items() if name not in OURS}


def _fault(name: str, value: Any) -> tuple[str, str] | None:
    if name == "mode":
        if value in MODES:
            return None
        return f"`mode` is {value!r}", f"Write one of: {', '.join(MODES)}."
    if name == "think":
        return None if isinstance(value, bool) else ("`think` must be true or false", "Write `think` as true or false.")
    if name not in OLLAMA:
        return f"unknown option `{name}`", f"Remove it{suggestion(name, [*OLLAMA, *OURS])}."
    if not _is_of(value, OLLAMA[name]):
        return f"`{name}` must be {_TYPE_NAMES[OLLAMA[name]]}", f"Write `{name}` as {_TYPE_NAMES[OLLAMA[name]]}."
    if name == "num_ctx" and (value < 256 or value % 256):
        nearest = max(256, round(value / 256) * 256)
        return f"`num_ctx` is {value}, not a multiple of 256", f"Write {nearest}: the daemon counts in steps of 256."
    if name == "num_predict" and value < 1:
        return f"`num_predict` is {value}: the daemon would answer without end", "Write 1 or more, such as 1024."
    return None


def _is_of(value: Any, kind: type) -> bool:
    if kind is bool:
        return isinstance(value, bool)
    if kind is list:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, (int, float) if kind is float else int) and not isinstance(value, bool)
