"""What behaviour is made of: a Method, an Intent and a Primitive are slot values of their own, never strings."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from persistent import Persistent

from batos.errors import ObjectError

IntentKind = Literal["facet", "protocol", "method", "tool", "prototype"]


def _as_dict(record: Method | Intent) -> dict[str, Any]:
    return {each.name: _copied(getattr(record, each.name)) for each in fields(record)}


def _copied(value: Any) -> Any:
    try:
        return deepcopy(value)
    except RecursionError:
        raise ObjectError("a method or an intent holds data, and this is nested too deep to be any") from None


@dataclass(eq=False, repr=False)
class Method(Persistent):
    """Source that became behaviour, with the record of how it was made; a record of its own, shared by reference.

    `provenance` names mission, model digest, prompt digest and time; `verdict` is the guardian's and empty
    until there is one; `checks` are what it passed, as data; `revision` counts from 1. What is compiled from
    it is cached in a `_v_` attribute and never stored.
    """

    selector: str
    source: str
    intent: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)
    verdict: dict[str, Any] = field(default_factory=dict)
    checks: tuple[dict[str, Any], ...] = ()
    revision: int = 1

    def as_dict(self) -> dict[str, Any]:
        """Every field by name, copied."""
        return _as_dict(self)


@dataclass(eq=False, repr=False)
class Intent(Persistent):
    """A declared wish for behaviour: the only thing a message to which may generate; each field is written once.

    `text` is what the method is to do, `signature` how it is called, `examples` what it is checked with, `when` the
    condition under which a protocol applies, `makes` what it makes instead of an answer, `given` what it is told beside
    the answer (the last audit, or what the thought cost). One of kind `prototype` stands for an object that does not
    exist yet, and its text is that object's API. Only genesis, the codex, the `method` verbs and a protocol that makes
    tools make one. `examples` and `when` are copied in; a changed wish is a new Intent.
    """

    text: str
    signature: str = ""
    examples: tuple[Any, ...] = ()
    may_learn: bool = False
    name: str = ""
    inspiration: str = ""
    kind: IntentKind = "method"
    when: dict[str, Any] | None = None
    makes: Literal["", "tool"] = ""
    given: Literal["", "audit", "cost"] = ""

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_p_"):
            super().__setattr__(name, value)
            return
        self._p_activate()  # the state of a ghost looks empty, so a write would pass for the first
        if name not in _INTENT_FIELDS or name in vars(self):
            raise ObjectError(f"an intent is never changed: {name!r} is not writable; make a new Intent")
        super().__setattr__(name, tuple(_copied(value)) if name == "examples" else _copied(value))

    def __delattr__(self, name: str) -> None:
        if not name.startswith("_p_"):
            raise ObjectError(f"an intent is never changed: {name!r} is not deletable")
        super().__delattr__(name)

    def as_dict(self) -> dict[str, Any]:
        """Every field by name, copied."""
        return _as_dict(self)


_INTENT_FIELDS = frozenset(each.name for each in fields(Intent))


@dataclass(frozen=True, slots=True)
class Primitive:
    """A kernel function by name; equal names are equal, and the name is all that is stored."""

    name: str

    def __reduce__(self) -> tuple[type[Primitive], tuple[str]]:
        return Primitive, (self.name,)


Behaviour = (Method, Intent, Primitive)
