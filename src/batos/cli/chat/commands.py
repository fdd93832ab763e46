"""The commands behind a slash in a chat: what each does, and what the Tab key completes."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast, get_args

from batos.cli.chat.chat_session import Chat
from batos.cli.declared import ask
from batos.cli.doors.background_door import BackgroundDoor
from batos.cli.doors.door import Door
from batos.cli.render.mission import cost_text
from batos.cli.render.mission_record import history_text, recalled_text
from batos.protocol.brief import Combine, EffortChoice, Install, Interpret, PersonaName
from batos.protocol.errors import NotFound, UsageError
from batos.protocol.mission_documents import MissionDocument
from batos.terminal.console import count_text
from batos.verbs.history_verbs import REDO, UNDO, redone_text, undone_text
from batos.verbs.motion_verbs import RATE

#: Words that leave a chat, alone on a line: other programs that one talks with have them.
LEAVING: Final = frozenset({"exit", "quit", "/bye", "/exit"})


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command: its help, its function, and the words that may follow.

    A command that speaks with the image does so `through` a door; any other is done `here` and waits for nothing.
    """

    what: str
    here: Callable[[Chat, str], None] | None = None
    through: Callable[[Chat, Door, str], Coroutine[Any, Any, int]] | None = None
    words: tuple[str, ...] = ()

    def run(self, chat: Chat, way: BackgroundDoor, rest: str) -> int:
        """Do it; the exit code that it deserves."""
        if self.through is not None:
            through = self.through
            return way.do(lambda door: through(chat, door, rest))
        if self.here is not None:
            self.here(chat, rest)
        return 0


def find_command(name: str) -> Command:
    """Find the command of that name; UsageError names the near one."""
    command = COMMANDS.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"; did you mean /{near[0]}?" if near else ""
        raise UsageError(f"there is no /{name}{hint}", remedy="/help lists them; a question with a slash begins //.")
    return command


def completions(line: str, word: str) -> list[str]:
    """List the completions of the word being typed at the end of the line: a command, a word behind one, a path."""
    name, space, _ = line.partition(" ")
    if not line.startswith("/"):
        return []
    if not space:
        return [f"/{each} " for each in COMMANDS if f"/{each}".startswith(word)]
    if name == "/file":
        return _paths(word)
    words = COMMANDS[name[1:]].words if name[1:] in COMMANDS else ()
    return [f"{each} " for each in words if each.lower().startswith(word.lower())]


def _paths(word: str) -> list[str]:
    """List the files and folders that a path may become."""
    folder, _, begun = word.rpartition("/")
    try:
        inside = sorted((Path(folder or ("/" if word.startswith("/") else ".")).expanduser()).iterdir())
    except OSError:
        return []
    before = f"{folder}/" if "/" in word else ""
    return [f"{before}{each.name}{'/' if each.is_dir() else ' '}" for each in inside if each.name.startswith(begun)]


# -- what is done here


def _help(chat: Chat, rest: str) -> None:
    commands = {name: command.what for name, command in COMMANDS.items()}
    chat.tell({"commands": commands}, "\n".join(f"/{name.ljust(14)} {what}" for name, what in commands.items()))


def _quit(chat: Chat, rest: str) -> None:
    chat.leave()


def _voices(chat: Chat, rest: str) -> None:
    chat.show_voices(_choice("voices", rest, ("on", "off")) == "on" if rest else not chat.voices)
    chat.tell({"voices": chat.voices}, f"Voices are {'shown' if chat.voices else 'not shown'}.")


def _persona(chat: Chat, rest: str) -> None:
    _set(chat, "persona", rest.upper(), get_args(PersonaName))


def _effort(chat: Chat, rest: str) -> None:
    _set(chat, "effort", rest.lower(), get_args(EffortChoice))


def _combine(chat: Chat, rest: str) -> None:
    chosen = _policy(chat, "combine", rest, get_args(Combine))
    chat.tell({"combine": chosen}, f"Parts are combined: {chosen}.")


def _install(chat: Chat, rest: str) -> None:
    chosen = _policy(chat, "install", rest, get_args(Install), "configured")
    chat.tell({"install": chosen}, f"The policy for new methods is {chosen}.")


