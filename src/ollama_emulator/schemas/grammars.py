"""The errors of the runner's grammar compiler for a JSON schema, in its words and in the order in which it reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go import json as gojson
from ollama_emulator.remembering import short
from ollama_emulator.schemas import compiled_schema
from ollama_emulator.schemas.compiled_schema import SchemaRefused

_FAILED = "JSON schema conversion failed:\n"
_COMPLETION = "Field 'json_schema': \"json_schema\": "
_CHAT = "Unable to generate parser for this template. Automatic parser generation failed: "
_UNPARSED = "Failed to initialize samplers: failed to parse grammar"
_REPEATED = 2000  # repetitions that a grammar may ask for
_DEEPEST = 100  # nested groups of a pattern
_SPECIAL = frozenset("|.()[]{}*+?^$")
_ESCAPED = frozenset("^$.[]()|{}*+?")
_REPEATED_AFTER = _SPECIAL - {"."}  # a plain letter before one of these ends its run
_ESCAPE = re.compile(r'\\(?:[trn\\"\[\]-]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})')
_COUNT = re.compile(r"\{(?:\s*[+-]?\d[^,}]*(?:,(?:\s*[+-]?\d[^,}]*)?)?|,(?:\s*[+-]?\d[^,}]*)?)\}")


def check(form: Mapping[str, Any], *, native: bool = False) -> None:
    """Check that the runner can make a grammar of a schema, and the emulator an instance.

    `native` is set for a schema that reached the runner's own chat through a Go map: other words, keys sorted. Raises:
    ApiError: 400, in the runner's words.
    """
    _check(json.dumps(form), native)


@short(256, 1 << 16)
def _check(text: str, native: bool) -> None:
    """Check a schema, given as JSON so that the result can be cached."""
    root = json.loads(text)
    if native:
        root = json.loads(gojson.layer_text(root))
    found = _Reading(root)
    try:
        found.node(root, "#")
    except SchemaRefused as why:
        raise _refusal(why.why, native, "" if native else _FAILED) from None
    if found.faults:
        raise _refusal("\n".join(found.faults), native, _FAILED)
    if found.endless:
        raise compiled_schema.refuse(_UNPARSED)
    compiled_schema.check_merges(root)


def _refusal(why: str, native: bool, prefix: str) -> ApiError:
    return compiled_schema.refuse((_CHAT if native else _COMPLETION) + prefix + why)


@dataclass(slots=True)
class _Reading:
    """A pass over a schema that collects faults of its patterns; `endless` says that its grammar is too large."""

    root: Mapping[str, Any]
    faults: list[str] = field(default_factory=list)
    endless: bool = False
    _followed: set[str] = field(default_factory=set)

    def node(self, given: Any, path: str, chain: tuple[str, ...] = ()) -> None:
        """Check the schema at a path. `chain` holds the references followed since the last object or list."""
        if not isinstance(given, dict):
            raise SchemaRefused(path, "schema must be an object")
        if "$ref" in given:
            self._reference(given["$ref"], path, chain)
        elif "oneOf" in given or "anyOf" in given:
            keyword = "oneOf" if "oneOf" in given else "anyOf"
            self._alternatives(given[keyword], f"{path}/{keyword}", chain)
        elif isinstance(given.get("type"), list):
            if not given["type"]:
                raise SchemaRefused(path, "type must not be empty")
            for at, kind in enumerate(given["type"]):
                self.node({**given, "type": kind}, f"{path}/type/{at}", chain)
        elif "const" not in given:
            self._plain(given, path, chain)

    def _plain(self, given: Mapping[str, Any], path: str, chain: tuple[str, ...]) -> None:
        """Check a schema without reference, alternatives or constant, by its type."""
        kind = given.get("type")
        if "enum" in given:
            if not isinstance(given["enum"], list) or not given["enum"]:
                raise SchemaRefused(path, "enum must be a non-empty array")
            return
        if kind is not None and not isinstance(kind, str):
            raise SchemaRefused(path, "type must be a string or an array of strings")
        wide = "properties" in given or given.get("additionalProperties", True) is not True
        if kind and kind not in compiled_schema.TYPES:
            raise SchemaRefused(path, f"unrecognized type {kind}")
        if "allOf" in given and (kind == "string" or (not wide and kind in (None, "", "object"))):
            self._alternatives(given["allOf"], f"{path}/allOf", chain)
        elif kind == "object" or (not kind and wide):
            self._object(given, path)
        elif kind == "array" or (not kind and ("items" in given or "prefixItems" in given)):
            self._array(given, path)
        elif kind == "string" or not kind:
            self._string(given, path, typed=bool(kind))
        elif kind == "integer":
            _bounds(given, path)

    def _reference(self, reference: Any, path: str, chain: tuple[str, ...]) -> None:
        """Check the target of a reference, once; a reference within itself makes the grammar endless."""
        target = compiled_schema.target(reference, self.root, path)
        if reference in chain:
            self.endless = True
        elif reference not in self._followed:
            self._followed.add(reference)
            self.node(target, reference, (*chain, reference))

    def _alternatives(self, given: Any, path: str, chain: tuple[str, ...]) -> None:
        """Check a list of schemas, each as a node of its own."""
        if not isinstance(given, list):
            raise SchemaRefused(path, "must be an array of schemas")
        if not given:
            raise SchemaRefused(path, "must not be empty")
        for at, one in enumerate(given):
            self.node(one, f"{path}/{at}", chain)

    def _object(self, given: Mapping[str, Any], path: str) -> None:
        """Check the schemas of an object's properties."""
        properties = given.get("properties", {})
        if not isinstance(properties, dict):
            raise SchemaRefused(path, "properties must be an object")
        for name, inner in properties.items():
            self.node(inner, f"{path}/properties/{name}")
        more = given.get("additionalProperties", True)
        if isinstance(more, dict):
            self.node(more, f"{path}/additionalProperties")
        elif not isinstance(more, bool):
            raise SchemaRefused(path, "additionalProperties must be a boolean or a schema")

    def _array(self, given: Mapping[str, Any], path: str) -> None:
        """Check the schemas of an array's items."""
        keyword = "items" if "items" in given else "prefixItems"
        inner = given.get(keyword, {})
        if isinstance(inner, list):
            for at, one in enumerate(inner):
                self.node(one, f"{path}/{keyword}/{at}")
            return
        self.node(inner, f"{path}/{keyword}")
        fewest, _ = _count(given, "minItems", path), _count(given, "maxItems", path)
        self.endless |= fewest - 1 > _REPEATED

    def _string(self, given: Mapping[str, Any], path: str, *, typed: bool) -> None:
        """Check the pattern and the format of a string."""
        if not typed and not given.keys() & {"pattern", "minLength", "maxLength", "format"}:
            return
        pattern = given.get("pattern", "")
        if not isinstance(pattern, str):
            raise SchemaRefused(path, "pattern must be a string")
        if not isinstance(given.get("format", ""), str):
            raise SchemaRefused(path, "format must be a string")
        fewest, _ = _count(given, "minLength", path), _count(given, "maxLength", path)
        fault = _pattern_fault(pattern)
        if fault:
            self.faults.append(f"Invalid pattern {pattern}: {fault}")
        self.endless |= not pattern and fewest > _REPEATED


