"""A question of a client as a mission: its brief, its events on their way to a stream, its end if the client leaves."""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from batos.concurrency.threads import on_this_loop
from batos.door_settings import DoorSettings
from batos.image.ownership import CHORE
from batos.protocol.brief import NO_MEMORY, File, as_file, client_name
from batos.protocol.errors import BatosError, NoServer, Refused
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.wire_messages import PIECE_BYTES, mission_error
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import guest, limit_guest
from batos.server.http.citation_marks import LineNumbers, mark_of
from batos.server.http.client_tools import SentTools, calls_of, choose_tools
from batos.server.http.door_models import ModelChoice
from batos.server.http.histories import Histories, digest_of_calls, in_pairs
from batos.server.http.sent_messages import SentMessage, SentMessages, as_text, is_chore, shorten_question

#: Characters of a client's system text that a brief takes; a longer one is a file.
_SYSTEM: Final = 4_000
Door: TypeAlias = Literal["openai", "ollama"]


class StreamItem(NamedTuple):
    """A thing that a stream tells: a word, progress in a line, that words are withdrawn, or that the stream goes on."""

    kind: Literal["word", "mark", "progress", "retracted", "beat"]
    text: str = ""
    keys: Mapping[str, Any] = {}


_BEAT: Final = StreamItem("beat")


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """A question as a face has read it. `fields` are those of a brief that the client has named itself."""

    door: Door
    model: ModelChoice
    said: SentMessages
    fields: Mapping[str, Any] = field(default_factory=dict)
    client: str = ""
    tools: SentTools | None = None
    #: True if earlier messages make a conversation; else the question stands alone, or replies by its fields.
    remembers: bool = True


class Inbox:
    """The items that were told and are not sent yet: words in a row are one, so that a slow reader holds up nobody."""

    def __init__(self) -> None:
        self._waiting: deque[StreamItem] = deque()
        self._words: list[str] = []
        self._is_new = asyncio.Event()
        self.is_stopping = False

    def put(self, told: StreamItem) -> None:
        """Add what is told."""
        if told.kind == "word":
            self._words.append(told.text)
        else:
            self._close_words()
            self._waiting.append(told)
        self._is_new.set()

    def _close_words(self) -> None:
        if self._words:
            self._waiting.append(StreamItem("word", "".join(self._words)))
            self._words.clear()

    def wake(self, *_ended: object) -> None:
        """Let the reader look again."""
        self._is_new.set()

    def stop(self) -> None:
        """Send the reader word that the server stops."""
        self.is_stopping = True
        self.wake()

    def take(self) -> StreamItem | None:
        """Return the next that waits; None if nothing does."""
        self._close_words()
        return self._waiting.popleft() if self._waiting else None

    async def wait(self, seconds: float) -> bool:
        """Wait until there is something to look at; return False if nothing came within the time."""
        if not self._is_new.is_set():
            try:
                async with asyncio.timeout(seconds):
                    await self._is_new.wait()
            except TimeoutError:
                return False
        self._is_new.clear()
        return True


class Following:
    """A mission that was accepted, and its events until it ends."""

    def __init__(self, beat: float, lines: LineNumbers) -> None:
        self.mission = ""
        #: The turns before the question, as a chain of digests; None: no history is kept of it.
        self.history: str | None = None
        self.inbox = Inbox()
        self.work: asyncio.Future[dict[str, Any]] | None = None
        self.is_accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._beat, self.lines = beat, lines
        self._parts = 0

    def acknowledge(self, told: Mapping[str, object]) -> None:
        """Note the mission, which is durable now."""
        self.mission = self.mission or str(told.get("mission", ""))
        if not self.is_accepted.done():
            self.is_accepted.set_result(None)

    async def wait_for_acceptance(self) -> None:
        """Wait until the mission is durable, or was not accepted."""
        waited: set[asyncio.Future[Any]] = {self.is_accepted, *filter(None, (self.work,))}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Take an event of the mission."""
        if event == "mission.token":
            self.inbox.put(StreamItem("word", keys["text"]))
        elif event == "mission.retracted":
            self.inbox.put(StreamItem("retracted"))
        elif event == "mission.citation":
            self.inbox.put(StreamItem("mark", keys=keys))
        elif (line := self._progress(event, keys)) is not None:
            self.inbox.put(StreamItem("progress", line))

    def _progress(self, event: str, keys: Mapping[str, Any]) -> str | None:
        """Return what an event tells a person who waits, in a line; None if nothing."""
        if event == "mission.routed" and keys["personas"]:
            return f"{', '.join(keys['personas'])}: {keys['effort'] or 'thinking'}."
        if event == "mission.partial":
            self._parts += 1
            return f"{self._parts} of {max(self._parts, int(keys['of']))} parts are back."
        if event == "mission.status" and keys["status"] == "waiting" and keys["reason"]:
            return f"It waits: {keys['reason']['message']}."
        if event == "genesis.step":
            return f"{keys['step']}: {keys['status']}."
        return None

    async def follow(self) -> AsyncIterator[StreamItem]:
        """Yield what is told until the mission ends, and a beat where nothing is for long.

        Raises: NoServer: the server stops.
        """
        work = self.work
        while work is not None:
            ended = work.done()
            while (told := self.inbox.take()) is not None:
                if told.kind == "mark":  # the first of a file reads it
                    told = told._replace(text=await asyncio.to_thread(mark_of, told.keys, self.lines))
                yield told
            if ended:
                return
            if self.inbox.is_stopping:
                raise stopping()
            if not await self.inbox.wait(self._beat):
                yield _BEAT

    async def document(self) -> MissionDocument:
        """Return the mission's document once it is done. Raises: BatosError: it has no answer, and why."""
        async for _told in self.follow():
            pass
        if self.work is None:
            raise stopping()
        found: MissionDocument = self.work.result()  # type: ignore[assignment]  # the reply of `submit` that follows
        if found["status"] != "done":
            raise mission_error(found)
        return found


