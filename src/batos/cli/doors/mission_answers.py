"""The answers of a person at the terminal to what a mission asks before it goes on: its plan, and single calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import click

from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.doors.following import WAITS, FollowedMission
from batos.cli.verb_options import VerbCall, run
from batos.protocol.errors import ApprovalNeeded, BriefError
from batos.protocol.method_documents import ApprovalDocument
from batos.terminal.console import Console
from batos.terminal.layout import listing
from batos.verbs.approval_verbs import visible

#: Does what follows a mission that ended with this exit code, at an open door; returns the code of all.
Then: TypeAlias = Callable[[Door, int], Awaitable[int]]
_NO: Final = "no, at the terminal"
_LATER: Final = "Nothing of it is done. `batos approve {id}` runs it, and `batos reject {id} --why ...` drops it."


@dataclass(frozen=True, slots=True)
class PersonAnswer:
    """A person's answer to a question of a mission: yes or no, and the lines of a plan that was edited."""

    approval: str
    is_yes: bool
    plan: str | None = None


def answer_mission(called: VerbCall, followed: FollowedMission, code: int, then: Then) -> int:
    """Ask the person what a mission waits for, and follow it on, as long as it asks about its plan or its calls.

    Where nobody can answer, its plan is printed, and it waits. Returns the exit code.
    """
    while code == WAITS and followed.waits_unsaid:
        asked = run(_find_asked(open_door(called), followed))
        is_ours = bool(asked) and all(each["selector"] in ("plan_", "call_") for each in asked)
        if not is_ours or not called.can_ask:
            for each in asked if is_ours else ():
                _print_plan(called.console, each)
            return followed.printer.print_end(followed.found)
        answers: list[PersonAnswer] = []
        for each in asked:
            answer = _ask_about_plan(called, each) if each["selector"] == "plan_" else _ask_about_call(called, each)
            if answer is None:
                called.console.say(_LATER.format(id=each["id"]))
                return WAITS
            answers.append(answer)
        try:
            code = run(_go_on(open_door(called), followed, answers, then), followed.parting)
        except BriefError as wrong:  # of an edited plan: it is asked about again
            called.console.error(wrong)
    return code


async def _find_asked(opened: Opened, followed: FollowedMission) -> list[ApprovalDocument]:
    """Return the questions that a mission waits for."""
    reason: Mapping[str, Any] = followed.found.get("reason") or {}
    names = cast("list[str]", reason.get("approvals", [])) if reason.get("code") == ApprovalNeeded.code else []
    async with opened as way:
        return [cast("ApprovalDocument", await way.call("approvals", {"approval": each})) for each in names]


async def _go_on(opened: Opened, followed: FollowedMission, answers: list[PersonAnswer], then: Then) -> int:
    async with opened as way:
        for each in answers:
            if each.is_yes:
                edited = {} if each.plan is None else {"plan": each.plan}
                await way.call("approve", {"approvals": [each.approval], **edited})
            else:
                await way.call("reject", {"approval": each.approval, "why": _NO})
        await way.begin(followed.mission)
        return await then(way, await followed.go_on(way))


def _ask_about_call(called: VerbCall, asked: ApprovalDocument) -> PersonAnswer:
    called.console.say(visible_lines(asked["source"]))
    return PersonAnswer(asked["id"], click.confirm("Make this call?", default=False, err=True))


def _ask_about_plan(called: VerbCall, asked: ApprovalDocument) -> PersonAnswer | None:
    """Return the answer to a plan, which may be edited first; None: it is left to wait."""
    text = asked["source"]
    while True:
        called.console.say(plan_table(text))
        choice = click.prompt("[r]un, [e]dit, [q]uit", type=click.Choice(["r", "e", "q"]), show_choices=False, err=True)
        if choice == "q":
            return None
        if choice == "r":
            return PersonAnswer(asked["id"], True, None if text == asked["source"] else text)
        text = click.edit(text, extension=".txt") or text


def plan_table(text: str) -> str:
    """Write the lines of a plan as a table below its remarks.

    >>> print(plan_table('# When?\\npart guide: Where?\\ncall wiki.search_ {"query": "pier"}'))
    When?
    part   question  does          with
    guide  Where?    wiki.search_  {"query": "pier"}
    """
    lines = text.split("\n")
    remarks = [visible(line.removeprefix("#").strip()) for line in lines if line.startswith("#")]
    columns = {name: name for name in ("part", "question", "does", "with")}
    table = listing([*_rows(lines)], columns, whole=(2, 3))
    return "\n".join([*remarks, *filter(None, [table])])


def _rows(lines: list[str]) -> Iterator[dict[str, str]]:
    """Yield the rows of a plan: each call and effect with the part that it is for, and each part that has none."""
    part, left = {"part": "", "question": "the question"}, False
    for line in lines:
        word, _, rest = visible(line).strip().partition(" ")
        if word == "part":
            if left:
                yield {**part, "does": "no call", "with": ""}
            name, _, query = rest.partition(":")
            part, left = {"part": name.strip(), "question": query.strip()}, True
        elif word in ("call", "effect"):
            name, _, given = rest.partition(" ")
            shown = part if word == "call" else {"part": "effect", "question": ""}
            yield {**shown, "does": name, "with": given}
            part, left = ({"part": "", "question": ""}, False) if word == "call" else (part, left)
    if left:
        yield {**part, "does": "no call", "with": ""}


def visible_lines(text: str) -> str:
    """Write a text line by line with nothing in it hidden."""
    return "\n".join(visible(each.removeprefix("# ")) for each in text.split("\n"))


def _print_plan(console: Console, asked: ApprovalDocument) -> None:
    """Print what waits, for whoever answers it later."""
    if console.as_json:
        console.event(
            "mission.question", {"approval": asked["id"], "mission": asked["object"], "lines": asked["source"]}
        )
    else:
        console.write(f"{asked['id']}\n{visible_lines(asked['source'])}")
