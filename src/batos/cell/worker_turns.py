"""Turns: a worker runs a method until it waits for the kernel or ends; a thread checks the output."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from batos.cell.lowering.statement_lowering import is_allowed_selector, is_allowed_slot
from batos.cell.prelude import LATER_CALL, NOW, READ, SELF
from batos.cell.program import Code, Program
from batos.cell.values import (
    CellLimits,
    MessageAnswer,
    Plain,
    Ref,
    Value,
    Writes,
    check_length,
    decode,
    differences,
    encode,
    has_refs,
)
from batos.cell.worker_pool import Dump, Dumps, Worker
from batos.protocol.errors import CellKilled, MethodFailed

#: Errors that a method may see by their own name; any other is a RuntimeError to it.
_KINDS: Final = frozenset(
    "Exception ArithmeticError OverflowError ZeroDivisionError LookupError IndexError KeyError RuntimeError "
    "NotImplementedError AttributeError NameError ValueError OSError PermissionError TimeoutError TypeError".split()
)
_MESSAGE: Final = 300
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")
#: The interpreter's message for a missing slot: its class is the prelude's, and no method knows it.
_NO_SLOT: Final = re.compile(r"'_cell_Object' object has no attribute '(\w+)'")


class _NotPlainYet(MethodFailed):
    """The short form met a value that only the long one can make plain, or refuse with its reason."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call of the host: a message, or a read of another object (then the selector is the slot's name)."""

    number: int  # of the call in the interpreter
    reads: bool
    to: Ref | None
    selector: str
    args: list[Plain] = field(default_factory=list)
    kwargs: dict[str, Plain] = field(default_factory=dict)
    slots: Mapping[str, Value] = field(default_factory=dict)  # the receiver's, as the method has them
    is_marked: bool = False


@dataclass(slots=True)
class WorkerTurn:
    """The result of a turn: done with a result, or waiting for the call `now`, or for any call in `pending`."""

    asked: list[HostCall] = field(default_factory=list)  # new in this turn
    now: int | None = None
    pending: frozenset[int] = frozenset()
    is_done: bool = False
    result: Value = None
    slots: Mapping[str, Value] = field(default_factory=dict)
    is_marked: bool = False
    printed: str = ""
    seconds: float = 0.0
    cpu: float = 0.0


