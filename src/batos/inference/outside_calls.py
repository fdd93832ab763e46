"""Calls of a mission to the world: each is looked up in the journal first, and written there before its result is used.

A call that reads is made again where its record is open, failed or erased. A call that changes something is written as
open before it is sent; where its record is open or cut, it may have happened, and it is never sent again by itself.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from pydantic import JsonValue

from batos.concurrency.threads import finish_despite_cancel
from batos.image.ids import iso
from batos.inference.canonical import canonical
from batos.inference.journal import Entries, Journal, Record
from batos.inference.session import Session
from batos.protocol.errors import ApprovalNeeded, BatosError, InternalError, OutcomeUnknown, Refused
from batos.protocol.event_payloads import MISSION_OUTSIDE, MissionOutside

#: The effect of a call: none (it reads), or a change of something in the world.
Doing: TypeAlias = Literal["read", "send"]
Result: TypeAlias = Mapping[str, JsonValue]
#: Makes a call, given its id, and returns what came. `Refused` and `ApprovalNeeded` say that nothing was sent.
Perform: TypeAlias = Callable[[str], Awaitable[Result]]

#: The most bytes of a call's result in the journal.
MOST_RESULT: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class OutsideCall:
    """A call to the world: its place in the cycle, what it is (`search`), what is asked, and what it does."""

    path: str
    kind: str
    request: Mapping[str, JsonValue]
    doing: Doing = "read"

    @property
    def key(self) -> str:
        """Return the key under which the journal has the call: a digest over kind, request and path."""
        return hashlib.sha256(canonical([self.kind, self.request, self.path])).hexdigest()


def call_id(record: Record) -> str:
    """Return the id of a call, which is its mission's alone: what a receiver tells it apart by."""
    return f"x-{hashlib.sha256(f'{record.mission} {record.key}'.encode()).hexdigest()[:24]}"


