"""The three kinds of behaviour that a slot can hold: Method, Intent and Primitive, each a type of its own."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from persistent import Persistent

from batos.protocol.errors import ObjectError

IntentKind = Literal["facet", "protocol", "method", "tool", "prototype"]


def _as_dict(record: Method | Intent) -> dict[str, object]:
    return {each.name: _deep_copy(getattr(record, each.name)) for each in fields(record)}


def _deep_copy(value: object) -> Any:
    try:
        return deepcopy(value)
    except RecursionError:
        raise ObjectError("a method or an intent holds data, and this is nested too deep to be any") from None


@dataclass(eq=False, repr=False)
class Method(Persistent):
    """Source code that is behaviour, with the record of how it was made. Objects share a method by reference.

    `provenance` names mission, model digest, prompt digest and time. `verdict` is the guardian's, empty before there is
    one. `checks` are the checks that the method passed, as data. `revision` counts from 1. The compiled form is cached
    in a `_v_` attribute and never stored.
    """

    selector: str
    source: str
    intent: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    verdict: dict[str, object] = field(default_factory=dict)
    checks: tuple[dict[str, object], ...] = ()
    revision: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name, as a deep copy."""
        return _as_dict(self)


@dataclass(eq=False, repr=False)
class Intent(Persistent):
    """Behaviour that is described and not written yet. Only a message to an intent may call a model or generate code.

    `text` says what the behaviour should do, `signature` how it is called, `examples` what it is tested with. `when`
    is the condition under which a protocol applies. `makes` says that a tool is made instead of an answer. `given` is
    what the model is told beside the answer: the last audit, or the cost of the thought. `metric` is the part of the
    Composite Entropy Metric that a protocol raises, and `by_meaning` says that the meaning of the question chooses
    it. `line` is the intent in one sentence, for small models. An intent of kind `prototype` stands for an object
    that does not exist yet, and its text is that object's API. Intents are made by genesis, the codex, the `method`
    verbs and protocols that make tools. Each field is written once: a changed wish is a new Intent.
    """

    text: str
    signature: str = ""
    examples: tuple[Any, ...] = ()
    may_learn: bool = False
    name: str = ""
    inspiration: str = ""
    kind: IntentKind = "method"
    when: dict[str, object] | None = None
    makes: Literal["", "tool"] = ""
    given: Literal["", "audit", "cost", "counters", "ledger", "cem"] = ""
    line: str = ""
    metric: str = ""
    by_meaning: bool = False

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_p_"):
            super().__setattr__(name, value)
            return
        self._p_activate()  # the state of a ghost looks empty, so a write would pass for the first
        if name not in _INTENT_FIELDS or name in vars(self):
            raise ObjectError(f"an intent is never changed: {name!r} is not writable; make a new Intent")
        super().__setattr__(name, tuple(_deep_copy(value)) if name == "examples" else _deep_copy(value))

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_p_"):
            raise ObjectError(f"an intent is never changed: {name!r} is not deletable")
        super().__delattr__(name)

    def as_dict(self) -> dict[str, Any]:
        """Return every field by name, as a deep copy."""
        return _as_dict(self)


_INTENT_FIELDS = frozenset(each.name for each in fields(Intent))


@dataclass(frozen=True, slots=True)
class Primitive:
    """A kernel function by name; equal names are equal, and the name is all that is stored."""

    name: str

    def __reduce__(self) -> tuple[type[Primitive], tuple[str]]:
        return Primitive, (self.name,)


Behaviour = (Method, Intent, Primitive)
