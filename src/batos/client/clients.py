"""The clients of a server: `AsyncClient` for programs with an event loop, `Client` for those without one.

A call of `Client` runs on the event loop of a thread that it has, so that there is one way to a server and not two.
Its listeners (`on_event`) are called in that thread.
"""

from __future__ import annotations

import asyncio
import functools
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar, cast

from batos.client.keys import Credentials, ServerAddress
from batos.client.line import Line, Patience, line_to
from batos.client.named_documents import AsyncStream, Document, Mission, MissionLine, Stream
from batos.client.pending import OnAcknowledged, OnEvent, send_files
from batos.client.portal import Portal
from batos.client.tool_functions import Approve, ToolCalls
from batos.protocol.brief import File, read_file
from batos.protocol.effect_documents import EffectList, GrantList
from batos.protocol.errors import UsageError
from batos.protocol.image_documents import WhyNode
from batos.protocol.memory_documents import ForgottenPage, RecalledPage, RedonePage, RememberedPage, UndonePage
from batos.protocol.method_documents import ApprovalDocument, ApprovalList, ApprovedDocument, RejectedDocument
from batos.protocol.trial_documents import TrialDocument
from batos.verbs.approval_verbs import APPROVALS, APPROVE, REJECT
from batos.verbs.effect_verbs import EFFECTS, GRANTS
from batos.verbs.history_verbs import REDO, UNDO
from batos.verbs.memory_verbs import FORGET, RECALL, REMEMBER
from batos.verbs.mission_verbs import WHY
from batos.verbs.wire_verb import Args, Reply, WireVerb

#: A file to ask about: the path of a text file, or what `as_file` made of bytes.
Attached: TypeAlias = str | Path | File
#: Bytes of a file that is read at all; the server has a smaller limit of its own.
_LARGEST = 2**30


