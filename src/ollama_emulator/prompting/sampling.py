"""Merge and check the options of a request over those of the model, with errors in Go's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.schemas import compiled_schema

_BEYOND = 2**63  # a number beyond Go's int becomes its least value
_LIMITS = {"num_keep": ("n_keep", -1), "repeat_last_n": ("repeat_last_n", 0)}
_INTEGERS = frozenset(
    "num_keep seed num_predict top_k repeat_last_n num_ctx num_batch num_gpu main_gpu num_thread "
    "draft_num_predict".split()
)
_FLOATS = frozenset("top_p min_p typical_p temperature repeat_penalty presence_penalty frequency_penalty".split())


def merge(stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in force: the request's (`given`) over the model's (`stored`), without unknown ones and nulls.

    Raises: ApiError: 500, an option has a wrong type.
    """
    options: dict[str, Any] = {}
    for source in (stored, given):
        for name, value in source.items():
            if value is not None:
                checked = _check_option(name, value)
                if checked is not None:
                    options[name] = checked
    return options


def _check_option(name: str, value: Any) -> Any:
    """Return an option's value as Go holds it, None for an unknown option. Raises: ApiError: 500, its type is wrong."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _INTEGERS:
        if not number:
            raise _wrong(name, "type integer")
        return int(value) if -_BEYOND <= value < _BEYOND else -_BEYOND
    if name in _FLOATS:
        if not number:
            raise _wrong(name, "type float32")
        return float(value)
    if name == "use_mmap":
        if not isinstance(value, bool):
            raise _wrong(name, "type boolean")
        return value
    if name == "stop":
        if not isinstance(value, list):
            raise _wrong(name, "type array")
        if not all(isinstance(item, str) for item in value):
            raise _wrong(name, "an array of strings")
        return value
    return None


def _wrong(name: str, wanted: str) -> ApiError:
    return ApiError(500, f'option "{name}" must be of {wanted}')


def within_limits(options: Mapping[str, Any]) -> None:
    """Check the options that the runner refuses out of range. Raises: ApiError: 400, one is; others it clamps."""
    for name, (told, least) in _LIMITS.items():
        value = (options.get(name, 0) + 2**31) % 2**32 - 2**31
        if value < least:
            text = f"Value must be between {least} <= value <= {2**31 - 1}, but got {value}"
            raise compiled_schema.refuse(f"Field '{told}': {text}")
