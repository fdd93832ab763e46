"""Values of Go templates: their types, their truth, their text by fmt's %v, and their JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ollama_emulator.go import json as gojson


@dataclass(frozen=True, slots=True)
class StructValue:
    """A value of the Go struct type `kind`.

    `tags` maps a field to its name in JSON, `omitted` names the fields that JSON leaves out when empty, and `spoken` is
    the type's String method, if it has one.
    """

    kind: str
    fields: Mapping[str, Any]
    tags: Mapping[str, str]
    omitted: frozenset[str] = frozenset()
    spoken: Callable[[StructValue], str] | None = None


class Items(list[Any]):
    """A slice of a named Go type; `absent` is the nil slice, which is null in JSON."""

    def __init__(self, kind: str, items: list[Any] | None) -> None:
        super().__init__(items or ())
        self.kind = kind
        self.absent = items is None


class Rows(Items):
    """A slice that prints itself as JSON."""


class JsonMap(dict[str, Any]):
    """A map of a named Go type that prints itself as JSON; `absent` is the nil map."""

    def __init__(self, kind: str, items: Mapping[str, Any] | None) -> None:
        super().__init__(items or {})
        self.kind = kind
        self.absent = items is None


class OrderedMap(dict[str, Any]):
    """A map that keeps its order in JSON."""


class Types(list[str]):
    """The `type` of a tool's property: a list of type names, printed bare if there is only one."""

    def __str__(self) -> str:
        return self[0] if len(self) == 1 else f"[{' '.join(self)}]" if self else ""


def type_name(value: Any) -> str:
    """Return the name of a value's Go type, as Go's error messages give it: `string`, `float64`, `[]string`."""
    if isinstance(value, Items | JsonMap | StructValue):
        return value.kind
    if isinstance(value, Types):
        return "api.PropertyType"
    names = ((bool, "bool"), (int, "int"), (float, "float64"), (complex, "complex128"), (str, "string"))
    for kind, name in names:
        if isinstance(value, kind):
            return name
    if value is None:
        return "<nil>"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def true(value: Any) -> bool:
    """Return whether a template takes a value for true: a struct always is, any other unless zero or empty."""
    return True if isinstance(value, StructValue) else bool(value)


def real(value: float) -> str:
    """Return the text of a float as fmt's %v prints it, such as `1e+21`, `NaN` and `+Inf`."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    text = repr(value)
    digits, _, exponent = f"{value:e}".partition("e")
    power = int(exponent)
    if value and not -4 <= power < 21:
        mantissa = repr(value) if "e" not in text else text.partition("e")[0]
        if "e" not in text:
            mantissa = digits.rstrip("0").rstrip(".")
        sign = "-" if power < 0 else "+"
        return f"{mantissa}e{sign}{abs(power):02d}"
    if "e" in text:
        text = f"{value:.0f}" if power >= 0 else f"{value:.{16 - power}f}".rstrip("0")
    return text.removesuffix(".0")


def format_value(value: Any, inner: bool = False) -> str:
    """Return the text of a value as fmt's %v prints it; `inner` is set for a value within another one."""
    if isinstance(value, str):
        return value
    if isinstance(value, StructValue):
        return _struct(value, inner)
    return _several(value) if isinstance(value, list | dict) else _single(value)


def _single(value: Any) -> str:
    """Return the text of a value without parts, as fmt's %v prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return real(value)
    if isinstance(value, complex):
        return f"({real(value.real)}{'' if value.imag < 0 else '+'}{real(value.imag)}i)"
    return str(value)


def _several(value: list[Any] | dict[str, Any]) -> str:
    """Return the text of a list or a map, as fmt's %v prints it: a map's keys are sorted."""
    if isinstance(value, Types):
        return str(value)
    if isinstance(value, Rows | JsonMap):
        return "{}" if isinstance(value, JsonMap) and value.absent else marshal(value)
    if isinstance(value, list):
        return "[" + " ".join(format_value(item, True) for item in value) + "]"
    return "map[" + " ".join(f"{key}:{format_value(value[key], True)}" for key in sorted(value)) + "]"


def _struct(value: StructValue, inner: bool) -> str:
    """Return the text of a struct, as fmt's %v prints it or as its own String method does."""
    if value.spoken is not None:
        return value.spoken(value)
    pointed = value.kind.startswith("*")
    if pointed and inner:
        return "0xc000000000"  # fmt prints the address of an inner pointer
    body = " ".join(format_value(item, True) for item in value.fields.values())
    return ("&" if pointed else "") + "{" + body + "}"


def marshal(value: Any) -> str:
    """Return the JSON of a value as Go's `json.Marshal` writes it."""
    return gojson.encode(_plain(value))


def _plain(value: Any) -> Any:
    """Convert a value to dicts, lists and scalars, by the tags of its structs."""
    if isinstance(value, StructValue):
        return {
            value.tags.get(name, name): _plain(item)
            for name, item in value.fields.items()
            if item or name not in value.omitted or isinstance(item, StructValue)
        }
    if isinstance(value, Items | JsonMap) and value.absent:
        return None
    if isinstance(value, Types):
        return value[0] if len(value) == 1 else [*value]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in (value if isinstance(value, OrderedMap) else sorted(value))}
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def with_floats(value: Any) -> Any:
    """Convert all integers within a JSON value to floats, the only numbers that Go's `any` holds."""
    if isinstance(value, dict):
        return {str(key): with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_floats(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
