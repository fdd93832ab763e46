"""The one dispatcher: what a verb of the protocol does with the UVM, for the wire and for the door inside a process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from batos.client.pending import OnAcknowledged, OnEvent
from batos.concurrency.threads import LongWork
from batos.genesis import budget_check
from batos.genesis.codex import codex as codices
from batos.genesis.provision import StepProgress
from batos.history.copies import CopyParts, PastQuestion, PastQuestions, not_ended_error
from batos.image import ownership, roots
from batos.missions.mission_events import EventRelay
from batos.protocol import wire_messages
from batos.protocol.brief import AttachmentRef, File, as_file
from batos.protocol.brief import parse as parse_brief
from batos.protocol.errors import ApprovalNeeded, BatosError, BriefError, NoServer, NotFound, Refused
from batos.protocol.event_payloads import GENESIS_STEP, GenesisStep
from batos.protocol.mission_documents import MissionDocument, SubmittedMission
from batos.protocol.server_documents import (
    GenesisDocument,
    HelloDocument,
    LimitsDocument,
    PackedPage,
    PlannedGenesis,
    SentPiece,
    ServerDocument,
    ShownBudget,
    StatusDocument,
)
from batos.protocol.wire_messages import PIECE_BYTES, StrictModel
from batos.server.dispatch import (
    background_genesis,
    erasing,
    history_changes,
    lending,
    memory_changes,
    method_changes,
    motion_changes,
    scheduling,
    trial_changes,
)
from batos.server.dispatch.effect_changes import EffectChanges
from batos.server.dispatch.guests import CopyPlaces
from batos.server.dispatch.handling import Handler, answer, bind
from batos.server.dispatch.history_changes import Dreaming
from batos.server.dispatch.memory_changes import MemoryChanges
from batos.server.dispatch.reads import Reader
from batos.server.dispatch.sent_files import SentFiles
from batos.server.dispatch.watched_folders import WatchedFolders
from batos.uvm import UVM, open_copy
from batos.verbs.all_verbs import VERBS
from batos.verbs.approval_verbs import APPROVE, REJECT
from batos.verbs.mission_verbs import (
    ATTACH,
    CANCEL,
    DROP_FILES,
    PAUSE,
    RESUME,
    SEND,
    SUBMIT,
    WAIT,
    AttachArgs,
    MissionArgs,
    SendArgs,
    SubmitArgs,
    WaitArgs,
)
from batos.verbs.server_verbs import (
    ADAPTERS_USE,
    GENESIS,
    HELLO,
    PACK,
    STATUS,
    GenesisArgs,
    PackArgs,
    StatusArgs,
)
from batos.version import __version__

if TYPE_CHECKING:
    from batos.server.dispatch.background_genesis import BackgroundGenesis
    from batos.server.dispatch.uploads import Uploads

T = TypeVar("T")
#: Nobody goes on with these while no server runs.
_IDLE: Final = frozenset({"queued", "running", "waiting", "paused"})


class Dispatcher:
    """Does what requests ask. All doors share one dispatcher, so that each verb means the same through every door."""

    def __init__(
        self,
        uvm: UVM,
        uploads: Uploads,
        *,
        works: bool = True,
        background_genesis: BackgroundGenesis | None = None,
        places: CopyPlaces | None = None,
    ) -> None:
        """Make a dispatcher over a UVM. `works`: it begins every mission at once; else only those that are followed.

        `background_genesis` is what a server begins by itself, if it does, `places` are those for copies of the mind.
        """
        self.uvm, self.uploads, self._works = uvm, uploads, works
        if works:
            uvm.follow_ups.keep()
            uvm.approvals.keep(uvm.missions.enqueue)
            uvm.learning.keep()
        self._reader = Reader(uvm.readings, uvm.mission_memory.write)
        self._past = PastQuestions(
            CopyParts(
                uvm.image, uvm.journal, self._reader.past, partial(open_copy, uvm), (places or CopyPlaces()).place,
                uvm.packer.keeping, self._reader.find_moment, self._reader.find_past_question,
                uvm.heartbeat.heed_person,
            )
        )  # fmt: skip
        #: Works under way, each with what lets it end soon.
        self._unfinished: dict[asyncio.Future[Any], Callable[[], object] | None] = {}
        #: The part of `hello` and `status` that is about the server.
        self._about, self._background_genesis = ServerDocument(), background_genesis
        shield, self._sent = self._run_shielded, SentFiles(self._content, self.uploads.forget)
        self.folders = WatchedFolders(uvm, self._sent)
        self._verbs: Mapping[str, Handler] = {
            **self._own_verbs(),
            **self._reader.verbs(),
            **Dreaming(uvm, self._past, self._reader, self._files, shield).verbs(),
            **method_changes.verbs(uvm, shield),
            **EffectChanges(uvm, shield).verbs(),
            **history_changes.undo_verbs(uvm, shield),
            **motion_changes.verbs(uvm, shield),
            **trial_changes.verbs(uvm, self._past, shield),
            **scheduling.changes(uvm, shield),
            **lending.changes(uvm.readiness.tool_places.callers),
            **erasing.verbs(uvm, shield, self._past.leave),
            **memory_changes.correction_verbs(uvm, shield),
            **MemoryChanges(uvm, self._reader, self._sent, shield).verbs(),
        }

    def _own_verbs(self) -> Mapping[str, Handler]:
        uvm, missions, shield = self.uvm, self.uvm.missions, self._run_shielded
        return dict(
            (
                bind(HELLO, self._hello),
                bind(SUBMIT, self._submit),
                bind(WAIT, self._wait),
                bind(ATTACH, self._attach),
                bind(
                    DROP_FILES,
                    lambda given, *_told: shield(missions.drop_files(given.conversation, given.names, given.user)),
                ),
                bind(SEND, self._send),
                bind(CANCEL, self._cancel),
                bind(PAUSE, lambda given, *_told: self._steer(missions.pause, given)),
                bind(RESUME, lambda given, *_told: self._steer(missions.resume, given)),
                bind(STATUS, self._status),
                bind(GENESIS, self._genesis),
                bind(
                    ADAPTERS_USE,
                    lambda given, *_told: shield(background_genesis.choose_adapter(uvm, given.persona, given.name)),
                ),
                bind(APPROVE, lambda given, *_told: shield(method_changes.approve(uvm, given))),
                bind(REJECT, lambda given, *_told: shield(method_changes.reject(uvm, given))),
                bind(PACK, self._pack),
            )
        )

    def announce(self, about: Mapping[str, object]) -> None:
        """Tell clients this of the server from here on: where it listens is known when it does."""
        self._about = cast("ServerDocument", about)

    async def handle(
        self, verb: str, args: Mapping[str, object], on_event: OnEvent, on_acknowledged: OnAcknowledged
    ) -> dict[str, object]:
        """Do what a verb says and give its result; raises as `answer`.

        `on_event` is told the events that the request follows, `on_acknowledged` once that a mission is durable.
        """
        return await answer(self._verbs, verb, args, on_event, on_acknowledged)

    # -- asking

    async def _submit(
        self, given: SubmitArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged
    ) -> MissionDocument | SubmittedMission:
        if self._background_genesis is not None:
            self._background_genesis.refuse()
        brief = await self._reader.with_missions(given.brief)
        files = await self._files(brief.pop("attachments", None) or (), given.user)
        told = EventRelay(on_event, on_acknowledged, follow=given.follow)
        with lending.attach(self.uvm.readiness.tool_places.callers, given, on_event):
            if given.as_of is not None:
                return await self._past.ask(PastQuestion(given.as_of, brief, files, given.user), told)
            return await self._accept_and_follow(brief, files, told, given.user)

    async def _accept_and_follow(
        self, brief: Mapping[str, object], files: Sequence[File], told: EventRelay, user: str | None = None
    ) -> MissionDocument | SubmittedMission:
        """Accept a mission and hand it to the workers, whether its asker stays or not; then tell its end.

        `user` is whose files they are, where they are not the home's.
        """
        try:
            mission = await self._run_shielded(self._accept(brief, files, told, user or ""))
            if told.follow:
                return self._wait_for_end(await self.uvm.missions.wait_for_end(mission))
            return {"mission": mission, "status": (await self._reader.report(mission))["status"]}
        finally:
            told.leave()

    async def _accept(self, brief: Mapping[str, object], files: Sequence[File], told: EventRelay, user: str) -> str:
        told.listen(self.uvm.events)
        works = told.follow or self._works
        mission = await self.uvm.missions.submit(brief, files, begin=works)
        await self.uploads.forget((file.ref.sha256 for file in files), user)
        told.acknowledge(mission)
        if works:
            with suppress(Refused):  # a key named one that has ended, or stands still: it is what it is
                await self.uvm.missions.begin(mission)
        return mission

    async def _run_shielded(self, work: Coroutine[Any, Any, T], stop: Callable[[], object] | None = None) -> T:
        """Do something to its end, also when who asked for it is gone in the middle of it."""
        task = asyncio.ensure_future(work)
        self._unfinished[task] = stop
        task.add_done_callback(self._unfinished.pop)
        return await asyncio.shield(task)

    async def wait_until_settled(self) -> None:
        """Wait until what may not be left half done is done; long work ends at its next step."""
        for stop in filter(None, tuple(self._unfinished.values())):
            stop()
        await self._past.aclose()
        await asyncio.gather(*self._unfinished, return_exceptions=True)

    def _wait_for_end(self, found: MissionDocument) -> MissionDocument:
        if found["status"] in ("queued", "running"):
            raise NoServer(
                "the server stops; the mission continues when the server runs again", remedy="Wait for it again then."
            )
        return found

    async def _files(self, refs: object, user: str | None) -> list[File]:
        """Fetch the files that a brief's attachments name: sent before, or in the image and this user's. BriefError."""
        if not isinstance(refs, list | tuple):
            raise BriefError("attachments: it must be a list", field="attachments", remedy="Send a list of files.")
        files, limit = list[File](), self.uvm.settings.attachment_bytes
        # The brief's own rules, before bytes are looked for.
        for ref in parse_brief({"text": "-", "user": "-", "attachments": refs}).attachments:
            data = await self._content(ref, user)
            as_file(ref.name, data, limit)
            files.append(await self._sent.as_text(File(ref, data), limit))
        return files

    async def _content(self, ref: AttachmentRef, user: str | None) -> bytes:
        data = await self.uploads.content(ref.sha256, user or "")
        if data is None:
            data = await self._reader.read(self._stored_file, ref.sha256, user)
        if data is None:
            raise BriefError(
                f"{ref.name} was not sent: nothing is here with the SHA-256 {ref.sha256[:12]}…",
                field="attachments",
                remedy="Send it by `attach` first, every piece, then submit again.",
            )
        return data

    def _stored_file(self, sha256: str, user: str | None) -> bytes | None:
        """Return a file of the image; None if this user has none, or if it is damaged and must be sent anew."""
        with self.uvm.image.snapshot() as root:
            found = root[roots.ATTACHMENTS].get(sha256)
            if found is None or (user is not None and not ownership.has_sent(root, sha256, user)):
                return None
            data: bytes | None = None
            with suppress(BatosError):
                data = found.read()
            return data

    async def _attach(self, given: AttachArgs, *_told: object) -> SentPiece:
        kept = await self._reader.read(self._stored_file, given.sha256, given.user)
        if kept is not None:
            return {"sha256": given.sha256, "have": len(kept), "size": len(kept)}
        return await self.uploads.add(given.sha256, given.offset, given.data, given.user or "")

    async def _send(
        self, given: SendArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged
    ) -> MissionDocument | SubmittedMission:
        message = {"receiver": given.receiver, "selector": given.selector, "arguments": given.arguments}
        said = ", ".join(json.dumps(each, ensure_ascii=False) for each in given.arguments)
        brief: dict[str, Any] = {"text": f"{given.receiver} {given.selector}({said})"[:1_000], "message": message}
        if given.policy is not None:
            brief["policy"] = given.policy.model_dump(exclude_none=True)
        if given.grants:
            brief["grants"] = list(given.grants)
        if given.user is not None:
            brief["user"] = given.user
        if given.idempotency_key is not None:
            brief["idempotency_key"] = given.idempotency_key
        return await self._accept_and_follow(brief, (), EventRelay(on_event, on_acknowledged, follow=given.follow))

    async def _pack(self, given: PackArgs, *_told: object) -> PackedPage:
        work = LongWork()
        return await self._run_shielded(self.uvm.packer.pack(given.keep_days, work), work.stop)

    # -- following

    async def _wait(self, given: WaitArgs, on_event: OnEvent, on_acknowledged: OnAcknowledged) -> MissionDocument:
        told = EventRelay(on_event, on_acknowledged, follow=given.follow)
        try:
            mission = await self._reader.mission_id(given)
            is_here = self._works or self.uvm.workers.has(mission)  # before it is read: it may end meanwhile
            found = await self._reader.report(mission)
        except NotFound:
            asked = await self._past.wait(given, told)
            if asked is None:
                raise
            return asked
        if not is_here:
            _refuse_idle(found)
        on_acknowledged({"mission": mission, "status": found["status"], "attempt": 1})
        if given.follow:
            told.begin(self.uvm.events, mission)
        try:
            async with asyncio.timeout(given.seconds):
                return self._wait_for_end(await self.uvm.missions.wait_for_end(mission))
        except TimeoutError:
            raise not_ended_error(mission, given.seconds) from None
        finally:
            told.leave()

    # -- reading

    async def _hello(self, _given: StrictModel, *_told: object) -> HelloDocument:
        limits = LimitsDocument(
            message_bytes=wire_messages.MESSAGE_BYTES, depth=wire_messages.DEPTH, piece_bytes=PIECE_BYTES,
            attachment_bytes=self.uvm.settings.attachment_bytes,
        )  # fmt: skip
        return {"batos": __version__, "pid": os.getpid(), "verbs": list(VERBS), "limits": limits, **self._about}

    async def _status(self, given: StatusArgs, *_told: object) -> StatusDocument:
        found = await self.uvm.standing(await self._reader.read(self.uvm.status, given.user))
        shown = cast("StatusDocument", {**found, "genesis": None})
        if self._background_genesis is not None and (told := self._background_genesis.progress()) is not None:
            shown["genesis"], shown["ready"] = told, False
            shown["reasons"] = [self._background_genesis.refusal().as_dict(), *found["reasons"]]
        shown["heartbeat"] = await self._reader.read(self.uvm.heartbeat.describe, given.user)
        shown["server"] = self._about or None
        if given.rates:
            shown["rates"] = await self._reader.read(self.uvm.rates, given.user)
        return shown

    # -- steering

    async def _steer(
        self, how: Callable[[str], Coroutine[Any, Any, MissionDocument]], given: MissionArgs
    ) -> MissionDocument:
        return await self._run_shielded(how(await self._reader.mission_id(given)))

    async def _cancel(self, given: MissionArgs, *_told: object) -> MissionDocument:
        try:
            return await self._steer(self.uvm.missions.cancel, given)
        except NotFound:
            asked = await self._past.cancel(given)
            if asked is None:
                raise
            return asked

    async def _genesis(self, given: GenesisArgs, on_event: OnEvent, *_told: object) -> GenesisDocument | PlannedGenesis:
        if given.model is not None:
            settings = self.uvm.settings
            await asyncio.to_thread(codices.choose_model, settings.home / "codex", settings.profile, given.model)
        if given.plan:
            plan = await self.uvm.reconciler.plan(prune=given.prune)
            table = await budget_check.table_of(plan, self.uvm.settings, self.uvm.bridge)
            budget: ShownBudget = {**table.as_dict(), "lines": table.lines()}
            return {**plan.as_dict(), "budget": budget}

        def tell(now: StepProgress) -> None:
            step = GenesisStep(step=now.step, status=now.status, completed=now.completed, total=now.total)
            on_event(GENESIS_STEP.name, step)

        return (await self.uvm.readiness.genesis(tell, prune=given.prune)).as_dict()


def _refuse_idle(found: MissionDocument) -> None:
    """Refuse to wait for what nobody goes on with; what waits for a person is told at once."""
    why = found["reason"]["code"] if found["status"] == "waiting" and "reason" in found else ""
    if found["status"] in _IDLE and why != ApprovalNeeded.code:
        raise NoServer(
            f"no server runs, so no process runs {found['id']} ({found['status']})",
            remedy=f"Start one with `batos serve`, or run it here: `batos resume {found['id']}`.",
        )
