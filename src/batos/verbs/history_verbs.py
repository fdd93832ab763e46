"""The verbs of dreams and replays, and those that undo missions and bring them back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import Final, Literal

from pydantic import Field, JsonValue

from batos.protocol.memory_documents import DreamDiff, DreamLine, DreamList, RedonePage, UndoLine, UndonePage
from batos.protocol.mission_documents import MissionDocument, ReplayDocument
from batos.protocol.wire_messages import Asker, Name, StrictModel
from batos.terminal.console import count_text, local_time
from batos.terminal.layout import Column, card, listing, plain, reveal
from batos.verbs.trial_verbs import slot_text
from batos.verbs.wire_verb import Noun, WireVerb

DREAM_NOUN: Final = Noun(
    "dream",
    """Ask in a copy of the mind, look at what that would change, then promote it or drop it.

    Without a verb: `new`, so `batos dream "Should we move?"` asks.""",
    default="new",
)


class DreamNewArgs(StrictModel):
    """A question that is answered in a copy of the mind, which is kept until it is promoted or dropped."""

    brief: dict[str, JsonValue] = Field(description="As that of `submit`; its methods are made in the copy.")
    follow: bool = Field(default=True, description="Send its events, then its end; a dream is always waited for.")
    user: Name | None = Field(default=None, description="Only this user's files may be named; absent: all.")


class ReplayArgs(StrictModel):
    """Ask a mission again in a copy of the mind as it saw it, and show what comes out otherwise.

    MISSION may be `last`. Calls that are the same are served from the journal. The image is not changed, and the
    journal keeps the replay.
    """

    mission: Name = Field(description="The mission's id or its beginning; `last`, `last-1`.")
    model: Name | None = Field(default=None, description="The model of every persona, one that Ollama has.")
    codex: dict[str, str] | None = Field(
        default=None, max_length=32, description="The files of another codex: name to text."
    )
    follow: bool = Field(default=True, description="Send its events, then its end; a replay is always waited for.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")


class DreamListArgs(StrictModel):
    """List the newest dreams, and whether each is open, promoted or dropped."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most dreams in the list.")
    user: Asker = Field(default=None, description="Only those of this user.")


class DreamArgs(StrictModel):
    """A dream by the id of its mission."""

    dream: Name = Field(description="The id of its mission or the beginning of it; `last`, `last-1`.")
    user: Asker = Field(default=None, description="Only if it is this user's.")


def dreams_text(told: DreamList) -> str:
    """Write a list of dreams."""
    columns: Mapping[str, Column] = {
        "dream": "dream", "state": "state", "asked": lambda each: local_time(each["at"]), "question": "text",
    }  # fmt: skip
    return listing(told["dreams"], columns, 'There is no dream: batos dream new "..."')


def difference_text(told: DreamDiff) -> str:
    """Write what a dream would change, a slot a line."""
    dream = told["dream"]
    end = "It cannot be promoted: dream it again." if told["conflicts"] else ""
    if not end and told["state"] == "open":
        end = f"`batos dream promote {dream}` does this, `batos dream drop {dream}` throws it away."
    return reveal("\n".join(filter(None, (card(_changes(told)), end))))


def _changes(told: DreamDiff) -> Iterator[tuple[str, str]]:
    yield "dream", f"{told['dream']} ({told['state']})"
    yield "question", told["text"]
    yield "read at", told["read_at"]
    yield from _answers(told)
    for each in told["slots"]:
        change = f"{_short(each['before'])} -> {_short(each['after'])}"
        yield "slot", f"{each['object']}.{each['slot']}: {change}{_mark(each['conflict'])}"
    for made in told["made"]:
        asks = ", after a person's yes" if made["asks"] else ""
        source = "".join(f"\n{line}" for line in made["source"].splitlines())
        yield "method", f"{made['method']} is made{asks}{_mark(made['conflict'])}{source}"
    yield from (("tool", each) for each in told["tools"])
    yield from (("ran", each) for each in told["methods"])
    yield from (("effect", f"{each}, which is not released") for each in told["effects"])
    yield "adds", f"the mission{''.join(f', {each}' for each in told['contributions'])}"


def _mark(conflict: str) -> str:
    return f"   ! {conflict}" if conflict else ""


def _answers(told: DreamDiff) -> Iterator[tuple[str, str]]:
    """Yield the answer of a dream, and below it that of the mind itself to the same question."""
    answer, base = told.get("answer"), told.get("base")
    yield "answer", "none" if answer is None else str(answer)
    if base is None:
        yield "base", "the mind itself was not asked this"
    elif base["answer"] == answer:
        yield "base", f"the same, in {base['mission']}"
    else:
        yield "base", f"{'none' if base['answer'] is None else base['answer']} ({base['mission']})"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def replay_text(told: ReplayDocument, answered: bool) -> str:
    """Write what is otherwise in a replay, which has an answer or failed."""
    return reveal(card(_otherwise(told, answered)))


def _otherwise(told: ReplayDocument, answered: bool) -> Iterator[tuple[str, str]]:
    yield "replay", f"{told['mission']} of {told['of']}"
    yield (
        "calls",
        f"{len(told['same'])} from the journal, {len(told['made'])} made anew, {len(told['gone'])} not needed",
    )
    yield from (("made", each) for each in told["made"])
    if told["erased"]:
        yield "erased", f"the words of {count_text(told['erased'], 'call')} are gone, and none was served for them"
    for name in ("personas", "models"):
        before, after = (", ".join(each) or "none" for each in told[name])
        if before != after:
            yield name, f"{before} -> {after}"
    if told["carried"][0] != told["carried"][1]:
        yield "carried", f"{told['carried'][0]} -> {told['carried'][1]} sentences"
    yield from (("methods", each) for each in told["methods"])
    yield from (("recalled", each) for each in told["recalled"])
    yield from (("written", each) for each in told["written"])
    yield from (("answer", each) for each in told["answer"])
    if not told["answer"]:
        yield "answer", "the same" if answered else "none: the replay has not ended with one"


