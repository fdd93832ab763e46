"""Recorded exchanges sent to a daemon over real sockets, in order, each compared with what was recorded."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from wire_compare import compare
from wire_daemon import Daemon
from wire_exchange import LEFT, Exchange, Recording, Reply
from wire_ledger import Ledger
from wire_registry import Ports

GIVE_UP_S = 1.0  # the longest that is waited for a reply which the recorder did not wait for
POLL_S = 0.05
SETTLE_S = 1.0
_GUARD_S = 20.0
_APART_S = 0.001
_RACE_MS = 5.0  # requests nearer than this reached the recorded daemon in an order that nobody knows
_KILLED_ANSWER = re.compile(r"an error was encountered while running the model: |model runner has unexpectedly stopped")
_KILLED_LOAD = re.compile(r"llama-server process has terminated: signal: ")
_BUSY = "server busy, please try again."
_DROPPED = (httpx.TransportError, OSError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an exchange: its differences, or the reason why it was not sent."""

    exchange: Exchange
    differences: tuple[str, ...] = ()
    unsent: str = ""


@dataclass(slots=True)
class Replay:
    """A recording replayed onto a daemon; `speed` 2 halves every wait of the recording."""

    daemon: Daemon
    recording: Recording
    ports: Ports = field(default_factory=Ports)
    speed: float = 1.0
    keep_alive_s: float | None = None
    told: Callable[[Outcome], None] = lambda outcome: None
    ledger: Ledger = field(default_factory=Ledger)

    async def run(self, without: frozenset[int] = frozenset()) -> list[Outcome]:
        """Send every exchange but those numbered in `without`; one outcome for each that was not left out."""
        self.ledger = Ledger(await asyncio.to_thread(self.recording.known_digests))
        found = []
        for batch in self.recording.batches():
            kept = [one for one in batch if one.n not in without]
            for outcome in await self._batch(kept):
                self.told(outcome)
                found.append(outcome)
                self.ledger.set_clock(outcome.exchange)
        return found

    async def _batch(self, batch: Sequence[Exchange]) -> list[Outcome]:
        impossible = {one.n: why for one in batch if (why := self._impossible(one))}
        sent = [one for one in batch if one.n not in impossible]
        for one in in_order(sent):
            await self._prepare(one, sent)
        if len(sent) == 1 and sent[0].group is None:
            found = [await self._alone(sent[0])]
        else:
            found = self._match(sent, await self._together(sent))
        if any(map(fault_of, sent)) and self.daemon.emulated:
            await self.daemon.clear()
        return [*found, *(Outcome(one, unsent=impossible[one.n]) for one in batch if one.n in impossible)]

    def _impossible(self, one: Exchange) -> str:
        if fault_of(one) and not self.daemon.emulated:
            return "a runner was killed from outside, which can only be asked of the emulator"
        if "<models>" in json.dumps(one.request) and self.daemon.root is None:
            return "it names the daemon's store, whose path is not known"
        blob = one.request.get("blob")
        if blob is not None and not (self.recording.models / blob).is_file():
            return f"{blob} is not among the models"
        return ""

    async def _prepare(self, one: Exchange, batch: Sequence[Exchange]) -> None:
        fault = fault_of(one)
        if fault and self.daemon.emulated:
            match = {"path": one.path, "method": one.method, "nth": nth_of(one, batch)}
            await self.daemon.inject({**fault, "match": match, "times": 1})

    # one after the other

    async def _alone(self, one: Exchange) -> Outcome:
        reply = await self._send(one)
        found = compare(one, reply, self.ledger.trial())
        if one.path == "/api/ps" and found:
            until = time.monotonic() + self._patience()
            while found and time.monotonic() < until:
                await asyncio.sleep(POLL_S)
                reply = await self._send(one)
                found = compare(one, reply, self.ledger.trial())
        return Outcome(one, tuple(compare(one, reply, self.ledger)))

    def _patience(self) -> float:
        """Return how long the recorder may have waited for a keep-alive to run out: the longest of the short ones."""
        short = [self.keep_alive_s] if self.keep_alive_s is not None else []
        for one in self.recording.exchanges:
            asked = span(one.body.get("keep_alive"))
            if asked is not None:
                short.append(asked)
        return SETTLE_S + max((seconds for seconds in short if 0 <= seconds <= 10), default=0.0)

    # together

    async def _together(self, batch: Sequence[Exchange]) -> list[Reply]:
        """Send a group as it was sent; the replies in the order of the batch."""
        began = time.monotonic()
        first = min((one.sent_ms for one in batch), default=0.0)
        replies: dict[int, Reply] = {}

        async def after(one: Exchange, before: asyncio.Event, sent: asyncio.Event) -> None:
            place = (one.sent_ms - first) / 1000 / self.speed
            await asyncio.sleep(max(0.0, began + place - time.monotonic()))
            await before.wait()  # those that came together arrive in this order, however busy the machine is
            await asyncio.sleep(_APART_S)
            replies[one.n] = await self._send(one, sent)

        async with asyncio.TaskGroup() as group:
            before = asyncio.Event()
            before.set()
            for one in in_order(batch):
                sent = asyncio.Event()
                group.create_task(after(one, before, sent))
                before = sent
        return [replies[one.n] for one in batch]

    def _match(self, batch: Sequence[Exchange], replies: Sequence[Reply]) -> list[Outcome]:
        """Match equal requests that race: each takes the reply that is nearest its own."""
        left = list(zip(batch, replies, strict=True))
        found = []
        for one in batch:
            equal = [at for at, (other, _) in enumerate(left) if other.key == one.key]
            best = min(equal, key=lambda at: len(compare(one, left[at][1], self.ledger.trial())))
            _, reply = left.pop(best)
            # the request that this reply was given to is the same, so what is left pairs up with what is left
            found.append(Outcome(one, tuple(compare(one, reply, self.ledger))))
        return found

    # over the wire

    async def _send(self, one: Exchange, sent: asyncio.Event | None = None) -> Reply:
        """Send one request and return its reply; set `sent` when the request is on its way."""
        try:
            return await self._exchange(one, sent)
        finally:
            if sent is not None:
                sent.set()

    async def _exchange(self, one: Exchange, sent: asyncio.Event | None) -> Reply:
        began = time.monotonic()
        limit = _GUARD_S
        if one.reply.status is None:
            limit = min(one.reply.ms / 1000, GIVE_UP_S) / self.speed
        status, headers, data = None, {}, bytearray()
        fault = ""
        try:
            async with asyncio.timeout(limit), self._stream(one, sent) as response:
                status = response.status_code
                headers = {name.lower(): text for name, text in response.headers.items()}
                async for piece in response.aiter_raw():
                    data += piece
                    if one.cut_after is not None and data.count(b"\n") >= one.cut_after:
                        break
        except TimeoutError:
            fault = f"{LEFT} after {limit:.2f} s"
        except _DROPPED as dropped:
            fault = f"{type(dropped).__name__} {dropped}".strip()
        spent = (time.monotonic() - began) * 1000
        text = self.ports.inward(data.decode("utf-8", "replace"))
        lines = tuple(text.split("\n")[:-1]) if "\n" in text else (text,)
        return Reply(status, headers, text, lines[: one.cut_after], ms=spent, fault=fault)

    @asynccontextmanager
    async def _stream(self, one: Exchange, sent: asyncio.Event | None) -> AsyncIterator[httpx.Response]:
        headers = dict(one.request.get("headers") or {})
        content = await self._content(one)
        if "json" in one.request:
            headers.setdefault("content-type", "application/json")

        async def trace(event: str, info: Mapping[str, Any]) -> None:
            if sent is not None and event.endswith("send_request_body.complete"):
                sent.set()

        http = self.daemon.http
        about = {"trace": trace}
        request = http.build_request(one.method, one.path, content=content, headers=headers, extensions=about)
        response = await http.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _content(self, one: Exchange) -> bytes | None:
        request = one.request
        if request.get("blob") is not None:
            return await asyncio.to_thread((self.recording.models / request["blob"]).read_bytes)
        if "json" in request:
            text = json.dumps(request["json"])
        elif request.get("text") is not None:
            text = str(request["text"])
        else:
            return None
        return (
            self.ports.outward(text)
            .replace("<models>", self.daemon.root or "<models>")
            .encode("utf-8", "surrogatepass")
        )


