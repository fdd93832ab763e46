"""The policy as data: the syntax, names and sizes that generated methods may use, read from policy.toml."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast

from batos.protocol.errors import ConfigError

#: The policy that ships, as an operator reads it.
SHIPPED_FILE: Final = Path(__file__).with_name("policy.toml")


@dataclass(frozen=True, slots=True)
class SourceBounds:
    """Limits of a source's size, each positive and in the unit that policy.toml names."""

    bytes: int
    lines: int
    line_length: int
    brackets: int
    branches: int
    depth: int
    nodes: int
    integer_digits: int
    identifier_length: int
    steps: int


@dataclass(frozen=True, slots=True)
class GuardianPolicy:
    """Everything the guardian decides by; `version` is its name and the digest of its content."""

    name: str
    bounds: SourceBounds
    statements: frozenset[str]
    expressions: frozenset[str]
    parts: frozenset[str]
    pattern_classes: frozenset[str]
    protected: str
    kernel_slots: frozenset[str]
    marker: str
    receiver: str
    throwaway: str
    introspection: frozenset[str]
    kernel_selectors: str
    primitives: frozenset[str]
    functions: frozenset[str]
    exceptions: frozenset[str]
    called_only: frozenset[str]
    unbound: Mapping[str, frozenset[str]]
    modules: Mapping[str, frozenset[str]]
    annotations: frozenset[str]
    mutators: frozenset[str]
    methods: Mapping[str, frozenset[str]]
    version: str = field(init=False)
    #: Every name of a method of a plain value, the mutators among them.
    plain_methods: frozenset[str] = field(init=False, compare=False)
    nodes: frozenset[str] = field(init=False, compare=False)
    builtins: frozenset[str] = field(init=False, compare=False)
    protected_pattern: re.Pattern[str] = field(init=False, compare=False)
    kernel_pattern: re.Pattern[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Compute the derived fields once.

        Raises: ConfigError: a pattern is not a regular expression.
        """
        derived: dict[str, object] = {
            "plain_methods": self.mutators.union(*self.methods.values()),
            "nodes": self.statements | self.expressions | self.parts,
            "builtins": self.functions | self.exceptions,
        }
        for name in ("protected", "kernel_selectors"):
            try:
                derived[name.removesuffix("_selectors") + "_pattern"] = re.compile(getattr(self, name))
            except re.error as error:
                raise ConfigError(f"the policy's {name} is not a regular expression: {error}", field=name) from None
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        text = json.dumps(self.as_dict(), sort_keys=True, ensure_ascii=True)
        object.__setattr__(self, "version", f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:16]}")

    def as_dict(self) -> dict[str, Any]:
        """Return the policy as plain sorted data, over which its digest is computed."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self) if one.init}


def _plain(value: object) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in sorted(value.items())}
    return asdict(value) if isinstance(value, SourceBounds) else value


def _words(table: Mapping[str, object], section: str, name: str) -> frozenset[str]:
    value = table.get(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f"the policy's [{section}] {name} is not a list of texts", field=f"{section}.{name}")
    return frozenset(value)


def _text(table: Mapping[str, object], section: str, name: str) -> str:
    value = table.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"the policy's [{section}] {name} is no text", field=f"{section}.{name}")
    return value


def _bounds(table: Mapping[str, object]) -> SourceBounds:
    given = {one.name: table.get(one.name) for one in fields(SourceBounds)}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"the policy's [bounds] {name} is no positive whole number", field=f"bounds.{name}")
    return SourceBounds(**cast(dict[str, int], given))


def load(text: str) -> GuardianPolicy:
    """Read a policy from TOML text.

    Raises: ConfigError: a field is missing or wrong; the error names the first.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"the policy is not TOML: {error}", field="policy") from None
    table = {key: value if isinstance(value, dict) else {} for key, value in data.items()}
    syntax, names, builtins = table.get("syntax", {}), table.get("names", {}), table.get("builtins", {})
    methods, modules, unbound = table.get("methods", {}), table.get("modules", {}), table.get("unbound", {})
    return GuardianPolicy(
        name=_text(data, "", "name"),
        bounds=_bounds(table.get("bounds", {})),
        statements=_words(syntax, "syntax", "statements"),
        expressions=_words(syntax, "syntax", "expressions"),
        parts=_words(syntax, "syntax", "parts"),
        pattern_classes=_words(syntax, "syntax", "pattern_classes"),
        protected=_text(names, "names", "protected"),
        kernel_slots=_words(names, "names", "kernel_slots"),
        marker=_text(names, "names", "marker"),
        receiver=_text(names, "names", "receiver"),
        throwaway=_text(names, "names", "throwaway"),
        kernel_selectors=_text(names, "names", "kernel_selectors"),
        introspection=_words(names, "names", "introspection"),
        primitives=_words(names, "names", "primitives"),
        functions=_words(builtins, "builtins", "functions"),
        exceptions=_words(builtins, "builtins", "exceptions"),
        called_only=_words(builtins, "builtins", "called_only"),
        unbound={one: _words(unbound, "unbound", one) for one in unbound},
        modules={one: _words(modules, "modules", one) for one in modules},
        annotations=_words(table.get("annotations", {}), "annotations", "names"),
        mutators=_words(methods, "methods", "mutators"),
        methods={one: _words(methods, "methods", one) for one in methods if one != "mutators"},
    )


#: The policy that is used unless another is given.
SHIPPED: Final = load(SHIPPED_FILE.read_text(encoding="utf-8"))