DREAM_NEW: Final = WireVerb[DreamNewArgs, MissionDocument]("dream_new", DreamNewArgs)
DREAM_LIST: Final = WireVerb("dream_list", DreamListArgs, "dream list", dreams_text, reads=True)
DREAM_DIFF: Final = WireVerb(
    "dream_diff", DreamArgs, "dream diff DREAM", difference_text, reads=True,
    about="Show all that a dream would change in the mind as it is now: by object and slot, tools, contributions.",
)  # fmt: skip
DREAM_PROMOTE: Final = WireVerb[DreamArgs, MissionDocument](
    "dream_promote", DreamArgs, "dream promote DREAM", "{id} is part of the mind now: `batos show {id}`.",
    about="Make a dream part of the mind: its mission, slots and methods, and what it contributes; or none of it.\n\n"
    "Refused where a slot was changed since the dream began.",
)  # fmt: skip
DREAM_DROP: Final = WireVerb[DreamArgs, DreamLine](
    "dream_drop", DreamArgs, "dream drop DREAM", "{dream} is dropped.",
    about="Throw a dream away.\n\n"
    "Its calls stay in the journal, and `batos show` still shows its answer.",
)  # fmt: skip
REPLAY: Final = WireVerb[ReplayArgs, MissionDocument](
 "replay", ReplayArgs, "replay MISSION",
    examples=("batos replay last --model qwen3:8b", "batos replay m-01K8S2 --codex ./other-codex"),
)  # fmt: skip


#: Characters of a question, and entries of a kind, that are shown.
_LINE, _SHOWN = 60, 5


class UndoArgs(StrictModel):
    """Take a mission out of the mind with all that it left there: answer, memories, turn, methods, slots.

    MISSION is your `last` if none is named. Later missions that do not build on it stay. If some do, the undo is
    refused, and lists them. `batos redo` brings all of it back. Its calls stay in the journal, so that nothing is paid
    for twice. A slot that was redefined (ROBIN.line), or the parents of an object (OBJECT.parents), gets the value from
    before.
    """

    mission: Name = Field(default="last", description="The mission's id or its beginning; `last`, `last-1`; a slot.")
    dry_run: bool = Field(default=False, description="Only tell what would go, with all that builds on it.")
    cascade: bool = Field(default=False, description="Take later missions out too that build on it; else refused.")
    keep: list[Literal["methods", "memories", "slots"]] = Field(
        default=[], max_length=3, description="Kinds of traces that stay."
    )
    yes: bool = Field(default=False, description="Taken as elsewhere: an undo asks nothing, as redo takes it back.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")


def undone_text(told: UndonePage) -> str:
    """Write what an undo took out, mission by mission, and how it is brought back; of a slot its values."""
    if "slot" in told:
        return slot_text(told["slot"])
    lines = [line for each in told["undone"] for line in _mission_lines(each)]
    if told["kept"]:
        lines.append(f"kept     {', '.join(told['kept'])}")
    if told["dry_run"]:
        more = " --cascade" if len(told["undone"]) > 1 else ""
        lines.append(f"Nothing is changed. `batos undo {told['mission']}{more}` takes this out.")
    else:
        also = "; with --cascade all of these" if len(told["undone"]) > 1 else ""
        lines.append(f"`batos redo {told['mission']}` brings it back{also}.")
        lines.append(f"asked    {plain(told['prompt'])}")
    return "\n".join(lines)


def _mission_lines(line: UndoLine) -> Iterator[str]:
    text = shorten(plain(line["text"]), _LINE, placeholder="…") if line["text"] else "a mission of another user"
    yield f"{line['mission']}  {text}"
    if line["because"]:
        yield f"  because  {plain(line['because'])}"
    yield "  answer   goes" + (f", with turn {line['turn']} of its conversation" if line["turn"] else "")
    kinds = {
        "memories": line["memories"], "methods": line["methods"], "tools": line["tools"],
        "slots": line["slots"], "approvals": line["approvals"],
    }  # fmt: skip
    for kind, entries in kinds.items():
        if entries:
            shown = ", ".join(plain(each) for each in entries[:_SHOWN])
            more = f" and {len(entries) - _SHOWN} more" if len(entries) > _SHOWN else ""
            yield f"  {kind.ljust(8)} {shown}{more}"
    for each in line["effects"]:
        yield f"  stays    {plain(each)}: what happened in the world is not taken back"


class RedoArgs(StrictModel):
    """Bring an undone mission back as it was.

    Without MISSION that of your newest undo. Whatever was changed since stays changed, and is named.
    """

    mission: Name | None = Field(default=None, description="The mission's id or its beginning; absent: the newest one.")
    cascade: bool = Field(default=False, description="Bring back all missions that were undone with it.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")


def redone_text(told: RedonePage) -> str:
    """Write which missions are back, and what stays as somebody changed it."""
    lines = [f"{count_text(len(told['redone']), 'mission')} back: {', '.join(told['redone'])}."]
    lines += [f"left as it is  {plain(each)}" for each in told["left"]]
    return "\n".join(lines)


UNDO: Final = WireVerb(
    "undo", UndoArgs, "undo [MISSION]", undone_text,
    examples=("batos undo --dry-run", "batos undo m-01M82CY0 --cascade", "batos undo --keep-methods"),
)  # fmt: skip
REDO: Final = WireVerb(
    "redo", RedoArgs, "redo [MISSION]", redone_text, examples=("batos redo", "batos redo m-01M82CY0 --cascade")
)
