"""The shape of an answer whose asker wants it by a JSON schema of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from batos.inference.canonical import EncodedSchema
from batos.inference.decide import SpokenText
from batos.inference.schema import Mode, ordered_keys, parse_json
from batos.inference.shapes import ShapeMismatch, tokens_of
from batos.protocol import brief_checks
from batos.protocol.brief_checks import JsonSchema
from batos.protocol.errors import DecisionInvalid

#: Letters that an answer may have at first; one that is cut is asked for again with more room.
LONGEST: Final = 2_400
#: The depth to which a prompt describes a schema.
_DEPTH: Final = 4
_REMEDY: Final = "Ask another model (`--model NAME`), or let the schema allow more."
_WORDS: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class AskedSchema:
    """An answer by a schema: the daemon enforces what it can of it, and the rest is checked in the reply.

    Keys at the top get a letter before them where their order is another than the alphabet's, in which a daemon writes
    them: what is asked for first is to be thought of first. The text of an answer has the asker's own keys.
    """

    num_predict: Final = tokens_of(LONGEST)

    def __init__(self, schema: JsonSchema) -> None:
        self._schema = schema
        properties = schema.get("properties")
        self._keys = ordered_keys(properties) if isinstance(properties, dict) else {}
        self.format = EncodedSchema(self._rename(schema))

    @property
    def guide(self) -> str:
        """Return a line for each key, since a model does not see its grammar."""
        nodes: JsonSchema = self._schema.get("properties", {})
        lines = [f"`{self._keys[name]}`: {self._describe(node)}" for name, node in nodes.items()]
        return "\n".join(lines) or f"JSON: {self._describe(self._schema)}"

    def in_mode(self, mode: Mode) -> AskedSchema:
        """Return itself: reasoning in the reply is no part of what was asked for."""
        return self

    def parse(self, text: str) -> SpokenText:
        """Return a reply as JSON text. Raises: DecisionInvalid: it does not have the schema."""
        try:
            value = parse_json(text)
        except ShapeMismatch as mismatch:
            raise DecisionInvalid(f"The reply is not valid: {mismatch}.") from mismatch
        if isinstance(value, dict):
            own = {key: name for name, key in self._keys.items()}
            value = {own.get(key, key): each for key, each in value.items()}
        if faults := brief_checks.find_faults(self._schema, value):
            raise DecisionInvalid(
                f"The reply does not have the schema: {'; '.join(faults)}.", field="schema", remedy=_REMEDY
            )
        return SpokenText(json.dumps(value, ensure_ascii=False, indent=2))

    def salvage(self, text: str, *, last: bool) -> SpokenText | None:
        """Return None: a part of a value is none."""
        return None

    def _rename(self, schema: JsonSchema) -> JsonSchema:
        """Return the schema with the keys in which the daemon is asked: for all of them where none is called required,
        since a model that may leave out each leaves out all.
        """
        renamed, required = dict(schema), schema.get("required") or list(self._keys)
        if self._keys:
            renamed["properties"] = {self._keys[name]: node for name, node in schema["properties"].items()}
        if required:
            renamed["required"] = [self._keys.get(name, name) for name in required]
        return renamed

    def _describe(self, node: object, depth: int = 0) -> str:
        """Describe in prose what is allowed at a place of the schema."""
        if not isinstance(node, dict) or depth > _DEPTH:
            return "any value"
        if isinstance(reference := node.get("$ref"), str):
            return self._describe(brief_checks.find_part(self._schema, reference), depth + 1)
        about = str(node.get("description") or "")
        allowed = self._describe_type(node, depth)
        return f"{about} ({allowed})" if about else allowed

    def _describe_type(self, node: JsonSchema, depth: int) -> str:
        if "enum" in node or "const" in node:
            values = node.get("enum", [node.get("const")])
            return "one of " + ", ".join(json.dumps(each, ensure_ascii=False) for each in values)
        for several in ("anyOf", "oneOf"):
            if isinstance(node.get(several), list):
                return " or ".join(self._describe(each, depth + 1) for each in node[several])
        kind = node.get("type")
        if isinstance(kind, list):
            return " or ".join(_WORDS.get(str(each), str(each)) for each in kind)
        if kind == "array":
            return f"a list, each {self._describe(node.get('items'), depth + 1)}"
        if isinstance(properties := node.get("properties"), dict):
            inside = (f"`{name}`: {self._describe(each, depth + 1)}" for name, each in properties.items())
            return "an object of " + "; ".join(inside)
        return _WORDS.get(str(kind), "any value" if kind is None else f"an {kind}")
