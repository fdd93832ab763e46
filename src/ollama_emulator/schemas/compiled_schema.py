"""JSON schemas as the runner reads them: its refusals, references, merged parts, and the check of an instance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.schemas import matching

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
_CONVERSION = "Field 'json_schema': \"json_schema\": JSON schema conversion failed:\n"
_PARTS = 2000  # steps that merging the `allOf` parts of a schema may take
_NESTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def refuse(text: str, kind: str = "invalid_request_error", **more: Any) -> ApiError:
    """Return the runner's refusal: status 400, with the runner's own error as JSON in the daemon's message."""
    inner = {"error": {"code": 400, "message": text, "type": kind, **more}}
    return ApiError(400, json.dumps(inner, ensure_ascii=False, separators=(",", ":")))


class SchemaRefused(ApiError):
    """The error of a schema that the runner cannot convert; `why` is its reason, `where` the place in the schema."""

    def __init__(self, where: str, what: str) -> None:
        self.why = f"JSON schema error at {where}: {what}"
        whole = refuse(_CONVERSION + self.why)
        super().__init__(whole.status, whole.text)


def check_merges(schema: Mapping[str, Any]) -> None:
    """Check that merging the `allOf` parts of a schema takes few enough steps. Raises: ApiError: 400, it does not."""
    _count_merges(schema, schema, _RemainingSize(_PARTS))


def excessive(what: str) -> ApiError:
    """Return the refusal of a schema that would exceed a limit of the emulator; `what` names the excess."""
    return refuse(f"failed to parse grammar: the emulator makes no {what}")


def unfit(fault: Exception) -> ApiError:
    """Return the refusal of a schema in which a keyword has an impossible value."""
    return SchemaRefused("#", f"unrecognized schema: {fault}")


@dataclass(slots=True)
class _RemainingSize:
    """The steps that merging may still take."""

    left: int


def _count_merges(schema: Any, root: Mapping[str, Any], room: _RemainingSize) -> None:
    """Count the steps of merging for a schema and all within it: each `allOf` may double them."""
    if not isinstance(schema, dict):
        return
    for part in schema.get("allOf") or ():
        _count_part(part, root, room)
    for inner in _inner(schema):
        _count_merges(inner, root, room)


def _count_part(schema: Any, root: Mapping[str, Any], room: _RemainingSize) -> None:
    """Count the steps of merging one part, its references followed."""
    room.left -= 1
    if room.left < 0:
        raise excessive(f"schema of more than {_PARTS} parts")
    if isinstance(schema, dict) and "$ref" in schema:
        _count_part(target(schema["$ref"], root), root, room)
    for part in (schema.get("allOf") or ()) if isinstance(schema, dict) else ():
        _count_part(part, root, room)


def _inner(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly within a schema, with None for a keyword that is missing."""
    for keyword in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(keyword), dict):
            yield from schema[keyword].values()
    for keyword in _NESTED:
        if isinstance(schema.get(keyword), list):
            yield from schema[keyword]
    yield schema.get("items")
    yield schema.get("additionalProperties")


def target(reference: Any, root: Mapping[str, Any], where: str = "#") -> Any:
    """Return the part of the document `root` that a `$ref` points to; `where` is the place of the `$ref`.

    Raises: SchemaRefused: the reference points nowhere, or out of the document.
    """
    if not isinstance(reference, str):
        raise SchemaRefused(where, "$ref must be a string")
    if not reference.startswith("#/"):
        what = f"unsupported $ref {reference}, only references into the same document are supported"
        raise SchemaRefused(where, what)
    found: Any = root
    for key in reference[2:].split("/"):
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list):
            if not key.isdecimal() or int(key) >= len(found):
                raise SchemaRefused(where, f"cannot resolve $ref {reference}, {key} is out of range")
            found = found[int(key)]
        else:
            raise SchemaRefused(where, f"cannot resolve $ref {reference}, {key} not found")
    return found


def resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with its `$ref` followed and its `allOf` parts merged; `true` becomes the empty schema."""
    seen = 0
    while isinstance(schema, dict) and "$ref" in schema and seen < 64:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = target(schema["$ref"], root)
        if rest and isinstance(schema, dict):
            schema = _merge(schema, rest)
        seen += 1
    if not isinstance(schema, dict):
        return {}
    if schema.get("allOf"):
        whole: Mapping[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"]:
            whole = _merge(whole, resolve(part, root))
        return whole
    return schema


_LARGEST = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_SMALLEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


def _merge(one: Mapping[str, Any], two: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge two schemas: properties are united, bounds and enums take the narrower value, else `two` wins."""
    both = {**one, **two}
    for name in one.keys() & two.keys():
        if name == "properties":
            both[name] = {**one[name], **two[name]}
        elif name == "required":
            both[name] = [*one[name], *(key for key in two[name] if key not in one[name])]
        elif name in _LARGEST:
            both[name] = max(one[name], two[name])
        elif name in _SMALLEST:
            both[name] = min(one[name], two[name])
        elif name == "enum":
            both[name] = [value for value in one[name] if value in two[name]]
    return both


def fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a value is an instance of a schema within the document `root`.

    Only the keywords that `instances` uses are checked.
    """
    if isinstance(schema, bool):
        return schema
    schema = resolve(schema, root)
    if not (_plainly_fits(value, schema) and _alternatives_fit(value, schema, root)):
        return False
    if isinstance(value, str):
        return _string_fits(value, schema)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _number_fits(value, schema)
    if isinstance(value, list):
        return _array_fits(value, schema, root)
    return _object_fits(value, schema, root) if isinstance(value, dict) else True


def _plainly_fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Test a value against `const`, `enum` and `type`."""
    if "const" in schema and not same(value, schema["const"]):
        return False
    if "enum" in schema and not any(same(value, item) for item in schema["enum"]):
        return False
    kinds = schema.get("type")
    return kinds is None or any(is_a(value, kind) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _alternatives_fit(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Test a value against `anyOf` and `oneOf`."""
    if "anyOf" in schema and not any(fits(value, part, root) for part in schema["anyOf"]):
        return False
    return "oneOf" not in schema or sum(fits(value, part, root) for part in schema["oneOf"]) == 1


def is_a(value: Any, kind: str) -> bool:
    """Return whether a value has a JSON type; 1.0 is an integer."""
    if kind in ("integer", "number"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "number" or float(value).is_integer())
    types: dict[str, type] = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, types[kind])


def same(one: Any, two: Any) -> bool:
    """Return whether two values are equal as JSON, where true is not 1."""
    return bool(one == two) and isinstance(one, bool) == isinstance(two, bool)


def _string_fits(value: str, schema: Mapping[str, Any]) -> bool:
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        return False
    return "pattern" not in schema or matching.found(schema["pattern"], value)


def _number_fits(value: float, schema: Mapping[str, Any]) -> bool:
    """Test a number against its bounds."""
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if not low <= value <= high:
        return False
    return not (
        value <= schema.get("exclusiveMinimum", value - 1) or value >= schema.get("exclusiveMaximum", value + 1)
    )


def _array_fits(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Test an array against its length, `uniqueItems`, and the schemas of its items."""
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    if schema.get("uniqueItems") and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        return False
    first = schema.get("prefixItems", ())
    rest = schema.get("items", True)
    return all(fits(item, first[at] if at < len(first) else rest, root) for at, item in enumerate(value))


def _object_fits(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Test an object against `required` and the schemas of its properties."""
    known = schema.get("properties", {})
    if any(key not in value for key in schema.get("required", ())):
        return False
    more = schema.get("additionalProperties", True)
    return all(fits(item, known.get(key, more), root) for key, item in value.items())
