"""Operations of an HTTP API as a description declares them, and the names and signatures of their two methods."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from batos.records.tools import READING, REQUEST

#: A value of JSON.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
#: Where a parameter stands in a request.
Place: TypeAlias = Literal["path", "query"]

#: The key of a value that says why there is none.
FAILURE: Final = "failure"
#: The most operations of an API.
MOST_OPERATIONS: Final = 8

_VARIABLE: Final = re.compile(r"\{(\w+)\}")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
#: The most characters of a path and of a value in the query.
_MOST_PATH, _MOST_VALUE = 1_000, 2_000


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an operation. `kind` is a type of JSON schema, `example` a value that the description shows."""

    name: str
    place: Place = "query"
    kind: str = "string"
    is_required: bool = False
    choices: tuple[str, ...] = ()
    example: str = ""
    text: str = ""

    def schema(self) -> dict[str, object]:
        """Return the parameter as a property of a JSON schema."""
        made: dict[str, object] = {"type": self.kind}
        if self.choices:
            made["enum"] = list(self.choices)
        said = [self.text[:100], f"such as {self.example}" if self.example else ""]
        if any(said):
            made["description"] = ", ".join(filter(None, said))
        return made


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that reads: `section` are the words about it, `replies` and `errors` examples of bodies.

    `path` is a template. A request that would change something is none: effects go through a sink.
    """

    name: str
    path: str
    purpose: str = ""
    parameters: tuple[Parameter, ...] = ()
    replies: tuple[Json, ...] = ()
    errors: tuple[Json, ...] = ()
    section: str = ""

    @property
    def required_names(self) -> list[str]:
        """Return the names of the parameters without which it cannot be asked."""
        return [each.name for each in self.parameters if each.is_required]

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of its arguments: one flat object."""
        properties = {each.name: each.schema() for each in self.parameters}
        return {
            "type": "object", "properties": properties, "required": self.required_names, "additionalProperties": False,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """The content of a description: its operations, and the header in which it wants a secret ("" for none)."""

    operations: tuple[Operation, ...] = ()
    secret_header: str = ""

    def find(self, name: str) -> Operation | None:
        """Return the operation that a selector names, or whose method it is; None if there is none."""
        plain = name.removeprefix(REQUEST).removeprefix(READING)
        return next((each for each in self.operations if each.name == plain), None)


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that was checked: `path` begins with `/` and is not encoded yet."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Return path and query as they stand in the first line of a request."""
        pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in self.query.items())
        return quote(self.path, safe="/@:,+;=") + (f"?{pairs}" if pairs else "")


def signature_of(selector: str) -> str:
    """Return the signature of one of an operation's methods.

    >>> signature_of("request_of_forecast_"), signature_of("reading_of_forecast_")
    ('request_of_forecast_(self, args)', 'reading_of_forecast_(self, status, headers, body)')
    """
    return f"{selector}(self, args)" if selector.startswith(REQUEST) else f"{selector}(self, status, headers, body)"


def variables(template: str) -> list[str]:
    """Return the names in a path template, in their order."""
    return _VARIABLE.findall(template)


def matches(template: str, path: str) -> bool:
    """Test if a path fits a template: each name stands for one segment, or a part of one.

    >>> matches("/v1/{city}/days", "/v1/Bad Ems/days"), matches("/v1/{city}", "/v1/a/b"), matches("/v1/{c}", "/v1/..")
    (True, False, False)
    """
    parts = _VARIABLE.split(template)
    pattern = "".join(re.escape(part) if at % 2 == 0 else "([^/]+)" for at, part in enumerate(parts))
    return re.fullmatch(pattern, path) is not None and not any(each in (".", "..") for each in path.split("/"))


def check_request(operation: Operation, made: object) -> ApiRequest | str:
    """Return a method's request once it is checked against its operation, or what is wrong with it, in one line."""
    if not isinstance(made, dict) or not {"method", "path"} <= made.keys() <= {"method", "path", "query", "body"}:
        return "it must return {method, path, query, body}, and nothing else"
    path, query = made["path"], made.get("query") or {}
    if made["method"] != "GET" or made.get("body") is not None:
        return "the method must be GET, without a body"
    if not isinstance(path, str) or len(path) > _MOST_PATH or _CONTROL.search(path) or "\\" in path:
        return "the path is no plain text"
    if not matches(operation.path, path):
        return f"the path {path[:80]!r} does not fit {operation.path}"
    return _query_fault(operation, query) or ApiRequest(path, dict(query))


def _query_fault(operation: Operation, query: object) -> str:
    """Return what is wrong with a query; "" for nothing."""
    if not isinstance(query, dict):
        return "the query must be a dict"
    known = {each.name for each in operation.parameters if each.place == "query"}
    for name, value in query.items():
        if name not in known:
            return f"the description has no parameter {str(name)[:40]!r}: it has {', '.join(sorted(known)) or 'none'}"
        if not isinstance(value, str) or len(value) > _MOST_VALUE or _CONTROL.search(value):
            return f"the parameter {name!r} is no plain text"
    missing = [each for each in operation.required_names if each in known and each not in query]
    return f"the parameter {missing[0]!r} is missing" if missing else ""