@dataclass(slots=True)
class WorkerTurns:
    """The turns of one run in one worker; every method runs in a thread."""

    worker: Worker
    program: Program
    limits: CellLimits
    room: int  # messages that it may still send
    _snapshot: Any = None
    _lines: tuple[int, ...] = ()

    def start(self, text: str) -> WorkerTurn:
        """Begin the method; `text` is its view and arguments (see `opening`)."""
        short = None if _marks(text) else self.program.short
        if short is not None:
            try:
                return self._begin(short, text)
            except _NotPlainYet:  # nothing was sent: to begin again is the same run
                self.worker.leave()
        return self._begin(self.program.code, text)

    def _begin(self, code: Code, text: str) -> WorkerTurn:
        self.worker.enter()
        session = self.worker.session
        self._lines = code.lines
        # The short form is given what the text says as values: decoding it there costs a tenth of a small call.
        inputs = {"_cell_in": json.loads(text)} if code is self.program.short else {"_cell_input": text}
        collected = self.worker.collected
        return self._turn(lambda: session.feed_start(code.text, inputs=inputs, print_callback=collected))

    def load(self, dump: Dump, answers: Mapping[int, MessageAnswer], now: int | None) -> WorkerTurn:
        """Go on from a dump, in a process of any kind of past."""
        self.worker.enter()
        session, collected = self.worker.session, self.worker.collected
        self._snapshot = self._guard_worker(lambda: session.load_snapshot(dump.whole, print_callback=collected))
        return self.answer(answers, now)

    def answer(self, answers: Mapping[int, MessageAnswer], now: int | None) -> WorkerTurn:
        """Go on with the answers that have come."""
        results = {number: self._settle(sent) for number, sent in answers.items()}
        snapshot = self._snapshot
        if now is not None:
            return self._turn(lambda: snapshot.resume(results[now]))
        return self._turn(lambda: snapshot.resume(results))

    def dump(self, dumps: Dumps) -> Dump:
        """Save everything needed to continue in another process, and give this process back."""
        found = self._guard_worker(self._snapshot.dump)
        self._snapshot = None
        self.worker.leave()
        return dumps.pack(self.program.digest, found)

    def _guard_worker(self, work: Callable[[], Any]) -> Any:
        """Do work with the process and return its result; if the process dies, raise what a turn would raise."""
        try:
            return work()
        except self.worker.kinds.MontyError as error:
            raise self._convert_error(error) from None

    def _settle(self, sent: MessageAnswer) -> dict[str, object]:
        if sent.raised is not None:
            kind = sent.raised.kind if sent.raised.kind in _KINDS else "RuntimeError"
            return {"exc_type": kind, "message": clean_text(sent.raised.message)}
        value = encode(sent.value, "the answer to a message", self.limits.bytes)
        slots = "null"
        if sent.slots is not None:
            slots = encode(dict(sent.slots), "the receiver's slots", self.limits.bytes)
        refs = "true" if _marks(value) or _marks(slots) else "false"
        return {"return_value": f'{{"v":{value},"s":{slots},"r":{refs}}}'}

    def _turn(self, go: Callable[[], Any]) -> WorkerTurn:
        turn = WorkerTurn()
        began, before = time.perf_counter(), self.worker.cpu()
        try:
            snapshot = go()
            while not self._has_stopped(turn, snapshot):
                snapshot = self._on(turn, snapshot)
        except self.worker.kinds.MontyError as error:
            raise self._convert_error(error) from None
        turn.seconds, after = time.perf_counter() - began, self.worker.cpu()
        turn.cpu = turn.seconds if before is None or after is None else after - before
        turn.printed = self.worker.collected.output
        self._snapshot = snapshot
        if turn.is_done:
            self._finish(turn, snapshot.output)
            self._snapshot = None
            self.worker.leave()
        return turn

    def _has_stopped(self, turn: WorkerTurn, snapshot: object) -> bool:
        kinds = self.worker.kinds
        if isinstance(snapshot, kinds.MontyComplete):
            turn.is_done = True
        elif isinstance(snapshot, kinds.FutureSnapshot):
            turn.pending = frozenset(snapshot.pending_call_ids)
        elif isinstance(snapshot, kinds.FunctionSnapshot) and snapshot.function_name in (NOW, READ):
            turn.asked.append(self._read_call(snapshot))
            turn.now = snapshot.call_id
        else:
            return False
        return True

    def _on(self, turn: WorkerTurn, snapshot: Any) -> Any:
        """Answer what the kernel need not be asked: a message to be answered later, or what does not exist."""
        kinds = self.worker.kinds
        if isinstance(snapshot, kinds.NameLookupSnapshot):
            return snapshot.resume()
        if snapshot.function_name == LATER_CALL:
            turn.asked.append(self._read_call(snapshot))
            return snapshot.resume({"future": ...})
        if snapshot.function_name == "import":
            name = clean_text(str(snapshot.args[0] if snapshot.args else ""))
            return snapshot.resume({"exc_type": "ModuleNotFoundError", "message": f"the cell has no module {name!r}"})
        if snapshot.is_os_function:
            return snapshot.resume({"exc_type": "PermissionError", "message": "a method has no machine"})
        name = clean_text(str(snapshot.function_name))
        return snapshot.resume({"exc_type": "NameError", "message": f"name {name!r} is not defined"})

    def _read_call(self, snapshot: Any) -> HostCall:
        self.room -= 1
        if self.room < 0:
            raise CellKilled(f"{self.program.selector} sent more than {self.limits.messages} messages", "messages")
        found = decode(snapshot.args[0] if snapshot.args else None, "a message", self.limits.bytes)
        reads = snapshot.function_name == READ
        if reads:
            found = [*found, [], {}, {}, False, []] if type(found) is list and len(found) == 2 else None
        return self._check_call(found, snapshot, reads)

    def _check_call(self, found: object, snapshot: Any, reads: bool) -> HostCall:
        """Check a call of the host and return it. Nothing in it is trusted: the method's own code may have made it.

        Raises: MethodFailed: no method can send such a call.
        """
        match found:
            case [int(number), str(name), list(args), dict(kwargs), dict(slots), bool(marked), list(extra)]:
                pass
            case _:
                raise MethodFailed("a message of a shape that no method can send")
        if not (is_allowed_slot(name) if reads else is_allowed_selector(name)):
            raise MethodFailed(f"no method may {'read' if reads else 'send'} {clean_text(name)!r}")
        if has_refs(args) or has_refs(kwargs):
            raise MethodFailed(f"an argument of {name} is or holds an object: only plain data can be sent")
        self._names(slots, extra)
        return HostCall(
            number=snapshot.call_id,
            reads=reads,
            to=None if number == SELF else Ref(number),
            selector=name,
            args=args,
            kwargs=kwargs,
            slots=slots,
            is_marked=marked,
        )

    def _names(self, slots: Mapping[str, Value], extra: list[Any]) -> None:
        strange = [str(name) for name in (*extra, *(slots.keys() - self.program.changes))]
        if strange:
            raise MethodFailed(
                f"{self.program.selector} changed a slot that its audit does not list: {clean_text(', '.join(strange))}"
            )
        if _holds_self(dict(slots)):
            raise MethodFailed(f"{self.program.selector} keeps its receiver in a slot: only plain data and others")

    def _finish(self, turn: WorkerTurn, output: object) -> None:
        selector = self.program.selector
        match decode(output, f"the result of {selector}", self.limits.bytes * 2):
            case [result, dict(slots), bool(marked), list(extra)]:
                pass
            case _:
                raise MethodFailed(f"{selector} ended in a way that no method can")
        if result == Ref(SELF) or (has_refs(result) and type(result) is not Ref):
            raise MethodFailed(
                f"{selector} gives its receiver, or holds objects: a result is plain data, or one object"
            )
        self._names(slots, extra)
        turn.result, turn.slots, turn.is_marked = result, slots, marked

    def _convert_error(self, error: object) -> MethodFailed:
        """Convert an error of the interpreter to MethodFailed or CellKilled."""
        kinds = self.worker.kinds
        selector = self.program.selector
        if isinstance(error, kinds.MontyCrashedError):
            limit = self.worker.kill_reason or ("hang" if error.timed_out else "died")
            return CellKilled(f"{selector} was stopped: its worker {_DEATHS.get(limit, 'died')}", limit)
        text = _NO_SLOT.sub(r"there is no slot '\1'", clean_text(str(error)))
        limit = _limit(text, self.limits)
        if limit:
            return CellKilled(f"{selector} went over its limit of {limit}: {text}", limit)
        line = self._line(error)
        if not line and "JSON" in text and self.program.short and self._lines is self.program.short.lines:
            return _NotPlainYet(text)
        if not line and "JSON" in text:
            return MethodFailed(f"the result of {selector}, or a slot or message of it, is not plain data: {text}")
        return MethodFailed(f"{selector} raised {text}" + (f" (line {line})" if line else ""))

    def _line(self, error: object) -> int:
        """Return the line of the source at which an error occurred, 0 if it was not in the method's text."""
        frames = error.traceback() if hasattr(error, "traceback") else []
        known = self._lines or self.program.code.lines
        lines = (known[frame.line - 1] for frame in reversed(frames) if 0 < frame.line <= len(known))
        return next(filter(None, lines), 0)


