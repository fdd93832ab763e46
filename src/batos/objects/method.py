"""The kinds of behaviour that a slot can hold, and the containers in slots as a clone copies them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module
from typing import Any, Literal, TypeAlias

from BTrees.Length import Length
from persistent import Persistent
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

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


_Copy: TypeAlias = Callable[[Any], Any]
_Fill: TypeAlias = Callable[[Any, Any, _Copy], None]

#: The deepest nesting of containers: data has tens of levels, more is a chain of references.
DEEPEST = 100

_ATOMS = frozenset({str, int, float, bool, bytes, complex, type(None)})

#: Every BTree family by its keys and the kinds of value they come with (fs: two bytes to six).
_FAMILIES = {"O": "OIULQ", "I": "OIFU", "U": "OUFI", "L": "OLFQ", "Q": "OQFL", "f": "s"}


def copy_owned(value: Any, memo: dict[int, Any], depth: int = 0) -> Any:
    """Copy a slot's value: build every container in it anew and keep every reference.

    Copied are list, dict, set, tuple, PersistentMapping, PersistentList, Length and all BTrees, by exact type. Any
    other persistent object is a reference, and any other hashable value is taken for immutable. `memo` maps the `id` of
    a value to its copy: a container that stands in two places stays one container, and the caller can add replacements.
    `depth` counts the containers around the value.

    Raises: ObjectError: a mutable value of a type that cannot be copied, or containers nested more than `DEEPEST` deep.
    """
    kind = type(value)
    if kind in _ATOMS:
        return value
    if id(value) in memo:
        return memo[id(value)]
    if kind is tuple:
        return _tuple(value, memo, depth)
    if kind in _FILL:
        copy = _inside(memo, depth)
        memo[id(value)] = new = kind()
        _FILL[kind](new, value, copy)
        return new
    if isinstance(value, Persistent) or _is_immutable(value):
        return value
    raise ObjectError(f"a clone cannot copy a {kind.__name__}: keep lists, dicts, sets or BTrees in slots")


def _is_immutable(value: Any) -> bool:
    """Test if a value is hashed by value and not by identity, which promises that the value never changes."""
    return isinstance(value, Hashable) and type(value).__hash__ is not object.__hash__


def _inside(memo: dict[int, Any], depth: int) -> _Copy:
    """Return the function that copies what a container holds, one level deeper.

    Raises: ObjectError: the container is nested too deep already.
    """
    if depth >= DEEPEST:
        raise ObjectError(
            f"a clone cannot copy containers that are nested more than {DEEPEST} deep",
            remedy="Let objects refer to one another instead: a reference is not copied.",
        )
    return partial(copy_owned, memo=memo, depth=depth + 1)


def _tuple(value: tuple[Any, ...], memo: dict[int, Any], depth: int) -> Any:
    new = tuple(map(_inside(memo, depth), value))
    if all(a is b for a, b in zip(new, value, strict=True)):
        return value
    # A container inside may lead back here: then the copy that it refers to is the one.
    return memo.setdefault(id(value), new)


def _fill_mapping(new: Any, old: Any, copy: _Copy) -> None:
    for key, value in old.items():
        new[copy(key)] = copy(value)


def _fill_sequence(new: Any, old: Any, copy: _Copy) -> None:
    new.extend([copy(value) for value in old])


def _fill_set(new: Any, old: Any, copy: _Copy) -> None:
    new.update([copy(value) for value in old])


def _fill_length(new: Any, old: Any, copy: _Copy) -> None:
    new.set(copy(old.value))


def _fillers() -> dict[type, _Fill]:
    """Build the table that says, for each type of container, how a new one is filled from an old one."""
    fill: dict[type, _Fill] = {
        dict: _fill_mapping,
        PersistentMapping: _fill_mapping,
        list: _fill_sequence,
        PersistentList: _fill_sequence,
        set: _fill_set,
        Length: _fill_length,
    }
    for family in (key + value for key, values in _FAMILIES.items() for value in values):
        module = import_module(f"BTrees.{family}BTree")
        fill |= dict.fromkeys((module.BTree, module.Bucket), _fill_mapping)
        fill |= dict.fromkeys((module.TreeSet, module.Set), _fill_set)
    return fill


_FILL = _fillers()
