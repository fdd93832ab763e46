"""The containers in an object's slots, plain and persistent, and how a clone copies them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from BTrees.Length import Length
from persistent import Persistent
from persistent.list import PersistentList
from persistent.mapping import PersistentMapping

from batos.protocol.errors import ObjectError

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
