"""The verbs that read: missions, show, inspect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import click

from batos.cli.completions import mission_ids, object_names
from batos.cli.declared import ask, ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.past_moments import as_of_option, tell_moment, with_moment
from batos.cli.render.mission_record import find_calls, mission_text, prompts_text
from batos.cli.render.objects import inspected_text
from batos.cli.render.turns import history_text
from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.watch import follow
from batos.protocol.image_documents import InspectedDocument, RootNames
from batos.protocol.mission_documents import MissionDocument, MissionLineDocument
from batos.terminal.cards import Column, listing
from batos.terminal.short_names import local_time, short
from batos.verbs.mission_verbs import INSPECT, MISSIONS, SHOW, TURNS

_NO_MISSION = 'There is no mission yet. Ask something: batos ask "..."'
#: The holder of the image where a server has it.
_SERVER = "a server"
STATUSES = ("queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone")


@click.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those of this status.")
@click.option("--mine", is_flag=True, help="Only those that you asked.")
@click.option("--follow", "-f", "following", is_flag=True, help="Also print every change as it happens, until Ctrl-C.")
@with_server
def missions(called: VerbCall, limit: int, status: str | None, mine: bool, following: bool) -> int:
    """List the newest missions; --follow watches the server's."""
    args: dict[str, Any] = {"limit": limit}
    if status is not None:
        args["status"] = status
    if mine:
        args["user"] = called.settings.asker
    if following:
        return run(follow(called, open_door(called, required=True), args))
    found, owner = run(_missions(open_door(called, reads=True), args))
    tell_lines(called, found, some=status is not None or mine)
    if any(each["status"] in ("queued", "running") for each in found):
        if not owner:  # nobody works on these
            told = "No server runs: what is queued or running there waits for `batos resume` or `batos serve`."
            called.console.say(told)
        elif owner != _SERVER:
            called.note(f"The image is {owner}'s; what it does not run waits for `batos resume` or `batos serve`.")
    return 0


async def _missions(opened: Opened, args: Mapping[str, object]) -> tuple[list[MissionLineDocument], str]:
    """Return the missions, and who has the image: a server, a process, or "" for nobody."""
    async with opened as way:
        return (await ask(way, MISSIONS, args))["missions"], _SERVER if way.served else way.holder


def tell_lines(called: VerbCall, found: list[MissionLineDocument], *, some: bool) -> None:
    """List missions; `some`: more may be there than were asked for."""
    if called.console.as_json:
        called.console.document({"missions": found})
    elif found:
        names = {line["id"]: line["id"] for line in found} if called.verbose else short([line["id"] for line in found])
        columns: Mapping[str, Column] = {
            "mission": lambda line: names[line["id"]], "status": "status",
            "asked": lambda line: local_time(line["accepted_at"]), "question": "text",
        }  # fmt: skip
        called.console.write(listing(found, columns))
    else:
        called.console.say("There is no such mission." if some else _NO_MISSION)


@click.command()
@click.argument("mission", type=given_name, shell_complete=mission_ids)
@click.option("--prompts", is_flag=True, help="Every call with the exact prompt that was sent.")
@click.option("--call", metavar="NAME", help="Only the prompts and answers of calls with NAME in path or method.")
@click.option("--voices", is_flag=True, help="Each part of the answer.")
@click.option("--start", type=int, default=1, help="Of a conversation: the first turn; negative counts from the end.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="Of a conversation: most turns in the list.")
@as_of_option
@with_server
def show(called: VerbCall, mission: str, prompts: bool, call: str | None, voices: bool, **page: Any) -> int:
    """Show a MISSION: states, calls, tokens, provenance; `last` is your newest. A conversation's id shows its turns."""
    as_of = page.pop("as_of")
    if mission.startswith("c-"):
        place = with_moment({"conversation": mission, "user": called.settings.asker, **page}, as_of)
        turns = run(ask_once(open_door(called, reads=True), TURNS, place))
        tell_moment(called, turns)
        if called.console.as_json:
            called.console.document(turns)
        else:
            called.console.write(history_text(turns))
        return 0
    # People are shown a line a call in any case.
    whole = prompts or call is not None or not called.console.as_json
    args = with_moment({"mission": mission, "user": called.settings.asker, "prompts": whole}, as_of)
    found, served = run(_show(open_door(called, reads=True), args))
    tell_moment(called, found)
    if call is not None:
        found = {**found, "prompts": find_calls(found["prompts"], call)}
    if called.console.as_json:
        called.console.document(found)
        return 0
    focus = found.get("provenance", {}).get("focus", ())
    if call is not None:
        called.console.write(prompts_text(found["prompts"], focus).lstrip("\n"))
        return 0
    called.console.write(mission_text(found, voices=voices, served=served))
    if prompts:
        called.console.write(prompts_text(found["prompts"], focus))
    return 0


async def _show(opened: Opened, args: Mapping[str, object]) -> tuple[MissionDocument, bool]:
    async with opened as way:
        found = await ask(way, SHOW, args)
        return found, way.served or "as_of" in found or await way.attends(found["id"])


@click.command()
@click.argument("object", type=given_name, required=False, shell_complete=object_names)
@as_of_option
@with_server
def inspect(called: VerbCall, object: str | None, as_of: str | None) -> int:
    """Show OBJECT: a root name, oid:0x2a, a mission (or `last`), a conversation; OBJECT.SLOT for one slot.

    Without OBJECT: the names of the root. With -v: every slot in full, as with --json.
    """
    found = run(_inspect(open_door(called, reads=True), object, called.settings.asker, as_of))
    tell_moment(called, found)
    if called.console.as_json:
        called.console.document(found)
    else:
        called.console.write(
            json.dumps(found, ensure_ascii=False, indent=2) if called.verbose else inspected_text(found)
        )
    return 0


async def _inspect(opened: Opened, name: str | None, user: str, as_of: str | None) -> InspectedDocument | RootNames:
    """Look at an object; `last`, or a slot of it, is named here, because the wire knows no user's name for it."""
    async with opened as way:
        word, dot, slot = (name or "").partition(".")
        if re.fullmatch(r"last(-\d+)?", word):
            name = str((await ask(way, SHOW, with_moment({"mission": word, "user": user}, as_of)))["id"]) + dot + slot
        return await ask(way, INSPECT, with_moment({"object": name, "user": user} if name else {}, as_of))