def _interpret(chat: Chat, rest: str) -> None:
    chosen = _policy(chat, "interpret", rest, get_args(Interpret), "configured")
    chat.tell({"interpret": chosen}, f"The policy for intents without a method is {chosen}.")


def _policy(chat: Chat, name: str, rest: str, known: Sequence[str], usual: str = "auto") -> str:
    """Set a policy of the next briefs; the usual word or nothing leaves it as it is configured."""
    policy = dict(chat.fields.pop("policy", {}))
    if rest.lower() in ("", usual):
        policy.pop(name, None)
    else:
        policy[name] = _choice(name, rest.lower(), known)
    if policy:
        chat.fields["policy"] = policy
    return str(policy.get(name, usual))


def _set(chat: Chat, field: str, value: str, known: Sequence[str]) -> None:
    """Set a field of the next briefs; `auto` or nothing leaves it to the router."""
    if value.lower() in ("", "auto") and "auto" not in known:
        chat.fields.pop(field, None)
    else:
        chat.fields[field] = _choice(field, value or "auto", known)
    chosen = chat.fields.get(field, "auto")
    chat.tell({field: chosen}, f"The {field} is {'left to the router' if chosen == 'auto' else chosen}.")


def _choice(name: str, value: str, known: Sequence[str]) -> str:
    if value not in known:
        told = ", ".join(known)
        raise UsageError(f"{value!r} is not a value of /{name}", field=name, remedy=f"/{name} takes {told}; see /help.")
    return value


def _new(chat: Chat, rest: str) -> None:
    chat.begin_anew()
    chat.tell({"conversation": "new"}, "A new conversation begins with the next question.")


def _cost(chat: Chat, rest: str) -> None:
    timed = ("seconds", "waited")
    spent = {name: round(value, 3) if name in timed else int(value) for name, value in chat.spent.items()}
    cost = cost_text(cast("MissionDocument", {"cost": spent}))
    text = f"{count_text(chat.turns, 'turn')}: {cost}." if chat.turns else "Nothing was asked."
    chat.tell({"turns": chat.turns, "cost": spent}, text)


def _print_evidence(chat: Chat, rest: str) -> None:
    if chat.last is None:
        raise NotFound("there is no answer yet", remedy="Ask something first.")
    provenance = chat.last["provenance"]
    data = {"recalled": provenance["recalled"], "omitted": provenance["omitted"], "compaction": chat.compaction}
    chat.tell(data, recalled_text(provenance, chat.compaction))


# -- what speaks with the image


async def _file(chat: Chat, door: Door, rest: str) -> int:
    if rest == "-":
        raise UsageError("the chat reads its questions from stdin", field="file", remedy="Put the text in a file.")
    if rest:
        chat.attach([rest])
    return await _files(chat, door, "")


async def _files(chat: Chat, door: Door, rest: str) -> int:
    kept = await _stored_files(chat, door)
    coming = [file.ref.name for file in chat.coming]
    names = dict.fromkeys([*(str(each["name"]) for each in kept), *coming])
    text = f"In this conversation: {', '.join(names)}." if names else "There is no file; /file PATH attaches one."
    chat.tell({"files": kept, "coming": coming}, text)
    return 0


async def _drop(chat: Chat, door: Door, rest: str) -> int:
    coming = [file.ref.name for file in chat.coming]
    kept = [each["name"] for each in await _stored_files(chat, door)]
    every = [*kept, *coming]
    names = every if rest == "all" and "all" not in every else [rest or (every[0] if len(every) == 1 else "")]
    if not set(names) <= set(every) or not names:
        known = ", ".join(every)
        remedy = f"There are {known}; /drop all leaves out every one." if every else "There is no file."
        raise UsageError("/drop takes a file's name" if not rest else f"there is no file {rest!r}", remedy=remedy)
    chat.leave_out(names)
    gone = sorted({name for name in names if name in kept})
    if gone:
        args = {"conversation": chat.conversation, "names": gone, "user": chat.user}
        await door.call("drop_files", args)
    return await _files(chat, door, "")


async def _stored_files(chat: Chat, door: Door) -> list[Mapping[str, Any]]:
    """Return the conversation's files; none before its first question."""
    return [] if chat.conversation == "new" else list((await chat.page(door, -1, 1))["files"])


