"""A chat as it stands: its conversation, how questions are asked, what was spent; and the commands that change it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, get_args

from batos.cognition.brief import Combine, EffortChoice, File, Install, Interpret, PersonaName
from batos.errors import BatosError, NotFound, UsageError
from batos.front.doors.door import Door
from batos.front.doors.errand import Errand
from batos.front.options import Called
from batos.front.telling.console import counted
from batos.front.telling.layout import wrapped
from batos.front.telling.mission import cost_text, ended_text
from batos.front.telling.names import when
from batos.front.telling.teller import Teller
from batos.front.verbs.briefing import Wish

_SUMS = ("calls", "embeds", "prompt_tokens", "answer_tokens", "seconds", "from_journal", "wasted")


class Talker(Teller):
    """Tells turns: what `ask` is told of its options is nothing that can be typed here."""

    def answer(self, mission: Mapping[str, Any]) -> None:
        """A turn that is done; a line stands free before the next one is typed."""
        super().answer(mission)
        if not self.quiet:
            self.console.say("")

    def _ended(self, mission: Mapping[str, Any]) -> None:
        """What it cost."""
        self.console.say(f"It {ended_text(mission['status'])}; {cost_text(mission)}.")


class Chat:
    """A conversation through a door, and how its next question is asked."""

    def __init__(
        self, called: Called, fields: Mapping[str, Any], conversation: str, *, voices: bool, stream: bool
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
        self._files: list[File] = []
        self._last: Mapping[str, Any] | None = None
        self._spent: dict[str, float] = dict.fromkeys(_SUMS, 0)
        self._turns = 0
        #: The compaction that goes on in this process, if one was begun.
        self._compaction: str | None = None

    @property
    def prompt(self) -> str:
        """What stands before what is typed."""
        return f"{str(self.fields.get('persona', 'you')).lower()}> "

    # -- turns

    def attach(self, paths: Sequence[str]) -> None:
        """Files for the next question; BriefError names the one that is no text."""
        self._files += Wish(paths=tuple(paths)).files(self._settings, self._called.note)

    async def turn(self, door: Door, text: str) -> int:
        """Ask, tell the answer as it comes, and see to what it leads to; the exit code that it deserves."""
        errand = Errand(Talker(self.console, self._quiet, self._stream, self.voices, self._verbose, again=""))
        brief: dict[str, Any] = {
            **self.fields,
            "text": text,
            "user": self._settings.asker,
            "conversation": self.conversation,
            "origin": {"door": "cli", "client": "batos chat"},
        }
        if self._files:
            brief["attachments"] = await door.attach(self._files)
        try:
            code = await errand.run(door, "submit", {"brief": brief})
        finally:
            if errand.mission:
                self._files = []
                await self._note(door, errand.mission)
        if code == 0:
            self._compaction = await door.afterwards(errand.mission) or self._compaction
        return code

    async def _note(self, door: Door, mission: str) -> None:
        """Keep what the turn was: its conversation, its cost."""
        with suppress(BatosError):  # the turn was told; what is known of it is not worth another error
            found = await door.call("show", {"mission": mission})
            self._last = found if "answer" in found else self._last
            self.conversation = str(found["brief"]["conversation"])
            self._turns += 1
            for name in _SUMS:
                self._spent[name] += found.get("cost", {}).get(name, 0)

    async def begin(self, door: Door) -> int:
        """Find the conversation that is to go on, before anything is asked in it; NotFound if there is none."""
        await door.keep_learning()
        if self.conversation != "new":
            page = await self.page(door, -1, 1)
            self.conversation = page["conversation"]
            if not self._quiet:
                self.console.say(f"This is {self.conversation}, {counted(page['count'], 'turn')}.", dim=True)
        return 0

    async def part(self, door: Door) -> int:
        """What to know when one leaves."""
        if self._compaction is not None:
            ended = await door.call("show", {"mission": self._compaction})
            if ended["status"] in ("queued", "running"):
                self.console.say("Older turns are still being compacted; the next turn goes on with it.", dim=True)
        if self.conversation not in ("new", "last") and not self._quiet:
            self.console.say(f"Go on with: batos chat --conversation {self.conversation}", dim=True)
        return 0

    # -- commands: each gives an exit code

    def unknown(self, name: str) -> int:
        """A command that there is not."""
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"; did you mean /{near[0]}?" if near else ""
        raise UsageError(f"there is no /{name}{hint}", remedy="/help lists them; a question with a slash begins //.")

    async def page(self, door: Door, start: int, limit: int) -> dict[str, Any]:
        """Turns by position; NotFound before the first."""
        name = self.conversation
        if name == "new":
            raise NotFound("this conversation has no turn yet", field="conversation", remedy="Ask something first.")
        place = {"start": start, "limit": limit, "user": self._settings.asker}
        return await door.call("turns", {"conversation": name, **place})

    async def compact(self, door: Door, selector: str) -> int:
        """Send the conversation a message, and tell what it made."""
        name = (await self.page(door, -1, 1))["conversation"]
        message = {"receiver": name, "selector": selector, "arguments": [], "user": self._settings.asker}
        shown = await door.call("send", {**message, "follow": True}, self._hear)
        if shown["status"] != "done":
            return Talker(self.console, self._quiet, False, False).ended(shown)
        result = shown["provenance"]["message"]["result"]
        self._tell(result, compacted_text(result, cost_text(shown)))
        return 0

    def _hear(self, event: str, keys: Mapping[str, Any]) -> None:
        if event == "inference.end" and not self._quiet:
            self.console.say(f"  {keys['path'].partition('/')[2].partition('/')[0]} recorded", dim=True)

    def _tell(self, data: Mapping[str, Any], text: str) -> None:
        if self.console.as_json:
            self.console.document(data)
        else:
            self.console.write(text)

    async def _help(self, door: Door, rest: str) -> int:
        commands = {name: command.what for name, command in COMMANDS.items()}
        self._tell({"commands": commands}, "\n".join(f"/{name.ljust(14)} {what}" for name, what in commands.items()))
        return 0

    async def _quit(self, door: Door, rest: str) -> int:
        self.goes_on = False
        return 0

    async def _voices(self, door: Door, rest: str) -> int:
        self.voices = _choice("voices", rest, ("on", "off")) == "on" if rest else not self.voices
        self._tell({"voices": self.voices}, f"Voices are {'shown' if self.voices else 'not shown'}.")
        return 0

    async def _persona(self, door: Door, rest: str) -> int:
        return self._set("persona", rest.upper(), get_args(PersonaName))

    async def _effort(self, door: Door, rest: str) -> int:
        return self._set("effort", rest.lower(), get_args(EffortChoice))

    async def _combine(self, door: Door, rest: str) -> int:
        chosen = self._policy("combine", rest, get_args(Combine))
        self._tell({"combine": chosen}, f"Parts are combined: {chosen}.")
        return 0

    async def _install(self, door: Door, rest: str) -> int:
        chosen = self._policy("install", rest, get_args(Install), "configured")
        self._tell({"install": chosen}, f"What it lacks becomes a method: {chosen}.")
        return 0

    async def _interpret(self, door: Door, rest: str) -> int:
        chosen = self._policy("interpret", rest, get_args(Interpret), "configured")
        self._tell({"interpret": chosen}, f"What has no method is interpreted: {chosen}.")
        return 0

    def _policy(self, name: str, rest: str, known: Sequence[str], usual: str = "auto") -> str:
        """A policy of the next briefs; the usual word or nothing leaves it as it is configured."""
        policy = dict(self.fields.pop("policy", {}))
        if rest.lower() in ("", usual):
            policy.pop(name, None)
        else:
            policy[name] = _choice(name, rest.lower(), known)
        if policy:
            self.fields["policy"] = policy
        return str(policy.get(name, usual))

    def _set(self, field: str, value: str, known: Sequence[str]) -> int:
        """A field of the next briefs; `auto` or nothing leaves it to the router."""
        if value.lower() in ("", "auto") and "auto" not in known:
            self.fields.pop(field, None)
        else:
            self.fields[field] = _choice(field, value or "auto", known)
        chosen = self.fields.get(field, "auto")
        self._tell({field: chosen}, f"The {field} is {'left to the router' if chosen == 'auto' else chosen}.")
        return 0

    async def _file(self, door: Door, rest: str) -> int:
        if rest:
            self.attach([rest])
        names = [file.ref.name for file in self._files]
        self._tell({"files": names}, f"With the next question: {', '.join(names) or 'no file'}.")
        return 0

    async def _history(self, door: Door, rest: str) -> int:
        start, _, limit = rest.partition(" ")
        try:
            first, most = int(start or -10), int(limit or 10)
        except ValueError:
            raise UsageError("/history takes the first turn's position and how many", remedy="/history 1 20") from None
        page = await self.page(door, first, max(1, min(1_000, most)))
        self._tell(page, history_text(page))
        return 0

    async def _conversation(self, door: Door, rest: str) -> int:
        if rest:
            before, self.conversation = self.conversation, rest
            try:
                self.conversation = (await self.page(door, -1, 1))["conversation"]
            except BatosError:
                self.conversation = before
                raise
        self._tell({"conversation": self.conversation}, f"This is {self.conversation}.")
        return 0

    async def _new(self, door: Door, rest: str) -> int:
        self.conversation = "new"
        self._tell({"conversation": "new"}, "A new conversation begins with the next question.")
        return 0

    async def _compact(self, door: Door, rest: str) -> int:
        which = _choice("compact", rest, ("afresh",)) if rest else ""
        return await self.compact(door, "recompact_" if which else "compact_")

    async def _cost(self, door: Door, rest: str) -> int:
        spent = {name: round(value, 3) if name == "seconds" else int(value) for name, value in self._spent.items()}
        text = f"{counted(self._turns, 'turn')}: {cost_text({'cost': spent})}." if self._turns else "Nothing was asked."
        self._tell({"turns": self._turns, "cost": spent}, text)
        return 0

    async def _recalled(self, door: Door, rest: str) -> int:
        if self._last is None:
            raise NotFound("there is no answer yet", remedy="Ask something first.")
        provenance = self._last["provenance"]
        data = {"recalled": provenance["recalled"], "omitted": provenance["omitted"], "compaction": self._compaction}
        self._tell(data, recalled_text(provenance, self._compaction))
        return 0


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed behind a slash: what it does, and how that is said."""

    run: Callable[[Chat, Door, str], Coroutine[Any, Any, int]]
    what: str


