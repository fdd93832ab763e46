"""The parts of a compiled schema: each has its format for the daemon, its bound in tokens, and a parser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

# European text runs at 3 to 4.5 characters a token; 2.5 leaves room for names, numbers, escapes and other scripts.
CHARS_PER_TOKEN = 2.5

Loc: TypeAlias = Sequence[int | str]


class ShapeMismatch(Exception):
    """A value that does not have the shape; `path` says where, in the daemon's keys."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path or 'the reply'}: {problem}")
        self.path = path


def tokens_of(characters: int) -> int:
    """Return a bound for the number of tokens of that many characters."""
    return math.ceil(characters / CHARS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A string, number, boolean, null or enumeration; `words` says in prose what is allowed."""

    format: dict[str, object]
    tokens: int
    words: str

    def back(self, value: object, path: str) -> Any:
        """Return the value unchanged: pydantic checks it."""
        return value

    def daemon_path(self, loc: Loc) -> str:
        """Return "": a leaf has no places inside."""
        return ""


@dataclass(frozen=True, slots=True)
class Array:
    """A list of at most `most` items."""

    item: Shape
    least: int
    most: int

    @property
    def format(self) -> dict[str, object]:
        """Return the schema for the daemon."""
        bound: dict[str, object] = {"type": "array", "items": self.item.format, "maxItems": self.most}
        return {**bound, "minItems": self.least} if self.least else bound

    @property
    def tokens(self) -> int:
        """Return the bound: the brackets, and for every item its bound, a comma and a blank."""
        return 2 + self.most * (self.item.tokens + 2)

    @property
    def words(self) -> str:
        """Describe the shape in prose."""
        return f"a list of {self.least or 'up'} to {self.most}, each {self.item.words}"

    def back(self, value: object, path: str) -> Any:
        """Map every item back.

        Raises: Mismatch: the value is no list.
        """
        if not isinstance(value, list):
            raise ShapeMismatch(path, "a list is wanted")
        return [self.item.back(item, f"{path}[{index}]") for index, item in enumerate(value)]

    def daemon_path(self, loc: Loc) -> str:
        """Return the path of a place inside, in the daemon's keys."""
        if not loc:
            return ""
        rest = self.item.daemon_path(loc[1:])
        return f"[{loc[0]}]" + (f".{rest}" if rest and not rest.startswith("[") else rest)


@dataclass(frozen=True, slots=True)
class Object:
    """An object whose keys come in exactly this order; `keys` maps each field to the daemon's key for it."""

    fields: Mapping[str, Shape]
    keys: Mapping[str, str]

    @property
    def format(self) -> dict[str, Any]:
        """Return the schema for the daemon: every key required, in the order in which the model will generate them."""
        properties = {self.keys[name]: shape.format for name, shape in self.fields.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}

    @property
    def tokens(self) -> int:
        """Return the bound: the braces, and for every key its text, quotes, colon, comma, blanks and its
        value's bound.
        """
        return 2 + sum(tokens_of(len(self.keys[name])) + 5 + shape.tokens for name, shape in self.fields.items())

    @property
    def words(self) -> str:
        """Describe the shape in prose."""
        return "an object of " + "; ".join(f"`{self.keys[name]}`: {part.words}" for name, part in self.fields.items())

    def back(self, value: object, path: str) -> Any:
        """Map the fields back to their own names.

        Raises: Mismatch: the value is no object, a key is missing, or there is an unknown key.
        """
        if not isinstance(value, dict):
            raise ShapeMismatch(path, "an object is wanted")
        for key in value:
            if key not in self.keys.values():
                raise ShapeMismatch(path, f"the key {key!r} is not wanted")
        inside = {}
        for name, shape in self.fields.items():
            key = self.keys[name]
            if key not in value:
                raise ShapeMismatch(path, f"the key {key!r} is missing")
            inside[name] = shape.back(value[key], f"{path}.{key}" if path else key)
        return inside

    def daemon_path(self, loc: Loc) -> str:
        """Return the path of a place inside, in the daemon's keys."""
        if not loc or loc[0] not in self.fields:
            return ""
        name = str(loc[0])
        rest = self.fields[name].daemon_path(loc[1:])
        return self.keys[name] + (f".{rest}" if rest and not rest.startswith("[") else rest)


@dataclass(frozen=True, slots=True)
class Union:
    """A choice between several shapes."""

    choices: tuple[Shape, ...]

    @property
    def format(self) -> dict[str, object]:
        """Return the schema for the daemon."""
        return {"anyOf": [choice.format for choice in self.choices]}

    @property
    def tokens(self) -> int:
        """Return the bound of the largest choice."""
        return max(choice.tokens for choice in self.choices)

    @property
    def words(self) -> str:
        """Describe the shape in prose."""
        return " or ".join(choice.words for choice in self.choices)

    def back(self, value: object, path: str) -> Any:
        """Map the value back by the first choice that has its shape.

        Raises: Mismatch: no choice has its shape.
        """
        problem: ShapeMismatch | None = None
        for choice in self.choices:
            fits = isinstance(choice, (Object, Array)) == isinstance(value, (dict, list))
            try:
                if fits:
                    return choice.back(value, path)
            except ShapeMismatch as mismatch:
                problem = problem or mismatch
        raise problem or ShapeMismatch(path, "none of the allowed forms")

    def daemon_path(self, loc: Loc) -> str:
        """Return the path of a place inside, in the daemon's keys; pydantic names the choice first."""
        for choice in self.choices:
            if loc and (shown := choice.daemon_path(loc[1:])):
                return shown
        return ""


Shape: TypeAlias = Leaf | Array | Object | Union
