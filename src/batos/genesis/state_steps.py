"""The behaviour of the machine's working states as data: the kernel's named steps with their bounds, and their check.

A state's prototype holds its steps in a slot: an ordered tuple of (step, ((bound, value), ...)). The slot may be
redefined while the mind runs, and acts from the next mission on. No step is code: the kernel knows each by its name.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final, TypeAlias, TypeGuard, cast

from batos.genesis.codex.declarations import state_slot
from batos.memory import thresholds
from batos.objects.prototype import UvmObject, lookup
from batos.protocol.brief import Combine
from batos.protocol.errors import ObjectError

BoundValue: TypeAlias = int | str
Bounds: TypeAlias = tuple[tuple[str, BoundValue], ...]
Steps: TypeAlias = tuple[tuple[str, Bounds], ...]

#: The slot of a state's prototype that holds its steps.
STEPS: Final = "steps"
#: Letters of a refused value that an error shows.
_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class BoundRange:
    """The values that a bound of a step may have: whole numbers in a range, or the words of a closed list."""

    name: str
    default: BoundValue
    allowed: range | tuple[str, ...]
    what: str

    def allows(self, value: object) -> TypeGuard[BoundValue]:
        """Test if a value is of the bound's kind, and in its range or list; True is no number."""
        return type(value) is type(self.default) and value in self.allowed

    @property
    def choices(self) -> str:
        """Return what the bound takes, in words."""
        if isinstance(self.allowed, range):
            return f"{self.allowed.start} to {self.allowed.stop - 1}"
        return ", ".join(self.allowed)


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A step that the kernel knows; `after` names the steps of its state that come before it wherever they stand."""

    name: str
    what: str
    bounds: tuple[BoundRange, ...] = ()
    is_required: bool = False
    after: tuple[str, ...] = ()


def _read_bound(told: Any) -> BoundRange:
    least, *others = told["allowed"]
    allowed = range(least, others[0] + 1) if isinstance(least, int) else (least, *others)
    return BoundRange(told["name"], told.get("default", thresholds.FOCUS_USUAL), allowed, told["what"])


def _read_step(told: Any) -> KernelStep:
    bounds = tuple(map(_read_bound, told.get("bounds", ())))
    return KernelStep(told["name"], told["what"], bounds, "is_required" in told, tuple(told.get("after", ())))


#: The steps of each working state, in the order in which they are taken unless the state was redefined.
TABLE: Final[Mapping[str, tuple[KernelStep, ...]]] = {
    state: tuple(map(_read_step, steps))
    for state, steps in tomllib.loads(
        files(__package__).joinpath("state_steps.toml").read_text(encoding="utf-8")
    ).items()
}


def default_steps(state: str) -> Steps:
    """Return the steps of a working state as genesis declares them. Raises: ObjectError: it is no working state."""
    return tuple((each.name, _fill(each, {})) for each in _table_of(state))


def with_bound_value(steps: Steps, step: str, bound: str, value: BoundValue) -> Steps:
    """Return steps with another value of one bound, which is not checked. Raises: ObjectError: they lack the bound.

    >>> with_bound_value(default_steps("DECOMPOSING"), "recall_for_parts", "most", 5)[1]
    ('recall_for_parts', (('most', 5),))
    """
    if bound not in dict(dict(steps).get(step, ())):
        raise ObjectError(f"these steps have no {step}.{bound}", field=bound, remedy=_LISTED)
    return tuple(
        (name, tuple((each, value if (name, each) == (step, bound) else had) for each, had in bounds))
        for name, bounds in steps
    )


def without_step(steps: Steps, step: str) -> Steps:
    """Return steps without one of them, which may be a required one. Raises: ObjectError: they lack it.

    >>> [name for name, _ in without_step(default_steps("DECOMPOSING"), "divide")]
    ['recall_for_parts', 'compute']
    """
    if step not in dict(steps):
        raise ObjectError(f"these steps have no {step}", field=step, remedy=_LISTED)
    return tuple(each for each in steps if each[0] != step)


def check_steps(state: str, value: object) -> Steps:
    """Return the steps that a value means, with every bound: one that is not given has its default.

    Raises: ObjectError: a step or a bound that the state does not have, or twice; a required step is missing; a step
    stands before one that it comes after; a value that the bound does not allow.
    """
    table = {each.name: each for each in _table_of(state)}
    found: dict[str, Bounds] = {}
    for name, bounds in _pairs(state, value):
        if name not in table or name in found:
            raise _fault(state, f"{'twice ' if name in found else ''}the step {name!r:.{_SHOWN}}", _list_steps(state))
        found[name] = _check_bounds(state, table[name], bounds)
    for name, step in table.items():
        if step.is_required and name not in found:
            raise _fault(state, f"no step {name!r}", f"Add it: {state} does not work without it.")
    order = list(found)
    for name in order:
        late = [each for each in table[name].after if each in order[order.index(name) :]]
        if late:
            raise _fault(state, f"{name!r} before {late[0]!r}", f"Put {late[0]!r} before {name!r}.")
    return tuple(found.items())


def redefine(orchestrator: UvmObject, state: str, value: object) -> Steps:
    """Write other steps to a working state, which acts by them from the next mission on; return them.

    Raises: ObjectError: they are not sound (`check_steps`); nothing is written then.
    """
    steps = check_steps(state, value)
    setattr(getattr(orchestrator, state_slot(state)), STEPS, steps)
    return steps


def is_sound(state: str, value: object) -> bool:
    """Test if a value is steps of a working state."""
    try:
        check_steps(state, value)
    except ObjectError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class MachineSteps:
    """The steps of the working states, as one mission takes them."""

    steps: Mapping[str, Steps]

    def names(self, state: str) -> tuple[str, ...]:
        """Return the names of a state's steps, in order."""
        return tuple(name for name, _ in self.steps[state])

    def number(self, state: str, step: str, bound: str) -> int:
        """Return a bound that is a number, of a step that is taken."""
        return int(dict(dict(self.steps[state])[step])[bound])

    def word(self, state: str, step: str, bound: str) -> str:
        """Return a bound that is a word, of a step that is taken."""
        return str(dict(dict(self.steps[state])[step])[bound])

    @property
    def mode(self) -> Combine:
        """Return the way in which parts become one answer, where the brief has none."""
        return cast("Combine", self.word("SYNTHESIZING", "combine", "mode"))

    def redefined_states(self) -> dict[str, list[tuple[str, dict[str, BoundValue]]]]:
        """Return the steps of each state whose steps are not the declared ones, with their bounds."""
        return {
            state: [(name, dict(bounds)) for name, bounds in steps]
            for state, steps in self.steps.items()
            if steps != default_steps(state)
        }


