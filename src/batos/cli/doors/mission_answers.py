"""The answers of a person at the terminal to what a mission asks before it goes on: its plan, and single calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import click

from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.doors.following import WAITS, FollowedMission
from batos.cli.verb_options import VerbCall, run
from batos.protocol.errors import ApprovalNeeded, BriefError
from batos.protocol.method_documents import ApprovalDocument
from batos.terminal.console import Console
from batos.terminal.layout import table
from batos.verbs.approval_verbs import visible

#: An answer: the verb that gives it, with its arguments.
Answer: TypeAlias = tuple[str, dict[str, object]]
#: Does what follows a mission that ended with this exit code, at an open door; returns the code of all.
Then: TypeAlias = Callable[[Door, int], Awaitable[int]]
_NO: Final = "no, at the terminal"
_LATER: Final = "Nothing of it is done. `batos approve {id}` runs it, and `batos reject {id} --why ...` drops it."


def answer_mission(called: VerbCall, followed: FollowedMission, code: int, then: Then) -> int:
    """Ask the person what a mission waits for, and follow it on, as long as it asks about its plan or its calls.

    Where nobody can answer, its plan is printed, and it waits. Returns the exit code.
    """
    edited: dict[str, str] = {}
    while code == WAITS and followed.waits_unsaid:
        asked = run(_find_asked(open_door(called), followed))
        is_ours = bool(asked) and all(each["selector"] in ("plan_", "call_") for each in asked)
        if not is_ours or not called.can_ask:
            for each in asked if is_ours else ():
                _print_plan(called.console, each)
            return followed.printer.print_end(followed.found)
        answers = [
            _ask_about_plan(called, each, edited) if each["selector"] == "plan_" else _ask_about_call(called, each)
            for each in asked
        ]
        if None in answers:
            called.console.say(_LATER.format(id=asked[0]["id"]))
            return WAITS
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


async def _go_on(opened: Opened, followed: FollowedMission, answers: Sequence[Answer | None], then: Then) -> int:
    async with opened as way:
        for verb, args in filter(None, answers):
            await way.call(verb, args)
        await way.begin(followed.mission)
        return await then(way, await followed.go_on(way))


def _ask_about_call(called: VerbCall, asked: ApprovalDocument) -> Answer:
    called.console.say(visible_lines(asked["source"]))
    if click.confirm("Make this call?", default=False, err=True):
        return "approve", {"approvals": [asked["id"]]}
    return "reject", {"approval": asked["id"], "why": _NO}


def _ask_about_plan(called: VerbCall, asked: ApprovalDocument, edited: dict[str, str]) -> Answer | None:
    """Return the yes to a plan, which may be `edited` first; None: it is left to wait."""
    name = asked["id"]
    while True:
        called.console.say(plan_table(edited.get(name, asked["source"])))
        choice = click.prompt("[r]un, [e]dit, [q]uit", type=click.Choice(["r", "e", "q"]), show_choices=False, err=True)
        if choice != "e":
            own = {"plan": edited[name]} if name in edited else {}
            return ("approve", {"approvals": [name], **own}) if choice == "r" else None
        if text := click.edit(edited.get(name, asked["source"]), extension=".txt"):
            edited[name] = text


def plan_table(text: str) -> str:
    """Write the lines of a plan as a table below its remarks.

    >>> print(plan_table('# When?\\npart guide: Where?\\ncall wiki.search_ {"query": "pier"}'))
    When?
    line  of            has
    part  guide:        Where?
    call  wiki.search_  {"query": "pier"}
    """
    lines = text.split("\n")
    rows = [visible(each).split(" ", 2) for each in lines if each.strip() and not each.startswith("#")]
    remarks = "\n".join(each for each in lines if each.startswith("#"))
    shown = table([[*row, "", ""][:3] for row in rows], ("line", "of", "has"), whole=(1, 2))
    return f"{visible_lines(remarks)}\n{shown if rows else ''}".rstrip()


def visible_lines(text: str) -> str:
    """Write a text line by line with nothing in it hidden."""
    return "\n".join(visible(each.removeprefix("# ")) for each in text.split("\n"))


def _print_plan(console: Console, asked: ApprovalDocument) -> None:
    """Print what waits, for whoever answers it later."""
    if console.as_json:
        console.event("mission.question", {"approval": asked["id"], "lines": asked["source"]})
    else:
        console.write(f"{asked['id']}\n{visible_lines(asked['source'])}")
