"""The Go types that requests are decoded into, and the errors for values that do not fit them."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import isinf
from typing import Any

from ollama_emulator.go.scan import GoError, Literal, Pairs, number, plain

_DEEP = 500  # nested containers in a value of type any: a limit of the emulator, not of Go
BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_BASE64_SIGN = re.compile(r"[A-Za-z0-9+/]", re.ASCII)
_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)


class GoMismatch(GoError):
    """A JSON value that does not fit a Go type; `struct` and `field` name its place, set by `_Decoding.placed`."""

    def __init__(self, value: str, go: str) -> None:
        super().__init__(value, go)
        self.value = value
        self.go = go
        self.struct = ""
        self.field = ""

    def __str__(self) -> str:
        where = f"struct field {self.struct}.{self.field}" if self.struct or self.field else "value"
        return f"json: cannot unmarshal {self.value} into Go {where} of type {self.go}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A Go type without parts; `go` is its name in Go and `bits` the size of a number.

    Its `kind` is string, bool, int, uint, float, any, raw (JSON kept as sent) or bytes (base64).
    """

    go: str
    kind: str
    bits: int = 64


@dataclass(frozen=True, slots=True)
class Slice:
    """A Go slice: a JSON array of elements of one type."""

    go: str
    element: Type


@dataclass(frozen=True, slots=True)
class Map:
    """A Go map: a JSON object with any keys."""

    go: str
    element: Type


@dataclass(frozen=True, slots=True)
class GoStruct:
    """A Go struct: a JSON object with typed fields; unknown fields are ignored."""

    go: str
    fields: Mapping[str, Type]
    name: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive `name`, Go's name without its package; "" for a struct without a name."""
        object.__setattr__(self, "name", "" if self.go.startswith("struct") else self.go.rpartition(".")[2])

    def find(self, key: str) -> str | None:
        """Return the name of the field that a JSON key means, ignoring case; None for an unknown key."""
        if key in self.fields:
            return key
        folded = _fold(key)
        return next((name for name in self.fields if _fold(name) == folded), None)


@dataclass(frozen=True, slots=True)
class Custom:
    """A Go type with its own decoder: `read` takes a node and raises GoError.

    For a `pointer`, null is nil and not read.
    """

    go: str
    read: Callable[[Any], Any]
    pointer: bool = False


Type = Scalar | Slice | Map | GoStruct | Custom

STRING = Scalar("string", "string")
BOOL = Scalar("bool", "bool")
INT = Scalar("int", "int")
FLOAT = Scalar("float64", "float")
FLOAT32 = Scalar("float32", "float", 32)
ANY = Scalar("interface {}", "any")
RAW = Scalar("json.RawMessage", "raw")
STRINGS = Slice("[]string", STRING)
_READY = (str, bool, int, float)
_ZERO: Mapping[str, Any] = {"string": "", "bool": False, "int": 0, "uint": 0, "float": 0}


def decode(kind: Type, node: Any) -> Any:
    """Decode a JSON node into a Go type and return its value; a struct is a dict of the fields that were sent.

    Raises: GoError: the first field that does not fit; an error of a Custom type comes before it.
    """
    state = _Decoding()
    try:
        value = state.value(kind, node, None)
    except GoError as fault:
        raise state.place(fault) from None
    if state.saved is not None:
        raise state.saved
    return value


def kind_of(node: Any) -> str:
    """Return the name of a node's JSON type, as Go's error messages give it."""
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "bool"
    if isinstance(node, Literal | int | float):
        return "number"
    if isinstance(node, str):
        return "string"
    return "object" if isinstance(node, dict | Pairs) else "array"


def _fold(name: str) -> str:
    """Return a field's name without case, folded as Go does: the long s and the Kelvin sign count as s and k."""
    return name.replace("\u017f", "s").replace("\u212a", "k").lower()


def _items(node: Any) -> Iterable[tuple[str, Any]]:
    return node.items() if isinstance(node, dict) else node


