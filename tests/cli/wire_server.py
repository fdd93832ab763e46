"""A server on real sockets over a mind that a test plays, and peers that speak to it as they like."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import zmq
import zmq.asyncio
from tests.waiting import HANG, until

from batos.agency.callers import Callers
from batos.cli.verb_options import own_folder
from batos.client import addresses
from batos.client.addresses import ServerRecord, parse_listening
from batos.client.clients import AsyncClient
from batos.client.keys import Credentials, Keyring
from batos.client.line import Patience
from batos.config import Settings
from batos.events import Events
from batos.image import ownership, roots
from batos.protocol import brief as briefs
from batos.protocol.brief import File
from batos.protocol.errors import NotFound
from batos.protocol.event_payloads import MISSION_ACCEPTED, MISSION_STATUS, MissionAccepted, MissionStatus
from batos.protocol.motion_documents import HeartbeatDocument
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Places, Server, ServerLimits
from batos.uvm import UVM

ANY = "tcp://127.0.0.1:*"
#: Looks often, so that no test waits for what is only regular.
QUICK = ServerLimits(look=0.005, revoked=0.02)
#: Does not wait for a server where none listens.
HASTY = Patience(connect=HANG, refused=0.2, reconnect=HANG, silence=HANG)


@dataclass
class ScriptedUvm:
    """What the UVM is to the dispatcher, played: missions end when the test says so."""

    settings: Settings
    events: Events = field(default_factory=lambda: Events(log=False))
    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    attachments: dict[str, bytes] = field(default_factory=dict)
    ends: dict[str, asyncio.Event] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    #: Answer at once what is begun.
    prompt: bool = True

    @property
    def image(self) -> ScriptedUvm:
        return self

    @property
    def journal(self) -> ScriptedUvm:
        return self

    def complete_id(self, named: str, own: object = None) -> None:
        """None: nothing was asked of the past."""

    @property
    def readiness(self) -> ScriptedUvm:
        return self

    @property
    def tool_places(self) -> SimpleNamespace:
        return SimpleNamespace(callers=Callers())

    def heed_person(self) -> None:
        """Nothing works that would give way."""

    async def ask(self, *_told: object) -> Mapping[str, object]:
        """Answer nothing."""
        return {}

    async def answers(self) -> bool:
        """No model is there."""
        return False

    async def check(self) -> None:
        """Check nothing."""

    def clock(self) -> datetime:
        """The time does not pass."""
        return datetime(2026, 11, 30, tzinfo=UTC)

    @property
    def recollection(self) -> ScriptedUvm:
        return self

    @property
    def search(self) -> ScriptedUvm:
        return self

    @property
    def heartbeat(self) -> ScriptedUvm:
        return self

    def describe(self, user: str | None = None) -> HeartbeatDocument:
        """It is off."""
        return HeartbeatDocument(
            on=False,
            by="ann",
            ran=None,
            did=[],
            spent=0.0,
            budget=1_200.0,
            calls=0,
            most_calls=300,
            tokens=0,
            most_tokens=7,
            alarms=[],
        )

    def add(self, *_duty: object) -> None:
        """Do no duty."""

    @property
    def reconciler(self) -> ScriptedUvm:
        return self

    @property
    def counters(self) -> ScriptedUvm:
        return self

    def rates(self, *_user: object) -> None:
        """Nothing is counted."""

    @property
    def mission_memory(self) -> ScriptedUvm:
        return self

    async def write(self) -> None:
        """Nothing waits to be remembered."""

    @property
    def workers(self) -> ScriptedUvm:
        return self

    def has(self, mission: str) -> bool:
        """Whether it is begun."""
        return f"begin {mission}" in self.calls

    @property
    def packer(self) -> ScriptedUvm:
        return self

    def keeping(self, *moment: object) -> None:
        """Nothing is packed."""

    @property
    def follow_ups(self) -> ScriptedUvm:
        return self

    @property
    def learning(self) -> ScriptedUvm:
        return self

    @property
    def approvals(self) -> ScriptedUvm:
        return self

    @property
    def missions(self) -> ScriptedUvm:
        return self

    @property
    def readings(self) -> ScriptedUvm:
        return self

    def enqueue(self, mission: str) -> bool:
        return mission in self.found

    def keep(self, *what: object) -> None:
        self.calls.append("keep")

    @contextmanager
    def snapshot(self) -> Iterator[Any]:
        kept = {name: _StoredFile(data) for name, data in self.attachments.items()}
        yield {roots.ATTACHMENTS: kept}

    async def submit(self, brief: Mapping[str, Any], files: Sequence[File] = (), *, begin: bool = False) -> str:
        asked = {"user": self.settings.asker, **brief, "attachments": [file.ref.model_dump() for file in files]}
        checked = briefs.parse(asked)
        key = checked.idempotency_key or ""
        if key in self.keys:
            return self.keys[key]
        mission = f"m-{len(self.found):026d}"
        self.attachments.update({file.ref.sha256: file.data for file in files})
        self.found[mission] = {"id": mission, "status": "queued", "brief": checked.model_dump(mode="json")}
        self.ends[mission] = asyncio.Event()
        if key:
            self.keys[key] = mission
        self.events.emit(MISSION_ACCEPTED, MissionAccepted(mission=mission, user=checked.user, waiting=1))
        await asyncio.sleep(0)
        return mission

    async def begin(self, mission: str) -> None:
        if self.found[mission]["status"] != "queued":
            return
        self.calls.append(f"begin {mission}")
        self.say(mission, "running", attempt=1)
        if self.prompt:
            self.finish(mission)

    def say(self, mission: str, status: str, attempt: int | None = None) -> None:
        self.found[mission]["status"] = status
        told = MissionStatus(mission=mission, status=status, reason=None)
        if attempt is not None:
            told["attempt"] = attempt
        self.events.emit(MISSION_STATUS, told)

    def finish(self, mission: str, status: str = "done") -> None:
        self.found[mission]["answer"] = f"An answer to {mission}."
        self.say(mission, status)
        self.ends[mission].set()

    async def wait_for_end(self, mission: str) -> dict[str, Any]:
        found = self.mission(mission)
        await self.ends[mission].wait()
        return found

    async def _steer(self, mission: str, status: str) -> dict[str, Any]:
        found = self.mission(mission)
        self.calls.append(f"{status} {mission}")
        self.say(mission, status)
        return found

    async def cancel(self, mission: str) -> dict[str, Any]:
        return await self._steer(mission, "cancelled")

    async def pause(self, mission: str) -> dict[str, Any]:
        return await self._steer(mission, "paused")

    async def resume(self, mission: str) -> dict[str, Any]:
        return await self._steer(mission, "queued")

    def mission(self, mission: str) -> dict[str, Any]:
        if mission not in self.found:
            raise NotFound(f"there is no mission {mission!r}", field="mission", remedy="`batos missions` lists them.")
        return self.found[mission]

    def resolve_mission(self, name: str, user: str | None = None) -> str:
        theirs = [each for each, found in self.found.items() if user in (None, found["brief"]["user"])]
        if name != "last" and name in self.found and name not in theirs:
            raise ownership.no_mission(name, user)
        return theirs[-1] if name == "last" else name

    def newest(
        self, most: int = 20, *, status: str | None = None, user: str | None = None, without: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        lines = [
            {"id": each["id"], "status": each["status"], "user": each["brief"]["user"]} for each in self.found.values()
        ]
        meant = [each for each in lines if status in (None, each["status"]) and user in (None, each["user"])]
        return meant[::-1][:most]

    def prompts(self, mission: str) -> list[dict[str, Any]]:
        return [{"path": "reflex", "messages": self.mission(mission)["brief"]["text"]}]

    def turns(self, conversation: str, start: int = 1, limit: int = 20, user: str | None = None) -> dict[str, Any]:
        return {"conversation": conversation, "start": start, "limit": limit, "turns": []}

    def root_names(self) -> dict[str, Any]:
        return {"objects": ["traits_obj"]}

    def inspect(self, reference: str, user: str | None = None) -> dict[str, Any]:
        return {"object": reference}

    def status(self, user: str | None = None) -> dict[str, Any]:
        return {"queue": {"waiting": 0, "limit": self.settings.queue}}

    async def standing(self, found: dict[str, Any]) -> dict[str, Any]:
        return {**found, "ready": True, "reasons": []}


@dataclass(frozen=True)
class _StoredFile:
    data: bytes

    def read(self) -> bytes:
        return self.data


@dataclass
class WireServer:
    """A server that listens, what it serves, and the keys of its home."""

    mind: ScriptedUvm
    server: Server
    dispatcher: Dispatcher
    places: Places
    ring: Keyring

    @property
    def credentials(self) -> Credentials:
        """The token."""
        return Credentials(token=self.ring.token())

    def client(self, patience: Patience = HASTY) -> AsyncClient:
        """A client with the token."""
        return AsyncClient.by(str(self.places.bind), self.credentials, patience)

    @contextmanager
    def raw(self, kind: int = zmq.DEALER, **options: int) -> Iterator[Raw]:
        """A bare socket that shows the token."""
        context = zmq.asyncio.Context()
        socket = context.socket(kind)
        for name, value in options.items():
            setattr(socket, name, value)
        self.credentials.apply(socket)
        socket.connect(str(self.places.events if kind == zmq.SUB else self.places.bind))
        try:
            yield Raw(socket)
        finally:
            socket.close(linger=0)
            context.term()


@dataclass(frozen=True)
class Raw:
    """A socket and the plainest ways to use it."""

    socket: zmq.asyncio.Socket

    async def say(self, *frames: bytes) -> None:
        """Send frames as they are."""
        await asyncio.wait_for(self.socket.send_multipart(frames), HANG)

    async def ask(self, verb: str, args: Mapping[str, Any] | None = None, name: str = "1") -> None:
        """Send a request."""
        await self.say(json.dumps({"v": 1, "id": name, "verb": verb, "args": dict(args or {})}).encode())

    async def frames(self) -> list[bytes]:
        """The next message."""
        return await asyncio.wait_for(self.socket.recv_multipart(), HANG)

    async def reply(self) -> dict[str, Any]:
        """The next reply that is no sign of life."""
        while True:
            last = (await self.frames())[-1]
            # A client's own time counts on the loop that it shares with the server: megabytes are read aside.
            found: dict[str, Any] = await asyncio.to_thread(json.loads, last) if len(last) > 2**20 else json.loads(last)
            if found.get("event") != "beat":
                return found

    async def until(self, *kinds: str) -> list[dict[str, Any]]:
        """The replies up to one of these kinds, with it."""
        replies = [await self.reply()]
        while replies[-1]["kind"] not in kinds:
            replies.append(await self.reply())
        return replies


@asynccontextmanager
async def wire_server(
    home: Path, mind: ScriptedUvm | None = None, limits: ServerLimits = QUICK, bind: str = ANY, events: str = ANY
) -> AsyncIterator[WireServer]:
    """A server of a played mind."""
    own_folder(home)
    mind = mind or ScriptedUvm(Settings(home=home, user="tester", attachment_bytes=2**20))
    ring = Keyring(home)
    dispatcher = Dispatcher(cast(UVM, mind), Uploads(home / "uploads", mind.settings.attachment_bytes))
    server = Server(dispatcher, ring, limits)
    async with server.serving(parse_listening(bind, "bind"), parse_listening(events, "events")) as places:
        yield WireServer(mind, server, dispatcher, places, ring)


def note_of(wire: WireServer, born: str | None = None) -> ServerRecord:
    """What a server leaves in its home, of one in this process."""
    pid = os.getpid()
    at, events = str(wire.places.bind), str(wire.places.events)
    return ServerRecord(
        pid, (addresses.birth_time(pid) or "") if born is None else born, "", at, events, "plain", "plain", "0"
    )


async def eventually(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    await until(condition, "what it waits for")
