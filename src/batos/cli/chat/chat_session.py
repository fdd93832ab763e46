"""The state of a chat: its conversation, its files, its options and its cost so far."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from batos.cli.brief_options import BriefOptions
from batos.cli.declared import ask
from batos.cli.doors.door import Door
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission import cost_text
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.render.mission_record import compacted_text
from batos.cli.verb_options import VerbCall
from batos.protocol.brief import File
from batos.protocol.errors import BatosError, NotFound
from batos.protocol.image_documents import ConversationPage
from batos.protocol.mission_documents import MissionDocument
from batos.terminal.console import count_text
from batos.verbs.mission_verbs import TURNS, ended_text

_SUMS = ("calls", "embeds", "prompt_tokens", "answer_tokens", "seconds", "waited", "loads", "from_journal", "wasted")


class ChatPrinter(MissionPrinter):
    """Tells turns: what `ask` is told of its options is nothing that can be typed here."""

    def print_answer(self, mission: MissionDocument) -> None:
        """Report a turn that is done; an empty line precedes the next one typed."""
        super().print_answer(mission)
        if not self.quiet:
            self.console.say("")

    def _print_end_line(self, mission: MissionDocument) -> None:
        """Tell how it ended and what it cost."""
        self.console.say(f"It {ended_text(mission['status'])}; {cost_text(mission)}.")


class Chat:
    """A conversation through a door, and how its next question is asked."""

    def __init__(
        self, called: VerbCall, fields: Mapping[str, Any], conversation: str, *, voices: bool, stream: bool
    ) -> None:
        self.console = called.console
        self.goes_on = True
        self.fields = dict(fields)
        self.conversation = conversation
        self.voices = voices
        self._called = called
        self._settings = called.settings
        self._quiet = called.quiet
        self._verbose = called.verbose
        self._stream = stream
        #: Files that the next question brings into the conversation.
        self.coming: list[File] = []
        self.last: MissionDocument | None = None
        self.spent: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self.turns = 0
        self._draft = ""
        #: The compaction that was begun in this process last.
        self.compaction: str | None = None

    @property
    def user(self) -> str:
        """Return the user who asks."""
        return self._settings.asker

    @property
    def prompt(self) -> str:
        """Return the words before what is typed."""
        return f"{str(self.fields.get('persona', 'you')).lower()}> "

    def draft(self, text: str) -> None:
        """Let the next message begin with a text, which its person edits."""
        self._draft = text

    def take_draft(self) -> str:
        """Return the text with which the next message begins, once."""
        text, self._draft = self._draft, ""
        return text

    # -- what is chosen

    def leave(self) -> None:
        """Ask nothing more."""
        self.goes_on = False

    def show_voices(self, shown: bool) -> None:
        """Show the voices of a council from the next question on, or do not."""
        self.voices = shown

    def begin_anew(self) -> None:
        """Let the next question begin a conversation."""
        self.conversation = "new"

    async def go_to(self, door: Door, name: str) -> None:
        """Go on with another conversation. Raises: NotFound: there is none; this one stays."""
        page = await self.page_of(door, name, -1, 1)
        self.conversation = page["conversation"]

    def leave_out(self, names: Collection[str]) -> None:
        """Take files of these names out of those that the next question would bring."""
        self.coming = [file for file in self.coming if file.ref.name not in names]

    # -- turns

    def attach(self, paths: Sequence[str]) -> None:
        """Add files for the next question and all that follow; BriefError names the one that is no text."""
        self.coming += BriefOptions(paths=tuple(paths)).files(self._settings, self._called.note)

    async def turn(self, door: Door, text: str) -> int:
        """Ask, tell the answer as it comes, and see to what it leads to; the exit code that it deserves."""
        followed = FollowedMission(
            ChatPrinter(self.console, self._quiet, self._stream, self.voices, self._verbose, again="")
        )
        brief: dict[str, object] = {
            **self.fields,
            "text": text,
            "user": self._settings.asker,
            "conversation": self.conversation,
            "origin": {"door": "cli", "client": "batos chat"},
        }
        if self.coming:
            brief["attachments"] = await door.attach(self.coming)
        try:
            code = await followed.run(door, "submit", {"brief": brief})
        finally:
            if followed.mission:
                self.coming = []
                await self._note(door, followed.mission)
        if code == 0:
            grants = cast("Sequence[str]", brief.get("grants") or ())
            await followed.tell_effects(door, grants, tells_none=False)
            self.compaction = await door.start_due(followed.mission) or self.compaction
        return code

    async def _note(self, door: Door, mission: str) -> None:
        """Keep what the turn was: its conversation, its cost."""
        with suppress(BatosError):  # the turn was told; what is known of it is not worth another error
            found = cast("MissionDocument", await door.call("show", {"mission": mission}))
            self.last = found if "answer" in found else self.last
            self.conversation = str(found["brief"]["conversation"])
            self.turns += 1
            cost = cast("Mapping[str, float]", found.get("cost", {}))
            for name in _SUMS:
                self.spent[name] += cost.get(name, 0)

    async def begin(self, door: Door) -> int:
        """Find the conversation that is to go on, before anything is asked in it; NotFound if there is none."""
        await door.keep_learning()
        if self.conversation != "new":
            page = await self.page(door, -1, 1)
            self.conversation = page["conversation"]
            if not self._quiet:
                files = ", ".join(each["name"] for each in page["files"])
                told = f"{count_text(page['count'], 'turn')}{f', with {files}' if files else ''}"
                self.console.say(f"This is {self.conversation}, {told}.", dim=True)
        return 0

    async def settle(self, door: Door) -> int:
        """Wait for the compaction that goes on in this process, as whoever leaves a pipe behind would."""
        if self.compaction is not None:
            self._called.note(f"Older turns are being compacted by {self.compaction}; Ctrl-C leaves it for later.")
            await door.call("wait", {"mission": self.compaction})
        return 0

    def part(self) -> None:
        """Say what to know when one leaves."""
        if self.compaction is not None:
            self.console.say("Older turns are still being compacted; the next turn goes on with it.", dim=True)
        if self.conversation not in ("new", "last"):
            self._called.note(f"Go on with: batos chat --conversation {self.conversation}")

    async def page(self, door: Door, start: int, limit: int) -> ConversationPage:
        """Return turns by position. Raises: NotFound: there is no turn yet."""
        return await self.page_of(door, self.conversation, start, limit)

    async def page_of(self, door: Door, name: str, start: int, limit: int) -> ConversationPage:
        """Return turns of a conversation by position. Raises: NotFound: there is none, or it has no turn yet."""
        if name == "new":
            raise NotFound("this conversation has no turn yet", field="conversation", remedy="Ask something first.")
        place = {"start": start, "limit": limit, "user": self._settings.asker}
        return await ask(door, TURNS, {"conversation": name, **place})

    async def compact(self, door: Door, selector: str) -> int:
        """Send the conversation a message, and tell what it made; the exit code that it deserves."""
        name = (await self.page(door, -1, 1))["conversation"]
        message = {"receiver": name, "selector": selector, "arguments": [], "user": self._settings.asker}
        shown = cast("MissionDocument", await door.call("send", {**message, "follow": True}, self._on_event))
        if shown["status"] != "done":
            return ChatPrinter(self.console, self._quiet, False, False).print_end(shown)
        result = shown["provenance"]["message"]["result"]
        self.tell(result, compacted_text(result, cost_text(shown)))
        return 0

    def _on_event(self, event: str, keys: Mapping[str, object]) -> None:
        if event == "inference.end" and not self._quiet:
            self.console.say(f"  {str(keys['path']).partition('/')[2].partition('/')[0]} recorded", dim=True)

    def tell(self, data: Mapping[str, object], text: str) -> None:
        """Tell a result: as a document where a program reads, else in words."""
        if self.console.as_json:
            self.console.document(data)
        else:
            self.console.write(text)