@dataclass(slots=True)
class _Decoding:
    """The state of a decoding: the struct and the path of fields being read, and the first mismatch."""

    struct: str = ""
    path: list[str] = field(default_factory=list)
    saved: GoError | None = None

    def place(self, fault: GoError) -> GoError:
        """Put the place being read into a mismatch, before the path that it has; return the fault."""
        if isinstance(fault, GoMismatch) and (self.struct or self.path):
            fault.struct = self.struct
            fault.field = ".".join([*self.path, *([fault.field] if fault.field else [])])
        return fault

    def save(self, fault: GoError) -> None:
        """Keep a fault to be raised at the end, unless there is an earlier one."""
        placed = self.place(fault)
        self.saved = self.saved or placed

    def value(self, kind: Type, node: Any, old: Any) -> Any:
        """Decode a node into a type; `old` is the value of an earlier field of the same name, which Go merges into."""
        if isinstance(kind, Custom):
            return None if node is None and kind.pointer else kind.read(node)
        if isinstance(kind, Scalar):
            return self._scalar(kind, node, old)
        if node is None:
            return old if isinstance(kind, GoStruct) else None
        if kind_of(node) != ("array" if isinstance(kind, Slice) else "object"):
            self.save(GoMismatch(kind_of(node), kind.go))
            return old
        if isinstance(kind, Slice):
            return self._slice(kind, node, old)
        return self._struct(kind, node, old) if isinstance(kind, GoStruct) else self._map(kind, node, old)

    def _slice(self, kind: Slice, node: Any, old: Any) -> list[Any]:
        """Decode an array, each item over the one that stood there before, as Go does."""
        before = old or []
        return [
            _element_or_zero(kind.element, self.value(kind.element, item, before[at] if at < len(before) else None))
            for at, item in enumerate(node)
        ]

    def _map(self, kind: Map, node: Any, old: Any) -> dict[str, Any]:
        """Decode an object's values into those that were there before."""
        found = dict(old or {})
        for key, item in _items(node):
            if kind.element is ANY and item.__class__ in _READY:
                found[key] = item
            else:
                found[key] = _element_or_zero(kind.element, self.value(kind.element, item, None))
        return found

    def _struct(self, kind: GoStruct, node: Any, old: Any) -> dict[str, Any]:
        """Decode an object into a struct; fields that Go does not know are ignored."""
        found = dict(old or {})
        outer = self.struct
        for key, item in _items(node):
            name = kind.find(key)
            if name is None:
                continue
            wanted = kind.fields[name]
            if (wanted is STRING and item.__class__ is str) or (wanted is BOOL and item.__class__ is bool):
                found[name] = item  # a short cut for most fields
                continue
            self.path.append(name)
            self.struct = kind.name
            if item is not None or not _keeps(wanted):
                found[name] = self.value(wanted, item, found.get(name))
            self.path.pop()
            self.struct = outer
        return {name: found[name] for name in kind.fields if name in found} if len(found) > 1 else found

    def _scalar(self, kind: Scalar, node: Any, old: Any) -> Any:
        """Decode a node without parts; keep `old` for null and for a mismatch."""
        if kind.kind in ("any", "raw"):
            return self._any(kind, node)
        if node is None:
            return old
        given = kind_of(node)
        if kind.kind == "bytes" and given == "array":
            return self._bytes(node)
        wanted = {"bool": "bool", "string": "string", "bytes": "string"}.get(kind.kind, "number")
        if given != wanted:
            self.save(GoMismatch(given, kind.go))
            return old
        if kind.kind == "bytes":
            return self._base64(str(node), old)
        return self._number(kind, node, old) if wanted == "number" else node

    def _any(self, kind: Scalar, node: Any) -> Any:
        """Return a node as Go decodes it into an `any`. Raises: GoError: it is nested too deep."""
        if isinstance(node, list | dict) and _deep(node):
            raise GoError("exceeded max depth")
        if isinstance(node, dict):
            return node
        value, huge = plain(node)
        if huge and kind.kind == "any":
            self.save(GoMismatch(f"number {huge}", FLOAT.go))
        return value

    def _number(self, kind: Scalar, node: Any, old: Any) -> Any:
        """Return a number that the type can hold; keep `old` for another, which is a mismatch."""
        if kind.kind == "float":
            value = float(node)
            if not isinf(value) and (kind.bits == 64 or abs(value) < 3.4028235677973366e38):
                return number(node)[0] if isinstance(node, Literal) else node
        elif _INTEGER.fullmatch(str(node)):
            whole = int(node)
            low, high = (0, 2**kind.bits) if kind.kind == "uint" else (-(2 ** (kind.bits - 1)), 2 ** (kind.bits - 1))
            if low <= whole < high:
                return whole
        self.save(GoMismatch(f"number {node}", kind.go))
        return old

    def _base64(self, text: str, old: Any) -> Any:
        """Return a text of base64, or the old value after noting the byte at which it is wrong."""
        if BASE64.fullmatch(text.replace("\r", "").replace("\n", "")):
            return text
        self.save(GoError(f"illegal base64 data at input byte {_corrupt(text)}"))
        return old

    def _bytes(self, node: list[Any]) -> str:
        """Return the base64 text of bytes that were sent as a list of numbers."""
        byte = Scalar("uint8", "uint", 8)
        return b64encode(bytes(self._scalar(byte, item, 0) for item in node)).decode()


def _keeps(kind: Type) -> bool:
    """Return whether null leaves a field of the type as it was."""
    return (isinstance(kind, Scalar) and kind.kind in _ZERO) or isinstance(kind, GoStruct)


def _element_or_zero(kind: Type, value: Any) -> Any:
    """Return the element of a container, Go's zero value for null."""
    if value is not None:
        return value
    if isinstance(kind, Scalar):
        return _ZERO.get(kind.kind)
    return {} if isinstance(kind, GoStruct) else None


def _deep(node: Any) -> bool:
    """Return whether containers are nested deeper than `_DEEP`."""
    level = [node]
    for _ in range(_DEEP):
        below: list[Any] = []
        for one in level:
            if isinstance(one, Pairs):
                below += [item for _, item in one if isinstance(item, list | dict)]
            elif isinstance(one, dict):
                below += [item for item in one.values() if isinstance(item, list | dict)]
            elif isinstance(one, list):
                below += [item for item in one if isinstance(item, list | dict)]
        if not below:
            return False
        level = below
    return True


def _corrupt(text: str) -> int:
    """Return the offset of the byte that Go's decoder names as the first wrong one of a base64 text."""
    data = text.encode("utf-8", "surrogatepass").decode("latin-1")
    at, filled = 0, 0
    while at < len(data):
        sign = data[at]
        at += 1
        if sign in "\r\n":
            continue
        if _BASE64_SIGN.match(sign):
            filled = (filled + 1) % 4
            continue
        if sign != "=" or filled < 2:
            return at - 1
        return _after_padding(data, at, filled)
    return len(data) - filled


def _after_padding(data: str, at: int, filled: int) -> int:
    """Return the offset of the first wrong byte behind an `=` of base64, before which `filled` signs stand."""
    while filled == 2 and at < len(data) and data[at] in "\r\n":
        at += 1
    if filled == 2:
        if at == len(data):
            return at
        if data[at] != "=":
            return at - 1
        at += 1
    while at < len(data) and data[at] in "\r\n":
        at += 1
    return at
