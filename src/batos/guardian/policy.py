"""The policy as data: what generated methods may use; the coder's dialect; and the verdict of an audit."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, cast

from batos.protocol.errors import ConfigError
from batos.protocol.method_documents import GuardianDocument, GuardianReach, SlotUseDocument, SourceFaultDocument

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
        """Compute the derived fields once. Raises: ConfigError: a pattern is not a regular expression."""
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
    """Read a policy from TOML text. Raises: ConfigError: a field is missing or wrong; the error names the first."""
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


_RULES = """
A method is one function, `def` or `async def`, whose first parameter is `self`; imports stand before it, nothing else \
does. No decorators, no classes, no `global`, no `with`, no comments needed; after `del name` a variable is None. \
`self` is the object: `self.name` reads its slot `name`, `self.name = value` writes it, `del self.name` removes it. \
Slots hold plain data: None, bool, int, float, str, list, dict with str keys. The method returns plain data.

The covenant: a method that changes a slot (also in place, as `self.items.append(x)` does) ends with \
`self._p_changed = True`, on every path that returns after a change. After the marker may come only a `return` of an \
expression that neither changes nor sends. A method that changes nothing has no marker.

Messages: `await self.selector_(argument)` in an `async def` sends a message to the object itself. \
`await self.infer_(prompt)` asks the model and answers a text; \
`await self.recall_(query, 2000)` answers a list of texts; \
`await self.embed_(texts)` answers a list of vectors; `await self.index_document_(title, text)` adds to memory; \
`self.log_("info", text)` writes a line of the log. What was changed before any other message is marked before it.

Names: none begins with an underscore but the marker and a lone `_`, and none is spelled in look-alike letters. No \
`exec`, `eval`, `open`, no files, no network, no clock but `datetime.now()`. \
Call `getattr`, `hasattr` and `setattr` with a literal name, and `setattr` only on `self`.
"""


def dialect_text(policy: GuardianPolicy = SHIPPED) -> str:
    """Return the dialect under a policy as text, short enough for a small context window."""
    return "\n\n".join((_RULES.strip(), *_lists(policy)))


def dialect_document(policy: GuardianPolicy = SHIPPED) -> str:
    """Return the whole dialect as Markdown: the text of the coder's prompt, and every name and number of the policy."""
    parts = [
        f"Policy `{policy.version}`. The coder's prompt has:",
        "\n".join(f"> {line}".rstrip() for line in dialect_text(policy).splitlines()),
        "### Syntax",
        f"Statements: {_code(policy.statements)}.",
        f"Expressions: {_code(policy.expressions)}.",
        f"Parts of them: {_code(policy.parts)}.",
        f"A `case` may name these classes, with one pattern in it: {_code(policy.pattern_classes)}.",
        "### Names",
        f"Builtins: {_code(policy.builtins)}. Only called, never passed on: {_code(policy.called_only)}.",
        f"Refused in every position of a name: matches of `{policy.protected}`, and {_code(policy.introspection)}.",
        f"Selectors that no method sends: matches of `{policy.kernel_selectors}`.",
        f"Messages before which a change need not be marked: {_code(policy.primitives)}.",
        f"Words of annotations, which are never evaluated: {_code(policy.annotations)}.",
        "### Modules",
        *(f"- `{module}`: {_code(names)}" for module, names in sorted(policy.modules.items())),
        "### Methods of plain values",
        *(f"- {kind}: {_code(names)}" for kind, names in sorted(policy.methods.items())),
        f"Of these and similar methods, the following change their object: {_code(policy.mutators)}.",
        *(f"Used on a type: {_code(f'{kind}.{name}' for name in names)}." for kind, names in policy.unbound.items()),
        "### Bounds",
        *(f"- {name}: {value}" for name, value in sorted(asdict(policy.bounds).items())),
    ]
    return "".join(_space_paragraphs(parts))


def _space_paragraphs(parts: list[str]) -> Iterator[str]:
    """Yield paragraphs with a blank line between them, except between the items of a list."""
    for index, part in enumerate(parts):
        listed = part.startswith("- ") and index + 1 < len(parts) and parts[index + 1].startswith("- ")
        yield part + ("\n" if listed or index + 1 == len(parts) else "\n\n")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _lists(policy: GuardianPolicy) -> Iterator[str]:
    yield f"Functions: {_dialect_words(policy.functions)}."
    yield f"Exceptions: {_dialect_words(policy.exceptions)}."
    yield f"Modules: {', '.join(sorted(policy.modules))}."
    yield f"Slots that a method reads and never changes: {_dialect_words(policy.kernel_slots)}."
    bounds = policy.bounds
    yield f"At most {bounds.lines} lines, nothing nested deeper than a page can show."


def _dialect_words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


#: Rules whose breach means that the slots a method uses cannot be listed: no cell may run such a source.
UNLISTABLE: Final = frozenset({"text", "bounds", "parse", "shape", "receiver", "computed-name", "audit"})


@dataclass(frozen=True, slots=True, order=True)
class SourceFault:
    """A fault of a source: line (from 1) and column (from 0), both 0 if it has no place."""

    line: int
    column: int
    rule: str
    why: str
    remedy: str

    def as_dict(self) -> SourceFaultDocument:
        """Return every field by name."""
        return SourceFaultDocument(line=self.line, column=self.column, rule=self.rule, why=self.why, remedy=self.remedy)

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column} [{self.rule}]: {self.why}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class SlotUse:
    """The names of the receiver's slots that a source uses, exactly: what cannot be listed is a fault.

    `reads` and `writes` are loads and stores of `self.<name>`, `deletes` what is deleted; `mutates` are slots whose
    list or dict may be changed in place, through any alias (never too few, sometimes too many).
    """

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    mutates: frozenset[str] = frozenset()
    deletes: frozenset[str] = frozenset()

    def as_dict(self) -> SlotUseDocument:
        """Return every field as a sorted list."""
        return {
            "reads": sorted(self.reads),
            "writes": sorted(self.writes),
            "mutates": sorted(self.mutates),
            "deletes": sorted(self.deletes),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The guardian's result for one source under one policy: plain data, equal for equal input.

    `policy` is the policy's name and the digest of its content, `digest` the SHA-256 of the source's UTF-8 bytes (hex),
    `parameters` the parameter list as Python text, `sends` the selectors that the source sends to any object.
    `capabilities` are the grants and the made objects that it reaches for.
    """

    accepted: bool
    faults: tuple[SourceFault, ...]
    policy: str
    digest: str
    selector: str = ""
    parameters: str = ""
    is_async: bool = False
    slots: SlotUse = field(default_factory=SlotUse)
    sends: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()

    @property
    def listable(self) -> bool:
        """Test if `slots` lists everything that the source uses, whatever its other faults are."""
        return not any(fault.rule in UNLISTABLE for fault in self.faults)

    def as_dict(self) -> GuardianDocument:
        """Return the verdict as data that JSON can hold."""
        reaches: GuardianReach = {"capabilities": sorted(self.capabilities)} if self.capabilities else {}
        return {
            **reaches,
            "accepted": self.accepted,
            "faults": [fault.as_dict() for fault in self.faults],
            "policy": self.policy,
            "digest": self.digest,
            "selector": self.selector,
            "parameters": self.parameters,
            "is_async": self.is_async,
            "slots": self.slots.as_dict(),
            "sends": sorted(self.sends),
        }