class OutsideCalls:
    """The calls to the world of one session's mission.

    Results are served from the records of `missions`: its ancestors, and it itself at the end. In a copy of the mind (a
    dream, a replay, the past) nothing reaches out: such a mission has what is recorded, or nothing.
    """

    def __init__(self, session: Session, missions: Sequence[str], *, reaches_out: bool = True) -> None:
        self._session, self._reaches_out = session, reaches_out
        self._known: dict[str, Record] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        for record in session.journal.outside(missions):
            self._learn(record)

    @property
    def reaches_out(self) -> bool:
        """Test if something outside may be asked: it is no copy of the mind."""
        return self._reaches_out

    def own_id(self, call: OutsideCall) -> str | None:
        """Return the id of a call that this mission made or sent; None: it did not, or one before it did."""
        known = self._known.get(call.key)
        return call_id(known) if known is not None and known.mission == self._session.mission else None

    async def perform(self, call: OutsideCall, act: Perform, find: Perform | None = None) -> Result:
        """Return what came of a call: from the journal where it was made there before, else by making it, once.

        `find` asks the other side what came of a call that this mission sent before, where it can tell.

        Raises: OutcomeUnknown: it changes something, was sent before, and nobody knows what came of it. Refused: a copy
        of the mind asks for what is not recorded, the words of a sent call are erased, or the result is too long.
        Everything that `act` raises of a call that reads.
        """
        async with self._locks.setdefault(call.key, asyncio.Lock()):
            known = self._known.get(call.key)
            if known is not None and known.state == "done" and known.response is not None:
                self._note_use(known, from_journal=True)
                return dict(known.response["value"])
            if known is not None and call.doing == "send" and known.state != "failed":
                is_own = known.mission == self._session.mission and self._reaches_out
                if find is None or known.state == "done" or not is_own:
                    raise _sent_error(known, call)
                act = find
            if not self._reaches_out:
                what = f"a dream, a replay or the past reaches nothing outside, and {call.path!r} is not recorded"
                raise Refused(what, remedy="Ask the same of the mind itself.")
            self._session.check_stop()
            return await self._make(call, act)

    @property
    def mission(self) -> str:
        """Return the id of the mission."""
        return self._session.mission

    def results(self, *kinds: str) -> Iterator[Result]:
        """Yield what came of the calls of these kinds, as far as the journal has it."""
        for record in self._known.values():
            if record.state == "done" and record.response is not None and record.request["kind"] in kinds:
                yield record.response["value"]

    async def find(self, mission: str, key: str) -> Result | None:
        """Return what came of any mission's call, by its key; None: its words are erased, or there is none."""
        for record in await asyncio.to_thread(self._session.journal.outside, [mission]):
            if record.key == key and record.state == "done" and record.response is not None:
                return dict(record.response["value"])
        return None

    async def _make(self, call: OutsideCall, act: Perform) -> Result:
        """Make a call and write it down. Raises: Refused: the result is too long; and as `perform`."""
        request, began = {"kind": call.kind, "asked": dict(call.request)}, iso(self._session.clock())
        record = Record(call.key, self._session.mission, call.path, "", call.doing, request, "open", began)
        if call.doing == "send":
            await self._write(record)
        try:
            value = await act(call_id(record))
        except (Exception, asyncio.CancelledError) as error:
            happened_not = call.doing == "read" or isinstance(error, Refused | ApprovalNeeded)
            await self._fail(record, error, "failed" if happened_not else "cut")
            if happened_not or isinstance(error, asyncio.CancelledError):
                raise
            raise _unknown_error(record) from error
        size = len(await asyncio.to_thread(canonical, value))
        if size > MOST_RESULT:
            what = f"{call.path!r} brought {size:,} bytes, and at most {MOST_RESULT:,} are taken in"
            long = Refused(what, remedy="Ask for a part of it.")
            await self._fail(record, long, "failed" if call.doing == "read" else "cut")
            raise long
        done = replace(record, state="done", response={"value": dict(value)}, ended=iso(self._session.clock()))
        await self._write(done)
        self._note_use(done, from_journal=False)
        return dict(value)

    async def _fail(self, record: Record, error: BaseException, state: Literal["failed", "cut"]) -> None:
        """Write that a call came to nothing: `failed` surely did not happen, `cut` may have."""
        reason: Mapping[str, object] = {"code": "cancelled", "message": str(error)}
        if not isinstance(error, asyncio.CancelledError):
            ours = error if isinstance(error, BatosError) else InternalError(f"{type(error).__name__}: {error}")
            reason = ours.as_dict()
        await self._write(replace(record, state=state, response={"error": reason}, ended=iso(self._session.clock())))
        self._tell(record, state, from_journal=False)

    async def _write(self, record: Record) -> None:
        await finish_despite_cancel(asyncio.ensure_future(self._session.journal.write(record)))
        self._learn(record)

    def _learn(self, record: Record) -> None:
        before = self._known.get(record.key)
        if before is None or before.state != "done" or record.state == "done":
            self._known[record.key] = record

    def _note_use(self, record: Record, *, from_journal: bool) -> None:
        self._session.keys.append(record.key)
        self._tell(record, "done", from_journal=from_journal)

    def _tell(self, record: Record, state: str, *, from_journal: bool) -> None:
        kind = str(record.request["kind"])
        told = MissionOutside(
            mission=self._session.mission, path=record.path, kind=kind, state=state, from_journal=from_journal
        )  # fmt: skip
        self._session.events.emit(MISSION_OUTSIDE, told)


def _sent_error(known: Record, call: OutsideCall) -> BatosError:
    if known.state == "done":
        what = f"{call.path!r} was sent before, and the words of what came are erased"
        return Refused(what, remedy="It is not sent again: ask anew, if it is to happen once more.")
    return _unknown_error(known)


def _unknown_error(record: Record) -> OutcomeUnknown:
    what = f"the call {call_id(record)} at {record.path!r} was sent, and nobody knows what came of it"
    return OutcomeUnknown(what, field="call")


def find_unknown(journal: Entries, mission: str) -> list[Record]:
    """Return the calls of a mission that were sent, and of which nobody knows what came."""
    last: dict[str, Record] = {}
    for record in journal.outside([mission]):
        last[record.key] = record
    return [each for each in last.values() if each.digest == "send" and each.state in ("open", "cut")]


async def settle(journal: Journal, mission: str, call: str, value: Result | None, at: str) -> bool:
    """Write what a person says of a call whose outcome is unknown: its result, or None if it did not happen.

    `at` is the moment (ISO 8601 UTC). Return False if the mission has no such call.
    """
    for record in find_unknown(journal, mission):
        if call_id(record) == call:
            told = {"error": {"code": "not_done"}} if value is None else {"value": dict(value)}
            state: Literal["failed", "done"] = "failed" if value is None else "done"
            await journal.write(replace(record, state=state, response=told, ended=at))
            return True
    return False