def _choice(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        told = ", ".join(known)
        raise UsageError(f"{value!r} is nothing that /{name} knows", field=name, remedy=f"It knows {told}; see /help.")
    return value


def history_text(page: Mapping[str, Any]) -> str:
    """A page of turns, word for word, with what stands for older ones in prompts."""
    lines = [f"{page['conversation']}: {counted(page['count'], 'turn')}"]
    for each in page["turns"]:
        lines += ["", f"{each['position']}. {each['mission']}, {when(each['at'])}", wrapped(each["question"])]
        lines += [f"   {', '.join(each['personas'])}:", wrapped(each["answer"])]
    if page["next"] is not None:
        lines += ["", f"The next is {page['next']}."]
    if page["compactions"]:
        lines += ["", "In prompts these stand for older turns:"]
    for each in page["compactions"]:
        lines += [
            f"   turns {each['turns'][0]} to {each['turns'][1]}, by {each['by']}:",
            wrapped(each["text"], "     "),
        ]
    return "\n".join(lines)


def compacted_text(result: Mapping[str, Any], cost: str) -> str:
    """What a compaction made."""
    covered, whole = result["covered"], result["turns"]
    stands = f"{counted(result['summaries'], 'summary').replace('summarys', 'summaries')} of turns 1 to {covered}"
    done = f"{stands} of {whole}; {counted(len(result['made']), 'piece')} made, {cost}." if covered else ""
    return " ".join(each for each in (done, result["note"]) if each)


def recalled_text(provenance: Mapping[str, Any], compaction: str | None) -> str:
    """Which turns the last answer was shown, and as what."""
    recalled = provenance["recalled"]
    turns = [str(each["turn"]) if each["turn"] else each["mission"] for each in recalled if "turn" in each]
    views = [each for each in recalled if "turns" in each]
    lines = [f"word for word: {', '.join(turns) or 'no turn'}"]
    lines += [
        f"{'a summary' if each['by_model'] else 'first sentences'} of turns {each['turns'][0]} to {each['turns'][1]}"
        for each in views
    ]
    lines.append(f"left out: {counted(provenance['omitted']['turns'], 'turn')}")
    if compaction is not None:
        lines.append(f"older turns are being compacted by {compaction}")
    return "\n".join(lines)


COMMANDS: Final[dict[str, Command]] = {
    "help": Command(Chat._help, "Show this."),
    "quit": Command(Chat._quit, "Leave; so does Ctrl-D."),
    "voices": Command(Chat._voices, "Show each part beside the answers, or not: on, off."),
    "persona": Command(Chat._persona, "Who answers from now on: a name, or auto."),
    "effort": Command(Chat._effort, "How hard: reflex, cycle, council, or auto."),
    "combine": Command(Chat._combine, "How parts become one answer: select, vote, weave, or auto."),
    "install": Command(Chat._install, "Whether what it lacks becomes a method: auto, now, ask, never, or configured."),
    "interpret": Command(Chat._interpret, "Whether what has no method is interpreted: allow, never, or configured."),
    "file": Command(Chat._file, "Attach a text file to the next question: PATH."),
    "history": Command(Chat._history, "Show turns word for word: the first one's position, how many."),
    "recalled": Command(Chat._recalled, "Show which turns the last answer was shown, and what was compacted."),
    "conversation": Command(Chat._conversation, "Show which conversation this is, or go on with another: ID, last."),
    "new": Command(Chat._new, "Begin a new conversation."),
    "compact": Command(Chat._compact, "Compact older turns now; with `afresh` drop the summaries and make them anew."),
    "cost": Command(Chat._cost, "Show what this chat has spent."),
}
