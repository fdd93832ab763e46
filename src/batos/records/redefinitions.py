"""Redefinitions: the lineage of each slot's value that was changed while running, so that every one can come back."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from batos.image import roots
from batos.image.roots import Root

#: The value of a slot as plain data; None: it has none.
Value: TypeAlias = str | int | float | bool | tuple[object, ...] | None

#: The number of the value that the codex declared.
DECLARED: Final = 0
#: The values of one slot that are kept: the declared one, and the newest others.
MOST: Final = 50


class ChangeOrigin(NamedTuple):
    """The origin of a change: who made it, when, why, and the trial that showed that it is better ("": none)."""

    by: str
    at: str
    why: str = ""
    trial: str = ""


class Redefinition(NamedTuple):
    """A value of a slot, with its number in the lineage and its origin."""

    number: int
    value: Value
    origin: ChangeOrigin


def list_values(root: Root, name: str) -> list[Redefinition]:
    """Return every kept value of a slot, the declared one first; none if it was never redefined."""
    kept = root.get(roots.REDEFINITIONS)  # an older moment of the image has none
    found = () if kept is None else kept.get(name, ())
    return [Redefinition(number, value, ChangeOrigin(*origin)) for number, value, origin in found]


def note(
    root: Root, name: str, former: Value, value: Value, origin: ChangeOrigin, declared: str = "codex"
) -> Redefinition:
    """Add a value to the lineage of a slot that had `former`.

    Where the codex (or who else has `declared` it) gave the slot another value since the last change, that is the
    declared one from now on.
    """
    before = list_values(root, name)
    if not before:
        before = [Redefinition(DECLARED, former, ChangeOrigin(declared, origin.at))]
    elif before[-1].value != former:
        before[0] = Redefinition(DECLARED, former, ChangeOrigin(declared, origin.at))
    made = Redefinition(before[-1].number + 1, value, origin)
    kept = (before[0], *(*before[1:], made)[-(MOST - 1) :])
    root[roots.REDEFINITIONS][name] = tuple((each.number, each.value, tuple(each.origin)) for each in kept)
    return made