_DEATHS: Final = {"hang": "did not answer in time", "given up": "was given up"}
_LIMITS: Final = (
    ("time", re.compile(r"^TimeoutError: .*time limit exceeded|^TimeoutError: .*sleep")),
    ("memory", re.compile(r"^MemoryError\b")),
    ("recursion", re.compile(r"^RecursionError: maximum recursion depth")),
    ("messages", re.compile(r"^RuntimeError: .*suspension")),
)


def _limit(text: str, limits: CellLimits) -> str:
    """Return the name of the limit that an error is about, "" if the error is the method's own."""
    limit = next((name for name, pattern in _LIMITS if pattern.search(text)), "")
    return "output" if limit == "memory" and f"> {limits.output} bytes" in text else limit


def clean_text(text: str) -> str:
    """Make text from a method fit to be shown: short and without control characters."""
    text = _CONTROL.sub(" ", text[: _MESSAGE * 4])
    return text if len(text) <= _MESSAGE else text[:_MESSAGE] + "..."


def input_text(program: Program, view: Mapping[str, Value], args: Value, kwargs: Value, limits: CellLimits) -> str:
    """Return the input of a method as JSON text: the slots of the view that it names, and its arguments."""
    slots = {name: value for name, value in view.items() if name in program.view}
    texts = (
        encode(slots, "the receiver's slots", limits.bytes),
        encode(args, "the arguments", limits.bytes),
        encode(kwargs, "the arguments", limits.bytes),
    )
    refs = "true" if any(map(_marks, texts)) else "false"
    found = f'{{"view":{texts[0]},"args":{texts[1]},"kwargs":{texts[2]},"refs":{refs},"most":{limits.bytes}}}'
    return check_length(found, "the view and the arguments", limits.bytes * 2)


def _marks(text: str) -> bool:
    return '"\\u0000ref"' in text


def _holds_self(value: Value) -> bool:
    if type(value) is dict:
        return any(map(_holds_self, value.values()))
    if type(value) is list:
        return any(map(_holds_self, value))
    return value == Ref(SELF)


def pending_writes(slots: Mapping[str, Value], marked: bool, view: Mapping[str, Value], program: Program) -> Writes:
    """Return the changes that a method has made, compared with the view that it was last given."""
    gone = frozenset(name for name in program.changes if name in view and name not in slots)
    return Writes(differences(view, slots), gone, marked)