async def _history(chat: Chat, door: Door, rest: str) -> int:
    start, _, limit = rest.partition(" ")
    try:
        first, most = int(start or -10), int(limit or 10)
    except ValueError:
        raise UsageError("/history takes the first turn's position and how many", remedy="/history 1 20") from None
    page = await chat.page(door, first, max(1, min(1_000, most)))
    chat.tell(page, history_text(page))
    return 0


async def _conversation(chat: Chat, door: Door, rest: str) -> int:
    if rest:
        await chat.go_to(door, rest)
    chat.tell({"conversation": chat.conversation}, f"This is {chat.conversation}.")
    return 0


async def _undo(chat: Chat, door: Door, rest: str) -> int:
    cascade = bool(rest) and bool(_choice("undo", rest, ("cascade",)))
    turns = (await chat.page(door, -1, 1))["turns"]
    if not turns:
        raise NotFound("this conversation has no turn", remedy="Ask something first; `batos undo` takes any mission.")
    told = await ask(door, UNDO, {"mission": turns[0]["mission"], "cascade": cascade, "user": chat.user})
    chat.draft(told["prompt"])
    chat.tell(told, undone_text(told))
    return 0


async def _redo(chat: Chat, door: Door, rest: str) -> int:
    told = await ask(door, REDO, {"cascade": rest == "cascade", "user": chat.user})
    chat.tell(told, redone_text(told))
    return 0


async def _rate(chat: Chat, door: Door, rest: str) -> int:
    if chat.last is None:
        raise NotFound("there is no answer yet", remedy="Ask something first.")
    word, _, why = rest.partition(" ")
    verdict, said = _choice("rate", word.lower(), ("good", "bad")), {"why": why.strip()} if why.strip() else {}
    told = await ask(door, RATE, {"mission": chat.last["id"], "verdict": verdict, "user": chat.user, **said})
    chat.tell(told, f"This answer is rated {verdict}.")
    return 0


async def _compact(chat: Chat, door: Door, rest: str) -> int:
    which = _choice("compact", rest, ("afresh",)) if rest else ""
    return await chat.compact(door, "recompact_" if which else "compact_")


COMMANDS: Final[dict[str, Command]] = {
    "help": Command("Show this.", here=_help),
    "quit": Command("End the chat; exit and Ctrl-D do the same.", here=_quit),
    "voices": Command("Show each part beside the answers, or not: on, off.", here=_voices, words=("on", "off")),
    "persona": Command(
        "Choose the persona of the next answers: a name, or auto.",
        here=_persona,
        words=(*get_args(PersonaName), "auto"),
    ),
    "effort": Command(
        "Choose the effort: reflex, cycle, council, or auto.", here=_effort, words=get_args(EffortChoice)
    ),
    "combine": Command(
        "Choose how parts become one answer: select, vote, weave, or auto.", here=_combine, words=get_args(Combine)
    ),
    "install": Command(
        f"Choose when a missing method is made: {', '.join(get_args(Install))}, or configured.",
        here=_install,
        words=(*get_args(Install), "configured"),
    ),
    "interpret": Command(
        "Choose if intents without a method are interpreted: allow, never, or configured.",
        here=_interpret,
        words=(*get_args(Interpret), "configured"),
    ),
    "file": Command("Attach a text file to this conversation: PATH.", through=_file),
    "files": Command("Show the files of this conversation.", through=_files),
    "drop": Command("Leave a file out from now on: its name, or all.", through=_drop, words=("all",)),
    "history": Command("Show turns word for word: the first one's position, how many.", through=_history),
    "recalled": Command("Show which turns the last answer was shown, and what was compacted.", here=_print_evidence),
    "conversation": Command(
        "Show which conversation this is, or go on with another: ID, last.", through=_conversation, words=("last",)
    ),
    "undo": Command(
        "Undo the last turn with all that it left, and give its question back; `cascade`: what builds on it too.",
        through=_undo,
        words=("cascade",),
    ),
    "redo": Command("Bring back what was undone last.", through=_redo, words=("cascade",)),
    "rate": Command("Say whether the last answer was good or bad, and why.", through=_rate, words=("good", "bad")),
    "new": Command("Begin a new conversation.", here=_new),
    "compact": Command(
        "Compact older turns now; with `afresh` drop the summaries and write new ones.",
        through=_compact,
        words=("afresh",),
    ),
    "cost": Command("Show what this chat has spent.", here=_cost),
}  # fmt: skip
