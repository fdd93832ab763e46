"""Sinks do effects in the world: their protocol, and how attempts fail.

A sink works in a thread and may block. Its three functions are called in this order for an attempt; after each of them
the releaser writes a commit:

- `prepare` reads what is needed to recognise the effect afterwards, and changes nothing;
- `release` does the effect; right before that it calls `check`, which raises where this process may not do it any more;
- `find` is asked by a releaser that finds an attempt which was begun and has no outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from batos.agency.records.effect_records import EffectData, SinkClass
from batos.objects.prototype import UvmObject
from batos.protocol.errors import BatosError

#: The outcome of an effect, as plain data.
Outcome: TypeAlias = dict[str, object]
#: Raises EffectDelayed where this process may not do the effect any more.
Check: TypeAlias = Callable[[], None]


def check_nothing() -> None:
    """Let an effect happen."""


class EffectRefused(BatosError):
    """An effect that did not happen and will not: its target does not allow it."""


class EffectDelayed(BatosError):
    """An attempt in which nothing happened, and another may go well: its target is not there, or cannot be read, now.

    The releaser finds out if an earlier attempt happened.
    """

    retry = True


class Sink(Protocol):
    """A target of effects.

    A keyed sink is told the key, and does an effect of one key once however often it is asked. A queryable one can be
    read back. Of a blind one nobody can know; one that declares no class is taken for blind.
    """

    sink: SinkClass

    def prepare(self, effect: EffectData) -> dict[str, object]:
        """Return what `find` needs to recognise the effect, as plain data. Raises: EffectRefused, EffectDelayed."""
        ...

    def release(self, effect: EffectData, check: Check = check_nothing) -> Outcome:
        """Do the effect and return what came of it; `check` is called right before it happens, as late as can be.

        Raises: EffectRefused, EffectDelayed: this attempt changed nothing. After any other error nobody knows.
        """
        ...

    def find(self, effect: EffectData) -> Outcome | None:
        """Return what came of an effect that was begun; None: its target was read, and it surely did not happen.

        Only a queryable sink is asked. Raises: EffectDelayed: the target cannot be read now.
        """
        ...


#: Makes the sink of a capability.
SinkFactory: TypeAlias = Callable[[UvmObject], Sink]


def class_of(sink: Sink) -> SinkClass:
    """Return the class that a sink declares; `blind` for one that declares none, since it cannot be taken back."""
    declared: SinkClass = getattr(sink, "sink", "blind")
    return declared if declared in ("keyed", "queryable") else "blind"