def steps_of(orchestrator: UvmObject) -> MachineSteps:
    """Return the steps of the working states: the declared ones for a state without any, as in an image from before.

    Raises: ObjectError: the steps of a state are not sound.
    """
    found: dict[str, Steps] = {}
    for state in TABLE:
        prototype = lookup(orchestrator, state_slot(state))
        slot = lookup(prototype.value, STEPS) if prototype and isinstance(prototype.value, UvmObject) else None
        try:
            found[state] = default_steps(state) if slot is None else check_steps(state, slot.value)
        except ObjectError as fault:
            raise fault.advise("Run `batos genesis`: it puts the declared steps in their place.") from None
    return MachineSteps(found)


_LISTED: Final = "docs/design.md lists the steps of each state with their bounds."
_SHAPE: Final = "Give a list of pairs: a step's name, and a list of pairs of a bound's name and its value."


def _table_of(state: str) -> tuple[KernelStep, ...]:
    if state not in TABLE:
        raise ObjectError(f"{state!r:.{_SHOWN}} is no working state", remedy=f"Working states are {', '.join(TABLE)}.")
    return TABLE[state]


def _list_steps(state: str) -> str:
    return f"Steps of {state} are {', '.join(each.name for each in TABLE[state])}, each once."


def _fault(state: str, what: str, remedy: str) -> ObjectError:
    return ObjectError(f"the steps of {state} have {what}", field=f"{state}.{STEPS}", remedy=remedy)


def _pairs(state: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the pairs of a value that is to be steps or bounds. Raises: ObjectError: it is no list of such pairs."""
    for each in value if isinstance(value, list | tuple) else (value,):
        if not isinstance(each, list | tuple) or len(each) != 2 or not isinstance(each[0], str):
            raise _fault(state, f"{each!r:.{_SHOWN}}, which is no pair", _SHAPE)
        yield each[0], each[1]


def _check_bounds(state: str, step: KernelStep, value: object) -> Bounds:
    known = {each.name: each for each in step.bounds}
    found: dict[str, BoundValue] = {}
    for name, given in _pairs(state, value):
        if name not in known or name in found:
            listed = f"Bounds of {step.name} are {', '.join(known) or 'none'}, each once."
            raise _fault(
                state, f"{'twice ' if name in found else ''}the bound {name!r:.{_SHOWN}} of {step.name}", listed
            )
        if not known[name].allows(given):
            raise _fault(state, f"{step.name}.{name} = {given!r:.{_SHOWN}}", f"It takes {known[name].choices}.")
        found[name] = given
    return _fill(step, found)


def _fill(step: KernelStep, given: Mapping[str, BoundValue]) -> Bounds:
    return tuple((each.name, given.get(each.name, each.default)) for each in step.bounds)