def _as_document(brief: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a brief with the JSON schema of a pydantic model in the place of the model."""
    write = getattr(brief.get("schema"), "model_json_schema", None)
    return brief if write is None else {**brief, "schema": write()}


class AsyncClient:
    """A client of a BAT OS server, which outlives the server's restarts. Calls may be made concurrently.

    AsyncClient() speaks to the server of the default home (or to the one that the setting `server` names),
    AsyncClient(home) to that home's, AsyncClient(server=...) to tcp://127.0.0.1:PORT (with the home's token) or to the
    one that a key file is for (docs/protocol.md). The first call connects; `async with` connects at once. A home's
    server is started where none runs, unless the setting `server` is `never` or `starts` is False.

    Every call that was under way when the server was lost is asked again when it is back: reading and waiting harm
    nothing twice, and a mission is found again by its idempotency key. A listener (`on_event`) is then told
    `connection.lost` and `connection.restored`, and `mission.retracted` where tokens had come.
    """

    def __init__(
        self,
        home: Path | str | None = None,
        *,
        server: str | None = None,
        patience: Patience | None = None,
        starts: bool = True,
    ) -> None:
        self._line = line_to(home, server=server, patience=patience, starts=starts)

    @classmethod
    def by(cls, endpoint: str, credentials: Credentials, patience: Patience | None = None) -> Self:
        """Make a client of the server at an address, with these credentials."""
        made = cls.__new__(cls)
        made._line = Line(lambda: ServerAddress(endpoint, "", credentials, credentials), patience)
        return made

    async def __aenter__(self) -> Self:
        """Connect. NoServer: none runs or answers; Unauthorised: it does not know this client."""
        try:
            await self._line.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Close the connection; accepted missions continue at the server."""
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way fail with NoServer."""
        await self._line.close()

    # -- asking

    async def ask(
        self,
        /,
        text: str,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        *,
        files: Sequence[Attached] = (),
        as_of: str | None = None,
        tools: Sequence[Callable[..., object]] = (),
        **brief: object,
    ) -> Mission:
        """Ask, wait for the mission's end, and return it with any status; `answer` has the text if it is done.

        `brief` has further fields of a brief: conversation="last", persona="BRICK", effort="reflex" (docs/protocol.md
        has them all); `schema` takes a pydantic model too, and `Mission.value` is the answer by it. `on_event` gets
        every event of the mission, `on_acknowledged` its id once it is committed.
        `as_of` asks the mind as it was at a time, right after a mission, or at a commit; nothing is kept of that.
        `tools` are functions of this program that the mission may call, and `approve=` (an `Approve`) decides about the
        calls that may change something, also of tools in files (docs/tools.md).
        """
        approve = cast("Approve | None", brief.pop("approve", None))
        whole = {**_as_document(brief), "text": text, "attachments": await self.attach(files)}
        args = {"brief": whole, "follow": True, **_moment(as_of)}
        if not tools and approve is None:
            return Mission(await self.call("submit", args, on_event, on_acknowledged))
        async with ToolCalls(tools, approve, self.call, on_event) as calls:
            args["brief"] = {**whole, "tools": calls.declarations, "caller": calls.caller}
            return Mission(await self.call("submit", args, calls.on_event, on_acknowledged))

    def stream(
        self, text: str, *, files: Sequence[Attached] = (), as_of: str | None = None, **brief: object
    ) -> AsyncStream:
        """Ask and read the answer as it is written, token by token; `brief` takes what `ask` takes."""

        async def asking(on_event: OnEvent, on_acknowledged: OnAcknowledged) -> Mission:
            return await self.ask(text, on_event, on_acknowledged, files=files, as_of=as_of, **cast("Any", brief))

        return AsyncStream(asking)

    async def submit(self, /, text: str, *, files: Sequence[Attached] = (), **brief: object) -> str:
        """Submit a question and return the id of its mission, which the server has committed by then."""
        if "tools" in brief:
            raise UsageError("tools are run while the program waits", remedy="Use `ask` or `stream`.")
        whole = {**_as_document(brief), "text": text, "attachments": await self.attach(files)}
        return str((await self.call("submit", {"brief": whole}))["mission"])

    async def wait(self, mission: str, on_event: OnEvent | None = None, seconds: float | None = None) -> Mission:
        """Wait for a mission's end; TimedOut after `seconds`, and the mission goes on."""
        args = {"mission": mission, "follow": on_event is not None}
        return Mission(await self.call("wait", args if seconds is None else {**args, "seconds": seconds}, on_event))

    async def send(
        self, receiver: str, selector: str, arguments: Sequence[object] = (), on_event: OnEvent | None = None
    ) -> Mission:
        """Send a message to an object and wait for the mission that delivers it."""
        message = {"receiver": receiver, "selector": selector, "arguments": list(arguments)}
        return Mission(await self.call("send", {**message, "follow": True}, on_event))

    async def attach(self, files: Sequence[Attached]) -> list[Document]:
        """Hand over the bytes of files that the server lacks; return the references that a brief carries."""
        found = [
            each if isinstance(each, File) else await asyncio.to_thread(read_file, Path(each), _LARGEST)
            for each in files
        ]
        return await send_files(self.call, found)

    # -- looking

    async def missions(self, /, limit: int = 20, **which: str) -> list[MissionLine]:
        """List the newest missions, a line each; `status` and `user` pick."""
        return [MissionLine(each) for each in (await self.call("missions", {"limit": limit, **which}))["missions"]]

    async def show(self, mission: str = "last", *, prompts: bool = False, as_of: str | None = None) -> Mission:
        """Return the whole mission, with the exact text of every prompt if `prompts` is set."""
        return Mission(await self.call("show", {"mission": mission, "prompts": prompts, **_moment(as_of)}))

    async def turns(self, conversation: str, start: int = 1, limit: int = 20, *, as_of: str | None = None) -> Document:
        """Show a conversation's turns by position."""
        args = {"conversation": conversation, "start": start, "limit": limit, **_moment(as_of)}
        return await self.call("turns", args)

    async def inspect(self, reference: str | None = None, *, as_of: str | None = None) -> Document:
        """Show an object or a slot of the image; without a reference, the names of its root."""
        named = {} if reference is None else {"object": reference}
        return await self.call("inspect", {**named, **_moment(as_of)})

    async def why(self, what: str, *, as_of: str | None = None) -> WhyNode:
        """Return the path that a sentence, a mission, a slot or a memory came from, as a tree."""
        return await self.request(WHY, what=what, **_moment(as_of))

    async def recall(self, /, query: str, limit: int = 5, **which: object) -> RecalledPage:
        """Find the parts of what is remembered that match a query best; `which` are the further fields of the verb."""
        return await self.request(RECALL, query=query, limit=limit, **which)

    async def grants(self) -> GrantList:
        """List what missions may do in the world."""
        return await self.request(GRANTS)

    async def effects(self, /, limit: int = 50, **which: str) -> EffectList:
        """List what missions did in the world, the newest first; `mission` and `user` pick."""
        return await self.request(EFFECTS, limit=limit, **which)

    async def approvals(self, /, limit: int = 20, **which: str) -> ApprovalList | ApprovalDocument | TrialDocument:
        """List what waits for a person, or show the one that `approval` names."""
        return await self.request(APPROVALS, limit=limit, **which)

    async def status(self) -> Document:
        """Return the server's status."""
        return await self.call("status")

    async def hello(self) -> Document:
        """Return the server's version and limits."""
        return await self.call("hello")

    async def watch(self, topics: Sequence[str] = ("",)) -> AsyncGenerator[Document, None]:
        """Yield notices of what happens, for all topics that begin so: v, seq, at, event, and the event's keys.

        Raises NoServer when the server is lost, or this client closed.
        """
        async for notice in self._line.watch(topics):
            yield notice

    # -- steering

    async def cancel(self, mission: str) -> Mission:
        """End a mission at once."""
        return Mission(await self.call("cancel", {"mission": mission}))

    async def pause(self, mission: str) -> Mission:
        """Pause a mission once the calls under way have ended."""
        return Mission(await self.call("pause", {"mission": mission}))

    async def resume(self, mission: str) -> Mission:
        """Resume a mission; no answer is paid for twice."""
        return Mission(await self.call("resume", {"mission": mission}))

    async def genesis(self, on_event: OnEvent | None = None, *, plan: bool = False, prune: bool = False) -> Document:
        """Make models and image match the codex; `plan`: only return the steps."""
        return await self.call("genesis", {"plan": plan, "prune": prune}, on_event)

    # -- changing

    async def undo(self, /, mission: str = "last", **how: object) -> UndonePage:
        """Take a mission out of the mind; `cascade`, `dry_run` and `keep` say how."""
        return await self.request(UNDO, mission=mission, **how)

    async def redo(self, mission: str | None = None, *, cascade: bool = False) -> RedonePage:
        """Bring an undone mission back; without a name that of the newest undo."""
        return await self.request(REDO, cascade=cascade, **({} if mission is None else {"mission": mission}))

    async def remember(self, /, text: str, **about: object) -> RememberedPage:
        """Remember a text; `about` has the further fields of the verb: source, title, key, scope."""
        return await self.request(REMEMBER, text=text, **about)

    async def forget(self, *documents: str) -> ForgottenPage:
        """Forget memories by their ids or sources: all that are named, or none."""
        return await self.request(FORGET, documents=list(documents))

    async def approve(self, *approvals: str, plan: str | None = None) -> ApprovedDocument:
        """Approve methods by the ids of their approvals, and changes by those of their trials.

        `plan` are the lines of one plan as you changed them.
        """
        edited = {} if plan is None else {"plan": plan}
        return await self.request(APPROVE, approvals=list(approvals), **edited)

    async def reject(self, approval: str, why: str) -> RejectedDocument:
        """Reject a method, whose missions are told the reason, or a change of the mind."""
        return await self.request(REJECT, approval=approval, why=why)

    async def request(self, verb: WireVerb[Args, Reply], on_event: OnEvent | None = None, /, **fields: object) -> Reply:
        """Call a verb by its declaration in batos.verbs, and return the reply with its type; raises as `call`."""
        return cast("Reply", await self.call(verb.name, fields, on_event))

    async def call(
        self,
        verb: str,
        args: Mapping[str, object] | None = None,
        on_event: OnEvent | None = None,
        on_acknowledged: OnAcknowledged | None = None,
        *,
        seconds: float | None = None,
    ) -> Document:
        """Call any verb of docs/protocol.md and return its result.

        Raises the BatosError that the server told, by its code; NoServer: it was lost and did not come back;
        TimedOut: nothing came for too long, or the result not within `seconds`.
        """
        return await self._line.call(verb, args, on_event, on_acknowledged, seconds=seconds)