def span(asked: Any) -> float | None:
    """Return the seconds that a keep-alive asks for, as a number or as a text like `1m30s`; None where it is no such
    thing.
    """
    if isinstance(asked, int | float) and not isinstance(asked, bool):
        return float(asked)
    if not isinstance(asked, str) or not re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", asked):
        return None
    units = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
    return sum(float(number) * units[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(ms|s|m|h)", asked))


def in_order(batch: Sequence[Exchange]) -> list[Exchange]:
    """Sort a group into the order in which it has to arrive.

    Of requests that were sent within a few milliseconds, those which were served came before those that found the
    queue full: what the recorded daemon took, it took first.
    """
    found: list[Exchange] = []
    for one in sorted(batch, key=lambda each: each.sent_ms):
        start = next((at for at, each in enumerate(found) if one.sent_ms - each.sent_ms <= _RACE_MS), len(found))
        near = [*found[start:], one]
        found[start:] = sorted(near, key=lambda each: (_BUSY in each.reply.text, each.sent_ms))
    return found


def fault_of(one: Exchange) -> dict[str, Any]:
    """Return the fault that a reply tells of: somebody killed a runner while it answered, or while it loaded."""
    if one.reply.status is None or one.scenario == "pull" or one.path.startswith("/api/pull"):
        return {}
    last = one.reply.lines[-1] if one.reply.lines else one.reply.text
    try:
        told = json.loads(last.removeprefix("data: "))
    except ValueError:
        return {}
    error = told.get("error") if isinstance(told, dict) else None
    error = error.get("message") if isinstance(error, dict) else error
    if isinstance(error, str) and _KILLED_LOAD.match(error):
        return {"do": "kill_load", "error": error}
    if isinstance(error, str) and _KILLED_ANSWER.match(error):
        return {"do": "kill_answer", "after": max(1, len(one.reply.lines or ()) - 1), "error": error}
    return {}


def nth_of(one: Exchange, batch: Sequence[Exchange]) -> int:
    """Return the number of the request that a fault strikes: requests that a fault of their own struck are not
    seen.
    """
    before = [other for other in in_order(batch) if (other.path, other.method) == (one.path, one.method)]
    return 1 + sum(not fault_of(other) for other in before[: before.index(one)])