class ClientMissions:
    """Turns what a face has read into missions, by the dispatcher that all doors share."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        settings: DoorSettings,
        histories: Histories,
        beat: float,
        is_person: Callable[[str], bool],
    ) -> None:
        self.dispatcher, self.settings, self._beat = dispatcher, settings, beat
        self.is_person = is_person
        self._histories, self._lines = histories, LineNumbers(dispatcher.uvm.image)
        self._open: set[Following] = set()
        self._tasks: set[asyncio.Future[Any]] = set()

    @property
    def streams(self) -> int:
        """Count the missions that clients follow now."""
        return len(self._open)

    def stop(self) -> None:
        """End every stream: its client is told that the server stops."""
        for each in tuple(self._open):
            each.inbox.stop()

    async def settle(self) -> None:
        """Wait until what was begun for clients that have left is done."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def user_of(self, came_in: str) -> str:
        """Return the user that a client asks as."""
        return guest(came_in) or self.dispatcher.uvm.settings.asker

    async def call(self, verb: str, args: Mapping[str, object], came_in: str) -> dict[str, Any]:
        """Call a verb for a client, within its rights. Raises: BatosError: as the verb."""
        limited = limit_guest(verb, args, came_in)
        return await self.dispatcher.handle(verb, limited, lambda *_event: None, lambda _told: None)

    async def begin(self, ask: ClientQuestion, came_in: str, *, follow: bool = True) -> Following:
        """Submit a question and return its mission once it is durable.

        Raises: BatosError: it is not accepted, and why.
        """
        following = Following(self._beat, self._lines)
        brief, files = await self._brief(ask, came_in, following)
        user = self.user_of(came_in)
        refs = [await self._send(each, came_in) for each in files]
        args: dict[str, object] = {"brief": {**brief, "user": user, "attachments": refs}, "follow": follow}
        args = dict(limit_guest("submit", args, came_in))
        following.work = self._task(
            self.dispatcher.handle(
                "submit", args, on_this_loop(following.on_event), on_this_loop(following.acknowledge)
            )
        )
        following.work.add_done_callback(following.inbox.wake)
        self._open.add(following)
        following.work.add_done_callback(lambda _work: self._open.discard(following))
        try:
            await following.wait_for_acceptance()
        except asyncio.CancelledError:
            self.leave(following)
            raise
        if not following.is_accepted.done():
            following.work.result()  # raises why it was not accepted
        return following

    def note(self, following: Following, ask: ClientQuestion, came_in: str, found: MissionDocument, sent: str) -> None:
        """Note an answered turn as its client will send it again: the answer, and what was sent if that is another."""
        if following.history is None:
            return
        user, conversation = self.user_of(came_in), found["brief"].get("conversation")
        if wanted := calls_of(found):
            digest = digest_of_calls(following.history, ask.said.question, in_pairs(wanted))
            self._histories.note_calls(user, following.mission, conversation, digest)
            return
        for text in dict.fromkeys((sent, str(found.get("answer", "")))):
            said = ask.said.question, text
            self._histories.note(user, following.mission, conversation, following.history, said)

    def leave(self, following: Following) -> None:
        """Let a client go in the middle: its mission is cancelled, unless the settings say that it is finished."""
        self._open.discard(following)
        if following.inbox.is_stopping or self.settings.on_disconnect == "finish":
            return
        _ = self._task(self._cancel(following))

    async def _cancel(self, following: Following) -> None:
        """Cancel a mission, when it is durable, unless it has ended."""
        await following.wait_for_acceptance()
        if following.mission and following.work is not None and not following.work.done():
            with suppress(BatosError):  # it has ended, or the server stops
                await self.call("cancel", {"mission": following.mission}, "token")

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # who waits for it has seen it; where nobody does any more it is no fault

    # -- briefs

    async def _brief(
        self, ask: ClientQuestion, came_in: str, following: Following
    ) -> tuple[dict[str, Any], list[File]]:
        """Return the brief of a question, and the files that come with it."""
        brief: dict[str, Any] = dict(ask.fields)
        files: list[File] = []
        origin: dict[str, object] = {"door": ask.door, "client": client_name(ask.client)}
        if self.is_person(came_in):
            origin["typed"] = True
        if ask.model.persona is not None:
            brief["persona"] = ask.model.persona
        if ask.model.effort is not None:
            brief["effort"] = ask.model.effort
        brief["text"] = ask.said.question
        if (short := shorten_question(ask.said.question)) is not None:
            brief["text"] = short
            files.append(_file("message.txt", ask.said.question))
        if 0 < len(ask.said.system) <= _SYSTEM:
            brief["system"] = ask.said.system
        elif ask.said.system:
            files.append(_file("instructions.txt", ask.said.system))
        brief["origin"] = origin
        if is_chore(ask.said) and not brief.get("schema") and self.settings.chores != "mission":
            return self._chore(brief), files
        if ask.tools is not None:  # the first choice makes the patterns of all words, which takes long
            brief |= await asyncio.to_thread(choose_tools, ask.tools, ask.said, self.dispatcher.uvm.clock().date())
        if ask.remembers:
            files += await self._remember(ask, came_in, brief, following)
            origin["history"] = following.history
        else:
            files += _earlier(ask.said, *ask.said.earlier)
        return brief, [*files, *_results(ask.said)]

    def _chore(self, brief: dict[str, Any]) -> dict[str, Any]:
        """Return the brief of work that a client asks for itself: nothing is recalled for it, or remembered of it."""
        if self.settings.chores == "refuse":
            raise Refused(
                "titles, tags and the like are not made here",
                remedy='Let the client use another model for them, or set `chores = "reflex"` in batos.toml.',
            )
        own = {"effort": "reflex", "priority": -9, "policy": {"memory": NO_MEMORY, "install": "never"}}
        return {**brief, **own, "origin": {**brief["origin"], "door": CHORE}}

    async def _remember(
        self, ask: ClientQuestion, came_in: str, brief: dict[str, Any], following: Following
    ) -> list[File]:
        """Find the conversation that a history is of; return what is not known of it as a file."""
        user = self.user_of(came_in)
        place, following.history = await self._histories.find(user, ask.said.earlier)
        known = place.conversation is not None
        if calls := [(each.tool, each.arguments) for each in ask.said.last_calls]:
            handed = self._histories.find_calls(user, digest_of_calls(following.history, ask.said.question, calls))
            if handed.mission is not None:
                place, brief["in_reply_to"] = handed, handed.mission
        brief["conversation"] = place.conversation or "new"
        if place.conversation is None and place.mission is not None:
            brief["in_reply_to"] = place.mission
        return _earlier(ask.said, *(() if known else ask.said.earlier))

    async def _send(self, file: File, came_in: str) -> dict[str, object]:
        """Hand a file to the dispatcher, in pieces, and return its reference."""
        for start in range(0, len(file.data), PIECE_BYTES):
            data = base64.b64encode(file.data[start : start + PIECE_BYTES]).decode()
            await self.call("attach", {"sha256": file.ref.sha256, "offset": start, "data": data}, came_in)
        return file.ref.model_dump()


def _file(name: str, text: str) -> File:
    return as_file(name, text.encode("utf-8", "replace"))


def _earlier(said: SentMessages, *before: SentMessage) -> list[File]:
    """Return the file of messages that are not known; results of tools since the question have files of their own."""
    text = as_text([*before, *(each for each in said.later if each.role != "tool")])
    return [_file("earlier.txt", text)] if text else []


def _results(said: SentMessages) -> list[File]:
    """Return what tools brought for a question: a file for each tool, evidence as any file of a client."""
    found: dict[str, list[str]] = {}
    for tool, text in said.results():
        found.setdefault(tool, []).append(text.strip() or "It brought nothing.")
    return [_file(f"{tool}.txt", "\n\n".join(texts)) for tool, texts in found.items()]


def stopping() -> NoServer:
    """Return the error of a stream that is ended because the server stops."""
    return NoServer("the server stops; accepted missions are kept", remedy="Ask again when the server runs.")
