"""The releaser: does the effects of the outbox one after another, each attempt between two commits, at its own node.

An attempt is begun by a commit (state `releasing`), then the sink does the effect, then a commit records what came of
it. A process that ends in between leaves an effect `releasing`, and so does an attempt whose answer was lost. The next
attempt decides by the class of the sink: a keyed one is asked again with the same key, a queryable one is read back,
and of a blind one a person is asked.

An effect that may have happened never becomes `staged` or `failed` again, unless its target was read and it surely did
not: it stays `releasing` while it is tried, and is `unknown` when it is given up.

`hold` is awaited at each point of an effect's life (`Point`) with the effect's id. The product waits for nothing there;
a bench that kills processes holds one open.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, cast

import structlog

from batos.agency.granting import open_sink
from batos.agency.records import effect_records
from batos.agency.records.effect_records import EffectData, EffectState
from batos.agency.sinks import EffectDelayed, EffectRefused, Outcome, Sink, SinkFactory, class_of
from batos.concurrency.jobs import Job
from batos.events import Events
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.protocol.errors import BatosError, ImageError, message_of
from batos.protocol.event_payloads import (
    EFFECT_FAILED,
    EFFECT_RELEASED,
    EFFECT_UNKNOWN,
    EffectFailed,
    EffectReleased,
    EffectUnknown,
)


def is_released_here(image: LivingImage, root: Root, name: str) -> bool:
    """Test if this node releases an effect: it publishes, and the effect belongs to no other machine.

    For an effect of its own machine a node takes the part of the publisher from one that is on another.
    """
    here, own = image.publishing.is_here, image.publishing.host
    effect = root[roots.EFFECTS].get(name)
    machine = (
        None
        if own is None or effect is None
        else effect_records.machine_of(effect_records.find_capability_of(root, effect))
    )
    if own is None or machine is None:
        return here
    return machine == own.id and (here or not image.publishing.is_near(root))


def is_waited_for(image: LivingImage) -> bool:
    """Test if effects wait for this machine while a node of another one publishes."""
    if image.publishing.is_here:
        return False
    with image.snapshot() as root:
        return any(is_released_here(image, root, name) for name in effect_records.list_waiting(root))


_log = structlog.get_logger("batos.effect")

#: Attempts of an effect whose target is not there, and the seconds between them.
MOST_ATTEMPTS: Final = 5
PAUSES: Final = (0.5, 2.0, 5.0, 10.0)
#: Seconds between two looks whether effects wait for this machine while a node of another one publishes.
_LOOK: Final = 1.0
#: Seconds after which a process that ends begins no more effects.
LAST: Final = 5.0
_AGAIN: Final = "It is tried again."

#: A point of an effect's life: it stands in the outbox, is begun, is done and not recorded, is recorded.
Point: TypeAlias = Literal["staged", "begun", "done", "recorded"]
#: Waits at a point.
Hold: TypeAlias = Callable[[Point, str], Awaitable[None]]


async def go_on(point: Point, effect: str) -> None:
    """Wait for nothing."""


@dataclass(frozen=True, slots=True)
class ReleaserParts:
    """The parts of a releaser: where effects stand, what is told, and what does them."""

    image: LivingImage
    events: Events
    clock: Callable[[], datetime]
    sinks: SinkFactory = open_sink
    hold: Hold = go_on
    pauses: tuple[float, ...] = PAUSES
    last: float = LAST


class Releaser:
    """Releases the effects of one image, at the node that publishes: each effect has one releaser.

    An effect whose grant is bound to a machine waits until a node of that machine publishes.
    """

    def __init__(self, parts: ReleaserParts) -> None:
        self._parts = parts
        self._image = parts.image
        self._releasing = asyncio.Lock()
        self.job = Job("effects", self._work, ends_itself=True, runs_last=True)
        self.watch = Job("effects elsewhere", self._watch, ends_itself=True, retry=(_LOOK, 60.0))
        self._image.signals.answered.call(lambda *_mission: self.job.wake())
        self._image.signals.published.call(self.job.wake)
        self._image.signals.approved.call(self.job.wake)
        self._leaving = asyncio.Event()
        #: When this process begins no more effects, once it ends.
        self._end = math.inf

    def keep(self) -> None:
        """Release what waits, and from now on what waits for this machine while a node of another one publishes."""
        self.job.start()
        self.job.wake()
        if self._image.lease is not None:
            self.watch.start()
            self.watch.wake(_LOOK)

    async def _watch(self) -> float | None:
        if self._image.refusing is not None:
            return None
        if await asyncio.to_thread(is_waited_for, self._image):
            self.job.wake()
        return _LOOK

    async def _work(self) -> None:
        """Release what waits; what is delayed is tried again after each pause, whatever wakes this meanwhile."""
        pauses = iter(self._parts.pauses)
        while await self.release_all():
            pause = next(pauses, None)
            if pause is None or await self._leaves_within(pause):
                break

    async def _leaves_within(self, seconds: float) -> bool:
        """Wait between two attempts; return whether the process leaves meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), seconds)
        return self._leaving.is_set()

    async def release_all(self) -> bool:
        """Release all effects that wait, in their order; return whether some of them are to be tried again later."""
        async with self._releasing:
            if self._image.refusing is not None:
                return False
            with self._image.snapshot() as root:
                names = effect_records.list_waiting(root)
            delayed = [await self._release_here(name) for name in names]
            return any(delayed)

    async def _release_here(self, name: str) -> bool:
        """Release an effect if it is this node's; between two of them another node may have the publisher's part."""
        await self._image.publishing.give_way()
        if self._is_over():
            return False
        with self._image.snapshot() as root:
            is_own = is_released_here(self._image, root, name)
        if not is_own:
            return not self._image.publishing.is_here  # soon it may be again
        async with self._image.publishing.here(self._is_over) as is_here:  # no other node begins an effect meanwhile
            return is_here and await self._release_alone(name)

    def _is_over(self) -> bool:
        """Test if this process begins no more effects."""
        return asyncio.get_running_loop().time() >= self._end

    async def aclose(self) -> None:
        """Release what still waits, once and for some seconds: what is not begun by then waits for the next process."""
        self._leaving.set()
        await self.watch.stop()
        self._end = asyncio.get_running_loop().time() + self._parts.last
        await self.job.stop()

    # -- one effect

    async def _release_alone(self, name: str) -> bool:
        """Bring one effect to its end; an error about it keeps none of those behind it waiting.

        Raises: ImageError: this node writes no records now.
        """
        try:
            return await self._release(name)
        except ImageError:
            raise
        except Exception as error:  # it stands in the outbox as the last commit left it
            _log.warning("staged_effects.not_released", effect=name, reason=_describe(error))
            return True

    async def _release(self, name: str) -> bool:
        """Bring one effect to its end; return whether it is delayed."""
        with self._image.snapshot() as root:
            effect = cast("EffectData", dict(effect_records.find_effect(root, name)))
            if effect["state"] not in effect_records.WAITING:  # withdrawn, or released by another node, since the list
                return False
            if effect["effect"] != name:
                _log.warning("staged_effects.not_released", effect=name, reason=f"it calls itself {effect['effect']}")
                return False
            effect["may_have_happened"] = effect["state"] == "releasing"
            sink = self._find_sink(root, effect)
        await self._parts.hold("staged", name)
        if isinstance(sink, EffectRefused):
            return await self._record_fault(effect, sink)
        if isinstance(sink, EffectDelayed):
            return await self._record_fault(_count(effect), sink)
        if effect["state"] == "releasing":
            return await self._recover(effect, sink)
        return await self._attempt(effect, sink)

    def _find_sink(self, root: Root, effect: EffectData) -> Sink | EffectRefused | EffectDelayed:
        """Return what does an effect, or why nothing does."""
        if not effect["payload"]:
            return EffectRefused("its words were erased", remedy="Nothing brings them back.")
        capability = effect_records.find_capability_of(root, effect)
        if capability is None:
            what = f"the grant {effect['grant']!r} is revoked"
            return EffectRefused(what, remedy="`batos grants list` lists grants.")
        try:
            return self._parts.sinks(capability)
        except Exception as error:  # it is recorded, where a person sees it
            return _as_fault(effect, error)

    async def _attempt(self, effect: EffectData, sink: Sink) -> bool:
        """Try an effect; return whether it is delayed."""
        effect = _count(effect)
        try:
            effect["before"] = await asyncio.to_thread(sink.prepare, effect)
        except Exception as error:  # it is recorded, where a person sees it
            return await self._record_fault(effect, _as_fault(effect, error))
        if not await self._write(effect, "releasing", None):
            return False
        effect["state"] = "releasing"
        await self._parts.hold("begun", effect["effect"])
        try:
            outcome = await asyncio.to_thread(self._let_happen, sink, effect)
        except (EffectRefused, EffectDelayed) as error:
            return await self._record_fault(effect, error)
        except Exception as error:  # whether it happened is what nobody knows
            return await self._resolve(effect, sink, message_of(error))
        await self._parts.hold("done", effect["effect"])
        return await self._record_release(effect, outcome)

    def _let_happen(self, sink: Sink, effect: EffectData) -> Outcome:
        """Do an effect, unless this node was silent for so long since it began that another may do it now.

        The sink checks that once more right before it happens. A node that is stopped between that and the effect, for
        longer than its lease, does it all the same.
        """
        self._check_lease()
        return sink.release(effect, self._check_lease)

    def _check_lease(self) -> None:
        """Check that no other node can do this one's effects by now. Raises: EffectDelayed: one may."""
        try:
            self._image.publishing.check_fresh()
        except ImageError as error:
            raise EffectDelayed(error.message, remedy="The node that publishes now does it.") from error

    async def _recover(self, effect: EffectData, sink: Sink) -> bool:
        """Decide about an effect that an earlier attempt began and that may have happened, by the class of its sink."""
        why = "an attempt was begun and has no outcome"
        if class_of(sink) == "blind":
            return await self._record_unknown(effect, f"{why}, and its target cannot be asked")
        if class_of(sink) == "keyed":
            if effect["attempts"] >= MOST_ATTEMPTS:
                return await self._record_unknown(effect, f"{why}, for the {MOST_ATTEMPTS}th time")
            return await self._attempt(effect, sink)
        try:
            found = await self._read_back(effect, sink)
        except EffectDelayed as error:
            return await self._record_fault(_count(effect), error)
        if found is not None:
            return await self._record_release(effect, found)
        return await self._attempt({**effect, "may_have_happened": False}, sink)

    async def _resolve(self, effect: EffectData, sink: Sink, why: str) -> bool:
        """Find out what came of an attempt that ended in an error, by the class of the sink."""
        may_have: EffectData = {**effect, "may_have_happened": True}
        surely_not: EffectData = {**effect, "may_have_happened": False}
        if class_of(sink) == "blind":
            return await self._record_unknown(effect, f"{why}; its target cannot be asked whether it happened")
        if class_of(sink) == "keyed":
            return await self._record_fault(may_have, EffectDelayed(why, remedy=_AGAIN))
        try:
            found = await self._read_back(effect, sink)
        except EffectDelayed as error:
            return await self._record_fault(may_have, EffectDelayed(f"{why}; {error.message}", remedy=error.remedy))
        if found is None:
            return await self._record_fault(surely_not, EffectDelayed(why, remedy=_AGAIN))
        return await self._record_release(effect, found)

    async def _read_back(self, effect: EffectData, sink: Sink) -> Outcome | None:
        """Return what came of an attempt; None: it surely did not happen. Raises: EffectDelayed: nobody knows now."""
        try:
            return await asyncio.to_thread(sink.find, effect)
        except EffectDelayed:
            raise
        except Exception as error:  # it can be read back later
            raise EffectDelayed(f"reading it back failed: {_describe(error)}", remedy=_AGAIN) from error

    async def _record_fault(self, effect: EffectData, error: EffectRefused | EffectDelayed) -> bool:
        """Record an attempt in which nothing happened; return whether there will be another one."""
        outcome = {"error": (why := error.as_dict())}
        if isinstance(error, EffectDelayed) and effect["attempts"] < MOST_ATTEMPTS:
            return await self._write(effect, "releasing" if effect["may_have_happened"] else "staged", outcome)
        if effect["may_have_happened"]:
            return await self._record_unknown(effect, f"{error.message}; an attempt that was begun may have happened")
        told = EffectFailed(mission=effect["mission"], effect=effect["effect"], grant=effect["grant"], reason=why)
        if await self._write(effect, "failed", outcome):
            self._parts.events.emit(EFFECT_FAILED, told)
        return False

    async def _record_release(self, effect: EffectData, came: Outcome) -> bool:
        """Record that an effect happened."""
        told = EffectReleased(mission=effect["mission"], effect=effect["effect"], grant=effect["grant"], outcome=came)
        if await self._write(effect, "released", came):
            self._parts.events.emit(EFFECT_RELEASED, told)
        return False

    async def _record_unknown(self, effect: EffectData, reason: str) -> bool:
        """Record that nobody knows whether an effect happened: a person is asked."""
        told = EffectUnknown(mission=effect["mission"], effect=effect["effect"], grant=effect["grant"], reason=reason)
        if await self._write(effect, "unknown", {"reason": reason}):
            self._parts.events.emit(EFFECT_UNKNOWN, told)
        return False

    async def _write(self, effect: EffectData, state: EffectState, outcome: Mapping[str, object] | None) -> bool:
        """Record that an attempt begins, or what came of it; False if the effect was withdrawn meanwhile."""
        at = iso(self._parts.clock())

        def change(root: Root) -> bool:
            found = effect_records.find_effect(root, effect["effect"])
            if found["state"] != effect["state"]:
                return False
            found["before"], found["attempts"] = effect["before"], effect["attempts"]
            effect_records.become(root, found, state, at, outcome)
            return True

        is_written = await self._image.shared.apply(change)
        if is_written and state not in effect_records.WAITING:
            await self._parts.hold("recorded", effect["effect"])
        return is_written


def _count(effect: EffectData) -> EffectData:
    """Return an effect with one more attempt."""
    return {**effect, "attempts": effect["attempts"] + 1}


def _describe(error: Exception) -> str:
    return error.message if isinstance(error, BatosError) else f"{type(error).__name__}: {error}"


def _as_fault(effect: EffectData, error: Exception) -> EffectRefused | EffectDelayed:
    """Return the fault that an error before an attempt is: one that nobody expected may pass, unless it says not."""
    if isinstance(error, EffectRefused | EffectDelayed):
        return error
    _log.warning("staged_effects.not_released", effect=effect["effect"], reason=_describe(error))
    if isinstance(error, BatosError) and not error.retry:
        return EffectRefused(error.message, remedy=error.remedy)
    return EffectDelayed(_describe(error), remedy=_AGAIN)
