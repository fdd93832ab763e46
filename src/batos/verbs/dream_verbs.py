"""The verbs of dreams and replays: a question in a copy of the mind, and what becomes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import Field, JsonValue

from batos.protocol.dream_documents import DreamDiff, DreamLine, DreamList
from batos.protocol.mission_documents import MissionDocument, ReplayDocument
from batos.protocol.strict_model import Asker, Name, StrictModel
from batos.terminal.console import count_text
from batos.terminal.layout import reveal
from batos.terminal.reply_forms import Column, card, listing
from batos.terminal.short_names import local_time
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


class DreamDiffArgs(DreamArgs):
    """Show all that a dream would change in the mind as it is now: by object and slot, tools, contributions."""


class DreamPromoteArgs(DreamArgs):
    """Make a dream part of the mind: its mission, slots and methods, and what it contributes; or none of it.

    Refused where a slot was changed since the dream began.
    """


class DreamDropArgs(DreamArgs):
    """Throw a dream away.

    Its calls stay in the journal, and `batos show` still shows its answer.
    """


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
DREAM_DIFF: Final = WireVerb("dream_diff", DreamDiffArgs, "dream diff DREAM", difference_text, reads=True)
DREAM_PROMOTE: Final = WireVerb[DreamPromoteArgs, MissionDocument](
    "dream_promote", DreamPromoteArgs, "dream promote DREAM", "{id} is part of the mind now: `batos show {id}`."
)
DREAM_DROP: Final = WireVerb[DreamDropArgs, DreamLine](
    "dream_drop", DreamDropArgs, "dream drop DREAM", "{dream} is dropped."
)
REPLAY: Final = WireVerb[ReplayArgs, MissionDocument](
 "replay", ReplayArgs, "replay MISSION",
    examples=("batos replay last --model qwen3:8b", "batos replay m-01K8S2 --codex ./other-codex"),
)  # fmt: skip
