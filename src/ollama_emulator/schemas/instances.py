"""Draw instances of JSON schemas from a prompt: the required properties, in the order that the runner writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ollama_emulator.schemas import compiled_schema, matching, patterns
from ollama_emulator.speech import language
from ollama_emulator.speech.sources import Sources, cut

_DEEP = 6
_MANY = 3
_LARGE = 9
_MOST_VALUES = 2000  # of one instance, with those of alternatives that were discarded
_MOST_ITEMS = 512
_MOST_CHARACTERS = patterns.LONGEST
_DEEPEST = 48
_EMPTY_LISTS = re.compile(
    r"unanswered|missing|gaps?|unresolved|contradict|conflict|unknown|errors?|faults?|issues?|excluded"
)
_FALSE = re.compile(r"un[a-z]+ed|no_|not_|missing|contradict|conflict|needs_|refus|harm|stale|insufficient")
_SHAPES = {
    "date-time": "2000-01-01T00:00:00Z",
    "date": "2000-01-01",
    "time": "00:00:00Z",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


@dataclass(slots=True)
class Drawing:
    """The drawing of one instance of the schema `root`.

    `sorted_keys` is set where a Go map has sorted the schema's keys.
    """

    root: Mapping[str, Any]
    sources: Sources
    sorted_keys: bool = False
    _values: int = 0
    _characters: int = 0

    def draw(self, wanted: Any, name: str = "", at: int = 0, deep: int = 0) -> Any:
        """Return an instance of the schema `wanted`, which stands `deep` levels down in the document.

        `name` is the property that it is drawn for and `at` its position in an array; both steer the choice of values.
        Raises: ApiError: 400, the instance would exceed a limit of the emulator.
        """
        self._enter(deep)
        found = compiled_schema.resolve(wanted, self.root)
        if "const" in found:
            return found["const"]
        if found.get("enum"):
            return self._choose(found["enum"], name, at)
        for keyword in ("anyOf", "oneOf"):
            if found.get(keyword):
                return self._one_of(found, keyword, name, at, deep)
        kind = _kind(found)
        if kind == "object":
            return self._object(found, at, deep)
        if kind == "array":
            return self._array(found, name, deep)
        if kind == "string":
            return self._string(found, name, at)
        if kind in ("integer", "number"):
            return self._number(found, kind, name, at)
        return None if kind == "null" else not _FALSE.search(language.plain_name(name))

    def _enter(self, deep: int) -> None:
        """Count one value more. Raises: ApiError: 400, the instance is too large or too deep."""
        self._values += 1
        if deep > _DEEPEST:
            raise compiled_schema.excessive(f"values nested {deep} deep")
        if self._values > _MOST_VALUES:
            raise compiled_schema.excessive(f"instance of more than {_MOST_VALUES} values")

    def _choose(self, values: list[Any], name: str, at: int) -> Any:
        """Choose from an enum: a value that the question mentions, else one by hash.

        Items of one array take them in turn.
        """
        asked = self.sources.question_line.lower()
        named = [value for value in values if isinstance(value, str) and value and value.lower() in asked]
        first = values.index(named[0]) if named else self.sources.number("enum", name) % len(values)
        return values[(first + at) % len(values)]

    def _one_of(self, found: Mapping[str, Any], keyword: str, name: str, at: int, deep: int) -> Any:
        """Return an instance of the first alternative that gives a valid one; deep down simple ones come first."""
        base = {key: value for key, value in found.items() if key != keyword}
        parts = list(found[keyword])
        if deep >= _DEEP:
            parts.sort(key=lambda part: _weight(compiled_schema.resolve(part, self.root)))
        drawn: Any = None
        for part in parts:
            whole = compiled_schema.resolve({"allOf": [base, part]}, self.root) if base else part
            drawn = self.draw(whole, name, at, deep + 1)
            if compiled_schema.fits(drawn, found, self.root):
                return drawn
        return drawn

    def _object(self, found: Mapping[str, Any], at: int, deep: int) -> dict[str, Any]:
        """Draw an object with its required properties; those that ask for a query get different ones."""
        properties = found.get("properties", {})
        needed = [name for name in found.get("required", ()) if isinstance(name, str)]
        wanted = frozenset(needed)
        names = [name for name in properties if name in wanted]
        if not properties:  # if there are properties, the runner writes no others
            names = [*dict.fromkeys(needed)]
        if self.sorted_keys:
            names.sort()
        drawn: dict[str, Any] = dict.fromkeys(names)
        drawn |= self._cite(properties, names, at)
        asking = {name: turn for turn, name in enumerate(filter(language.asks, names))}
        more = found.get("additionalProperties", True)
        for name in names:
            if drawn[name] is None:
                inner = properties.get(name, more)
                drawn[name] = self.draw(inner, name, at + asking.get(name, 0), deep + 1)
        return drawn

    def _cite(self, properties: Mapping[str, Any], names: list[str], at: int) -> dict[str, Any]:
        """Draw a quote and the number of the document that it is from, so that they agree; {} without a quote."""
        quotes = [name for name in names if language.plain_name(name).endswith("quote")]
        numbers = [name for name in names if language.plain_name(name).endswith(("document", "source"))]
        if not quotes:
            return {}
        wanted = compiled_schema.resolve(properties.get(quotes[0], {}), self.root)
        allowed = None
        for name in numbers:
            bounds = compiled_schema.resolve(properties.get(name, {}), self.root)
            allowed = frozenset(
                block for block in self.sources.blocks if compiled_schema.fits(block, bounds, self.root)
            )
        found = language.quotable(self.sources, allowed)
        if not found:
            return {}
        sentence = found[at % len(found)]
        span = cut(sentence.text, wanted.get("maxLength"))
        if not compiled_schema.fits(span, wanted, self.root):
            return {}
        cited: dict[str, Any] = {quotes[0]: span}
        for name in numbers:
            if compiled_schema.fits(sentence.source, properties.get(name, {}), self.root):
                cited[name] = sentence.source
        return cited

    def _array(self, found: Mapping[str, Any], name: str, deep: int) -> list[Any]:
        """Draw an array; with `uniqueItems` repeated values are dropped, and the array may stay shorter."""
        first = list(found.get("prefixItems", ()))
        items = found.get("items", True)
        fewest = int(found.get("minItems", 0))
        if fewest > _MOST_ITEMS:
            raise compiled_schema.excessive(f"array of {fewest:.0f} items")
        most = found.get("maxItems")
        many = max(fewest, self._length(items, name, deep))
        if items is False:
            many = max(fewest, len(first))
        if most is not None:
            many = min(many, int(most))
        unique = bool(found.get("uniqueItems"))
        drawn: list[Any] = []
        at = 0
        while len(drawn) < many and at < many * 4 + 64:
            item = self.draw(first[at] if at < len(first) else items, name, at, deep + 1)
            if not unique or not any(compiled_schema.same(item, other) for other in drawn):
                drawn.append(item)
            at += 1
        return drawn

    def _length(self, items: Any, name: str, deep: int) -> int:
        """Return the number of items to draw; lists whose name speaks of gaps or errors stay empty."""
        if deep >= _DEEP or _EMPTY_LISTS.search(language.plain_name(name)):
            return 0
        inner = compiled_schema.resolve(items, self.root)
        quotes = any(language.plain_name(key).endswith("quote") for key in inner.get("properties", ()))
        if quotes:
            return min(_MANY, len(self.sources.evidence))
        return 1 + self.sources.number("items", name) % _MANY

    def _string(self, found: Mapping[str, Any], name: str, at: int) -> str:
        """Draw a string by its pattern, else its format, else the property's name."""
        longest = found.get("maxLength")
        fewest = int(found.get("minLength", 0))
        self._characters += fewest
        if self._characters > _MOST_CHARACTERS:
            raise compiled_schema.excessive(f"instance of more than {_MOST_CHARACTERS} characters")
        if matching.parse(found.get("pattern", "")):
            return patterns.match(found["pattern"], self.sources, fewest, longest, at)
        shape = _SHAPES.get(found.get("format", ""))
        if shape is not None and (longest is None or len(shape) <= longest):
            return shape
        text = language.text_for(name, self.sources, longest, at)
        return patterns.lengthen(text, self.sources, fewest, longest)

    def _number(self, found: Mapping[str, Any], kind: str, name: str, at: int) -> float:
        """Draw a number within its bounds; the property `document` or `source` gets the number of an evidence block."""
        whole = kind == "integer"
        low, high = _bounds(found, whole)
        if whole and language.plain_name(name).endswith(("document", "source")):
            inside = [block for block in self.sources.blocks if low <= block <= high]
            if inside:
                return inside[at % len(inside)]
        chosen = self.sources.number("number", name, at)
        if whole:
            return int(low) + chosen % (int(high) - int(low) + 1)
        found_there = low + (high - low) * (chosen % 101) / 100 if high > low else low
        return found_there if math.isfinite(found_there) else low


