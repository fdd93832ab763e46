"""The receivers of a corpus of methods as hosts of the cell: what its harness describes, seen from the parent."""

from __future__ import annotations

import copy
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from batos.cell.cell import Cell, MethodCall
from batos.cell.program import Program
from batos.cell.values import MessageAnswer, RaisedError, Ref, Value, Writes

Meta = Mapping[str, Any]


@dataclass(eq=False)
class Thing:
    """An object of the corpus: slots, and methods that answer as scripted."""

    slots: dict[str, Any]
    methods: Meta
    replies: list[Any] = field(default_factory=list)


@dataclass
class World:
    """A receiver with the objects in its slots, everything that was sent, and whether a method marked its changes."""

    receiver: Thing
    plain: Callable[[Any], bool]  # the harness's word on what is plain data
    sent: list[str] = field(default_factory=list)
    bad_args: int = 0
    changed: bool = False

    @classmethod
    def from_meta(cls, meta: Meta, plain: Callable[[Any], bool]) -> World:
        """Return the world that a sample's second line describes."""
        return cls(_thing(meta), plain)

    def plain_receiver(self) -> Any:
        """Return the receiver's slots as plain data, an object as {"$obj": its slots}."""
        return _plain_slots(self.receiver)["$obj"]


def _thing(setup: Meta) -> Thing:
    slots = {name: _build(value) for name, value in setup.get("slots", {}).items()}
    return Thing(slots, setup.get("methods", {}), list(setup.get("infer", [])))


def _build(value: Any) -> Any:
    if isinstance(value, dict):
        return _thing(value["$obj"]) if value.keys() == {"$obj"} else {key: _build(each) for key, each in value.items()}
    return [_build(each) for each in value] if isinstance(value, list) else value


def _plain_slots(value: Any) -> Any:
    if isinstance(value, Thing):
        return {"$obj": {name: _plain_slots(each) for name, each in value.slots.items()}}
    if isinstance(value, dict):
        return {key: _plain_slots(each) for key, each in value.items()}
    return [_plain_slots(each) for each in value] if isinstance(value, list) else value


class Parent:
    """The host of one run: its table of objects, and the receiver that a `$resend` comes back to."""

    def __init__(self, world: World, cell: Cell, program: Program) -> None:
        self.world = world
        self._cell = cell
        self._program = program
        self._objects: list[Thing] = []

    async def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Value:
        """Call the method, keep what it wrote, and give its result."""
        receiver = self.world.receiver
        view = {name: self._out(value) for name, value in receiver.slots.items()}
        outcome = await self._cell.run(self._program, MethodCall(view, _texts(list(args)), _texts(dict(kwargs))), self)
        self._keep(outcome.writes)
        self.world.changed = self.world.changed or outcome.writes.is_marked
        return outcome.result

    def _keep(self, writes: Writes) -> None:
        for name in writes.deleted:
            self.world.receiver.slots.pop(name, None)
        self.world.receiver.slots.update((name, self._in(value)) for name, value in writes.values.items())

    async def send(
        self, to: Ref | None, selector: str, args: list[Any], kwargs: dict[str, Any], pending: Writes
    ) -> MessageAnswer:
        """Note the message and answer as the corpus says."""
        self.world.sent.append(selector)
        self.world.bad_args += not (self.world.plain(args) and self.world.plain(kwargs))
        receiver = self.world.receiver if to is None else self._object(to)
        if receiver is None:
            return MessageAnswer(raised=RaisedError("ValueError", "no such object"))
        if selector in receiver.methods:
            return await self._script(receiver.methods[selector], args, kwargs)
        if selector == "infer_":
            return MessageAnswer(receiver.replies.pop(0) if receiver.replies else f"[{args[0] if args else ''}]")
        if selector == "log_":
            return MessageAnswer()
        return MessageAnswer(raised=RaisedError("AttributeError", f"{selector} is not understood"))

    async def read(self, of: Ref, slot: str) -> MessageAnswer:
        """Return a slot of another object."""
        found = self._object(of)
        if found is None or slot not in found.slots:
            return MessageAnswer(raised=RaisedError("AttributeError", f"{slot} is not understood"))
        return MessageAnswer(self._out(found.slots[slot]))

    async def _script(self, spec: Any, args: list[Any], kwargs: dict[str, Any]) -> MessageAnswer:
        if not (isinstance(spec, dict) and any(key.startswith("$") for key in spec)):
            return MessageAnswer(self._out(_build(spec)))
        if "$raise" in spec:
            return MessageAnswer(raised=RaisedError(*spec["$raise"].split(": ", 1)))
        if "$resend" in spec:
            return MessageAnswer(await Parent(self.world, self._cell, self._program).run(args, kwargs))
        return MessageAnswer(self._out(_build(copy.deepcopy(spec.get("$stream", spec.get("$return"))))))

    def _object(self, ref: Ref) -> Thing | None:
        return self._objects[ref.number - 1] if 0 < ref.number <= len(self._objects) else None

    def _out(self, value: Any) -> Any:
        if isinstance(value, Thing):
            if value not in self._objects:
                self._objects.append(value)
            return Ref(self._objects.index(value) + 1)
        if isinstance(value, dict):
            return {key: self._out(each) for key, each in value.items()}
        return [self._out(each) for each in value] if isinstance(value, list) else value

    def _in(self, value: Any) -> Any:
        if isinstance(value, Ref):
            return self._object(value)
        if isinstance(value, dict):
            return {key: self._in(each) for key, each in value.items()}
        return [self._in(each) for each in value] if isinstance(value, list) else value


def _texts(value: Any) -> Any:
    """Convert Python literals to plain data: keys are text, tuples and sets are lists."""
    if isinstance(value, dict):
        return {str(key): _texts(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_texts(each) for each in value), key=repr)
    return [_texts(each) for each in value] if isinstance(value, list | tuple) else value


def peak_kb() -> int:
    """Return the largest memory that any worker had, the living and the dead, in KB."""
    peaks = [resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text("utf-8", "replace")
        except OSError:  # it ended meanwhile
            continue
        lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        if lines.get("Name", "").strip() == "monty" and "VmHWM" in lines:
            peaks.append(int(lines["VmHWM"].split()[0]))
    return max(peaks)