def _count(given: Mapping[str, Any], name: str, path: str) -> int:
    """Return the value of a keyword that counts, 0 if missing. Raises: SchemaRefused: it is no count."""
    count = given.get(name, 0)
    if type(count) is not int or count < 0:
        raise SchemaRefused(path, f"{name} must be a non-negative integer")
    return count


def _bounds(given: Mapping[str, Any], path: str) -> None:
    """Check the bounds of a number; an exclusive bound beside an inclusive one is ignored, as by the runner."""
    for closed, opened in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        name = closed if closed in given else opened
        bound = given.get(name, 0)
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise SchemaRefused(path, f"{name} must be a number")


# patterns: one that no grammar can express stands for any string, and only a malformed one is a fault


class _AnyString(Exception):
    """Raised for a pattern that the runner has no grammar for: any string then fits."""


def _pattern_fault(pattern: str) -> str:
    """Return the runner's objection to a pattern, or ""."""
    if len(pattern) < 2 or pattern[0] != "^" or pattern[-1] != "$":
        return ""
    try:
        return _Scan(pattern[1:-1]).fault()
    except _AnyString:
        return ""


@dataclass(slots=True)
class _Scan:
    """A reader of the text between `^` and `$` of a pattern.

    `filled` says for each open group if anything is in it yet.
    """

    text: str
    at: int = 0
    filled: list[bool] = field(default_factory=lambda: [False])

    def fault(self) -> str:
        """Read the whole pattern; return the runner's objection, or "". Raises: _AnyString: any string fits."""
        while self.at < len(self.text):
            wrong = self._step(self.text[self.at])
            if wrong:
                return wrong
        return "unbalanced parentheses" if len(self.filled) > 1 else ""

    def _step(self, letter: str) -> str:
        """Read one element of the pattern, which begins with `letter`; return the objection to it, or ""."""
        if letter in "^$":
            raise _AnyString
        if letter == "(":
            self._open()
            return ""
        if letter == ")" and len(self.filled) == 1:
            return "unbalanced parentheses"
        if letter == "{":
            self._count()
        elif letter == "[":
            self._class()
        elif letter in ".|*+?)":
            self.at += 1
        else:
            self._literal()
        if letter in "*+?{" and not self.filled[-1]:
            return "nothing to repeat"
        if self.at > len(self.text):
            return "unterminated character class" if letter == "[" else "trailing backslash"
        if letter == ")":
            self.filled.pop()
        self.filled[-1] = True
        return ""

    def _open(self) -> None:
        opened = next(each for each in ("(?:", "(?", "(") if self.text.startswith(each, self.at))
        if opened == "(?" or len(self.filled) > _DEEPEST:
            raise _AnyString
        self.at += len(opened)
        self.filled.append(False)

    def _class(self) -> None:
        """Go past a character class and its closing bracket."""
        self.at += 1
        while self.at < len(self.text) and self.text[self.at] != "]":
            self._letter(escaped=frozenset())
        self.at += 1

    def _count(self) -> None:
        """Go past a count in braces."""
        found = _COUNT.match(self.text, self.at)
        if found is None:
            raise _AnyString
        self.at = found.end()

    def _literal(self) -> None:
        """Go past a run of plain letters; a repeated letter ends the run before it, unless it is the first."""
        start = self.at
        while self.at < len(self.text):
            letter, behind = self.text[self.at], self.text[self.at + 1 : self.at + 2]
            if letter == "\\" and not behind:
                self.at += 2
            elif letter == "\\" or (letter not in _SPECIAL and (self.at == start or behind not in _REPEATED_AFTER)):
                self._letter(escaped=_ESCAPED)
            else:
                break
        if self.at == start:
            raise _AnyString

    def _letter(self, *, escaped: frozenset[str]) -> None:
        """Go past a letter, or past an escape that grammars know or that is in `escaped`."""
        if self.text[self.at] != "\\":
            self.at += 1
        elif self.text[self.at + 1 : self.at + 2] in escaped:
            self.at += 2
        else:
            found = _ESCAPE.match(self.text, self.at)
            if found is None:
                raise _AnyString
            self.at = found.end()