def _kind(found: Mapping[str, Any]) -> str:
    """Return a schema's type, the first of several, or guess it from the other keywords."""
    kind = found.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind is not None:
        return str(kind)
    if "properties" in found or "required" in found:
        return "object"
    return "array" if "items" in found or "prefixItems" in found else "string"


def _bounds(found: Mapping[str, Any], whole: bool) -> tuple[float, float]:
    """Return the least and the greatest value of a number; a missing bound is set near the other one."""
    step = 1 if whole else 1e-6
    found = {name: bound for name, bound in found.items() if isinstance(bound, int | float)}
    low = found.get("minimum")
    high = found.get("maximum")
    if "exclusiveMinimum" in found:
        low = max(low if low is not None else -math.inf, _next(found["exclusiveMinimum"], step, whole))
    if "exclusiveMaximum" in found:
        high = min(high if high is not None else math.inf, -_next(-found["exclusiveMaximum"], step, whole))
    if low is None:
        low = min(0, high - _LARGE) if high is not None else 0
    if high is None:
        high = low + (_LARGE if whole else 1)
    if whole:
        low, high = math.ceil(low), math.floor(high)
    return low, max(low, high)


def _next(value: float, step: float, whole: bool) -> float:
    """Return the least number above a value."""
    return math.floor(value) + 1 if whole else value + step * max(1.0, abs(value))


def _weight(found: Mapping[str, Any]) -> int:
    """Return a measure of an alternative's nesting: 0 for scalars, most for objects with many required properties."""
    kind = _kind(found)
    if kind == "object":
        return 2 + len(found.get("required", ()))
    return 1 if kind == "array" else 0
