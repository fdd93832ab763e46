"""The one dispatcher: what a verb of the protocol does with the UVM, for the wire and for the door inside a process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from batos import __version__
from batos.cognition.brief import AttachmentRef, File, as_file
from batos.cognition.brief import parse as parse_brief
from batos.errors import BatosError, BriefError, NotFound, TimedOut
from batos.front import choosing, protocol
from batos.front.protocol import (
    AdaptersUse,
    Attach,
    Genesis,
    Hello,
    Inspect,
    Missions,
    OfMission,
    Send,
    Show,
    Status,
    Steer,
    Submit,
    Turns,
    Wait,
)
from batos.genesis import budgetcheck
from batos.genesis.provision import Progress
from batos.image import roots

if TYPE_CHECKING:
    from batos.front.uploads import Uploads
    from batos.uvm import UVM

Hear: TypeAlias = Callable[[str, Mapping[str, Any]], None]
Acknowledge: TypeAlias = Callable[[Mapping[str, Any]], None]

#: Events of no mission that whoever follows one is told too: they explain what it waits for, or are alarms.
_SHARED: Final = frozenset({"genesis.step", "vram.sample", "vram.spill"})


class Dispatcher:
    """Does what requests ask. One for all doors, so that each verb means the same through every one of them."""

    def __init__(self, uvm: UVM, uploads: Uploads, *, works: bool = True) -> None:
        """`works`: what is submitted is begun at once; else only what its asker follows is."""
        self.uvm = uvm
        self.uploads = uploads
        self._works = works
        #: What `hello` and `status` say of the server that this serves.
        self.about: Mapping[str, Any] = {}
        self._verbs: Mapping[str, Callable[[Any, Hear, Acknowledge], Awaitable[dict[str, Any]]]] = {
            "hello": self._hello,
            "submit": self._submit,
            "wait": self._wait,
            "attach": self._attach,
            "missions": self._missions,
            "show": self._show,
            "turns": self._turns,
            "inspect": self._inspect,
            "send": self._send,
            "cancel": self._cancel,
            "pause": self._pause,
            "resume": self._resume,
            "status": self._status,
            "genesis": self._genesis,
            "adapters_use": self._adapters_use,
        }

    async def handle(self, verb: str, args: Mapping[str, Any], hear: Hear, acknowledge: Acknowledge) -> dict[str, Any]:
        """Do what a verb says and give its result.

        `hear` is told the events that the request follows, `acknowledge` once that a mission is durable. Raises
        BatosError: ProtocolError for what is no verb or not what it takes, else what the verb's work raises.
        """
        return await self._verbs[verb](protocol.read_args(verb, args), hear, acknowledge)

    # -- asking

    async def _submit(self, given: Submit, hear: Hear, acknowledge: Acknowledge) -> dict[str, Any]:
        brief = dict(given.brief)
        user = str(brief.get("user") or self.uvm.settings.asker)
        for name in ("ancestor", "in_reply_to"):
            if brief.get(name) == "last":
                brief[name] = await self._named("last", user)
        files = await self._files(brief.pop("attachments", None) or ())
        mission = await self.uvm.submit(brief, files)
        await self.uploads.forget(file.ref.sha256 for file in files)
        return await self._accepted(mission, hear, acknowledge, follow=given.follow)

    async def _accepted(self, mission: str, hear: Hear, acknowledge: Acknowledge, *, follow: bool) -> dict[str, Any]:
        acknowledge({"mission": mission})
        if not follow:
            if self._works:
                await self._begin(mission)
            return {"mission": mission, "status": (await self._report(mission))["status"]}
        hear("mission.accepted", {"mission": mission})
        with self._following(mission, hear):
            await self._begin(mission)
            return await self.uvm.ended(mission)

    async def _begin(self, mission: str) -> None:
        """Hand it to the workers, but a mission that a key named and that was begun before is what it is."""
        if (await self._report(mission))["status"] == "queued":
            await self.uvm.begin(mission)

    async def _files(self, refs: Any) -> list[File]:
        """What a brief's attachments name: sent before, or in the image already. BriefError: neither."""
        if not isinstance(refs, list | tuple):
            raise BriefError("attachments: it must be a list", field="attachments", remedy="Send a list of files.")
        limit = self.uvm.settings.attachment_bytes
        files = []
        # The brief's own rules, before bytes are looked for.
        for ref in parse_brief({"text": "-", "user": "-", "attachments": refs}).attachments:
            data = await self._content(ref)
            as_file(ref.name, data, limit)
            files.append(File(ref, data))
        return files

    async def _content(self, ref: AttachmentRef) -> bytes:
        data = await self.uploads.content(ref.sha256)
        if data is None:
            data = await asyncio.to_thread(self._kept, ref.sha256)
        if data is None:
            raise BriefError(
                f"{ref.name} was not sent: nothing is here with the SHA-256 {ref.sha256[:12]}…",
                field="attachments",
                remedy="Send it by `attach` first, every piece, then submit again.",
            )
        return data

    def _kept(self, sha256: str) -> bytes | None:
        """A file of the image; None where there is none, or a damaged one, which is to be sent anew."""
        with self.uvm.image.snapshot() as root:
            found = root[roots.ATTACHMENTS].get(sha256)
            data: bytes | None = None
            with suppress(BatosError):
                data = None if found is None else found.read()
            return data

    async def _attach(self, given: Attach, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        kept = await asyncio.to_thread(self._kept, given.sha256)
        if kept is not None:
            return {"sha256": given.sha256, "have": len(kept), "size": len(kept)}
        return await self.uploads.add(given.sha256, given.offset, given.data)

    async def _send(self, given: Send, hear: Hear, acknowledge: Acknowledge) -> dict[str, Any]:
        message = {"receiver": given.receiver, "selector": given.selector, "arguments": given.arguments}
        said = ", ".join(json.dumps(each, ensure_ascii=False) for each in given.arguments)
        brief: dict[str, Any] = {"text": f"{given.receiver} {given.selector}({said})"[:1_000], "message": message}
        if given.user is not None:
            brief["user"] = given.user
        if given.idempotency_key is not None:
            brief["idempotency_key"] = given.idempotency_key
        mission = await self.uvm.submit(brief)
        return await self._accepted(mission, hear, acknowledge, follow=given.follow)

    # -- following

    async def _wait(self, given: Wait, hear: Hear, acknowledge: Acknowledge) -> dict[str, Any]:
        mission = await self._of(given)
        found = await self._report(mission)
        acknowledge({"mission": mission, "status": found["status"], "attempt": found.get("attempt", 1)})
        try:
            async with asyncio.timeout(given.seconds):
                if not given.follow:
                    return await self.uvm.ended(mission)
                with self._following(mission, hear):
                    return await self.uvm.ended(mission)
        except TimeoutError:
            raise TimedOut(
                f"{mission} has not ended after {given.seconds:g} s", remedy="It goes on: wait for it again."
            ) from None

    @contextmanager
    def _following(self, mission: str, hear: Hear) -> Iterator[None]:
        """Pass on the events of a mission, and those that concern every one."""
        attempt, streamed = 0, False

        def told(event: str, keys: Mapping[str, Any]) -> None:
            nonlocal attempt, streamed
            if keys.get("mission") != mission and (event not in _SHARED or "mission" in keys):
                return
            if event == "mission.token":
                streamed = True
            elif event == "mission.retracted":
                streamed = False
            elif keys.get("attempt", attempt) > attempt:
                attempt = keys["attempt"]
                if streamed:  # it is told again from its beginning
                    streamed = False
                    hear("mission.retracted", {"mission": mission})
            hear(event, keys)

        leave = self.uvm.events.subscribe(told)
        try:
            yield
        finally:
            leave()

    # -- reading; in a thread, because an image on a disk may make it wait

    async def _named(self, mission: str, user: str | None) -> str:
        if mission != "last":
            return mission
        newest = await asyncio.to_thread(self.uvm.missions, 1, user=user or self.uvm.settings.asker)
        if not newest:
            raise NotFound("there is no mission yet", field="mission", remedy='Ask something: batos ask "..."')
        return str(newest[0]["id"])

    async def _of(self, given: OfMission) -> str:
        return await self._named(given.mission, given.user)

    async def _report(self, mission: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.uvm.mission, mission)

    async def _missions(self, given: Missions, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        found = await asyncio.to_thread(self.uvm.missions, given.limit, status=given.status, user=given.user)
        return {"missions": found}

    async def _show(self, given: Show, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        mission = await self._of(given)
        found = await self._report(mission)
        return {**found, "prompts": await asyncio.to_thread(self.uvm.prompts, mission)} if given.prompts else found

    async def _turns(self, given: Turns, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        return await asyncio.to_thread(self.uvm.turns, given.conversation, given.start, given.limit)

    async def _inspect(self, given: Inspect, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        if given.object is None:
            return await asyncio.to_thread(self.uvm.root_names)
        return await asyncio.to_thread(self.uvm.inspect, given.object)

    async def _hello(self, _given: Hello, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        limits = {
            "message_bytes": protocol.MESSAGE_BYTES,
            "depth": protocol.DEPTH,
            "piece_bytes": protocol.PIECE_BYTES,
            "attachment_bytes": self.uvm.settings.attachment_bytes,
        }
        about = {"batos": __version__, "pid": os.getpid(), "verbs": list(protocol.ARGS), "limits": limits}
        return {**about, **self.about}

    async def _status(self, _given: Status, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        found = await asyncio.to_thread(self.uvm.status)
        return {**found, "server": dict(self.about)} if self.about else found

    # -- steering

    async def _cancel(self, given: Steer, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        return await self.uvm.cancel(await self._of(given))

    async def _pause(self, given: Steer, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        return await self.uvm.pause(await self._of(given))

    async def _resume(self, given: Steer, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        return await self.uvm.resume(await self._of(given))

    async def _genesis(self, given: Genesis, hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        if given.plan:
            plan = await self.uvm.plan(prune=given.prune)
            table = await budgetcheck.table_of(plan, self.uvm.settings, self.uvm.bridge)
            return {**plan.as_dict(), "budget": table.as_dict()}

        def tell(progress: Progress) -> None:
            keys = {"completed": progress.completed, "total": progress.total}
            hear("genesis.step", {"step": progress.step, "status": progress.status, **keys})

        return (await self.uvm.genesis(tell, prune=given.prune)).as_dict()

    async def _adapters_use(self, given: AdaptersUse, _hear: Hear, _acknowledge: Acknowledge) -> dict[str, Any]:
        return await choosing.choose(self.uvm, given.persona, given.name)