def _moment(as_of: str | None) -> dict[str, str]:
    """Return the argument that names a moment of the past; none is now."""
    return {} if as_of is None else {"as_of": as_of}


P = ParamSpec("P")
T = TypeVar("T")


def _wait_for(method: Callable[Concatenate[AsyncClient, P], Awaitable[T]]) -> Callable[Concatenate[Client, P], T]:
    """Return the method of a client that waits for this one of its twin."""

    @functools.wraps(method)
    def run(client: Client, /, *args: P.args, **more: P.kwargs) -> T:
        return client.portal.run(method, client.twin, *args, **more)

    return run


class Client:
    """A client of a BAT OS server for a program without an event loop: its calls are those of AsyncClient.

    Client() speaks to the server of the default home (or to the one that the setting `server` names),
    Client(home) to that home's, Client(server=...) to tcp://127.0.0.1:PORT (with the home's token) or to the
    one that a key file is for (docs/protocol.md). The first call connects; `with` connects at once.
    """

    def __init__(
        self, home: Path | str | None = None, *, server: str | None = None, patience: Patience | None = None
    ) -> None:
        self._take(AsyncClient(home, server=server, patience=patience))

    def _take(self, twin: AsyncClient) -> None:
        self.portal, self.twin = Portal(), twin
        # The client is closed at the latest when the program ends, or when nobody refers to it any more.
        self._finalizer = weakref.finalize(self, self.portal.close, twin.close)

    @classmethod
    def by(cls, endpoint: str, credentials: Credentials, patience: Patience | None = None) -> Self:
        """Make a client of the server at an address, with these credentials."""
        made = cls.__new__(cls)
        made._take(AsyncClient.by(endpoint, credentials, patience))
        return made

    def __enter__(self) -> Self:
        """Connect. NoServer: none runs or answers; Unauthorised: it does not know this client."""
        self.portal.run(self.twin.__aenter__)
        return self

    def __exit__(self, *_raised: object) -> None:
        """Close the connection; accepted missions continue at the server."""
        self.close()

    def close(self) -> None:
        """Close the connection; calls under way fail with NoServer."""
        self._finalizer()

    def stream(self, text: str, *, files: Sequence[Attached] = (), as_of: str | None = None, **brief: object) -> Stream:
        """Ask and read the answer as it is written, token by token; `brief` takes what `ask` takes."""
        return Stream(self.portal, self.twin.stream(text, files=files, as_of=as_of, **brief))

    def watch(self, topics: Sequence[str] = ("",)) -> Generator[Document, None, None]:
        """Yield notices of what happens, as `AsyncClient.watch` does."""
        yield from self.portal.each(self.twin.watch, topics)

    ask = _wait_for(AsyncClient.ask)
    submit = _wait_for(AsyncClient.submit)
    wait = _wait_for(AsyncClient.wait)
    send = _wait_for(AsyncClient.send)
    attach = _wait_for(AsyncClient.attach)
    missions = _wait_for(AsyncClient.missions)
    show = _wait_for(AsyncClient.show)
    turns = _wait_for(AsyncClient.turns)
    inspect = _wait_for(AsyncClient.inspect)
    why = _wait_for(AsyncClient.why)
    status = _wait_for(AsyncClient.status)
    hello = _wait_for(AsyncClient.hello)
    cancel = _wait_for(AsyncClient.cancel)
    pause = _wait_for(AsyncClient.pause)
    resume = _wait_for(AsyncClient.resume)
    genesis = _wait_for(AsyncClient.genesis)
    undo = _wait_for(AsyncClient.undo)
    redo = _wait_for(AsyncClient.redo)
    remember = _wait_for(AsyncClient.remember)
    recall = _wait_for(AsyncClient.recall)
    forget = _wait_for(AsyncClient.forget)
    grants = _wait_for(AsyncClient.grants)
    effects = _wait_for(AsyncClient.effects)
    approvals = _wait_for(AsyncClient.approvals)
    approve = _wait_for(AsyncClient.approve)
    reject = _wait_for(AsyncClient.reject)
    request = _wait_for(AsyncClient.request)
    call = _wait_for(AsyncClient.call)
