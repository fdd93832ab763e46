"""The verbs that read: missions, show, why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from batos.cli.declared import ask, ask_for, take, tell
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.past_moments import tell_moment
from batos.cli.render.mission_record import find_calls, mission_text, prompts_text
from batos.cli.render.turns import history_text
from batos.cli.render.why_tree import tree_text
from batos.cli.verb_options import VerbCall, run
from batos.cli.verbs.watch import follow
from batos.protocol.errors import BriefError
from batos.protocol.mission_documents import MissionDocument, MissionLineDocument, MissionList
from batos.terminal.layout import columns
from batos.verbs.mission_verbs import MISSIONS, SHOW, TURNS, WHY

#: The holder of the image where a server has it.
_SERVER = "a server"


@take(MISSIONS)
@click.option("--mine", is_flag=True, help="Only those that you asked.")
@click.option("--follow", "-f", "following", is_flag=True, help="Also print every change as it happens, until Ctrl-C.")
def missions(called: VerbCall, given: Mapping[str, object], mine: bool, following: bool) -> int:
    """List missions, or follow them."""
    args = {**given, "user": called.settings.asker} if mine else given
    if following:
        return run(follow(called, open_door(called, required=True), args))
    found, owner = run(_missions(open_door(called, reads=True), args))
    tell(called, MISSIONS, MissionList(missions=found))
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


@take(SHOW)
@click.option("--call", metavar="NAME", help="Only the prompts and answers of calls with NAME in path or method.")
@click.option("--voices", is_flag=True, help="Each part of the answer.")
@click.option("--start", type=int, default=1, help="Of a conversation: the first turn; negative counts from the end.")
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, help="Of a conversation: most turns in the list.")
def show(called: VerbCall, given: dict[str, object], call: str | None, voices: bool, **page: Any) -> int:
    """Show a mission, or the turns of a conversation."""
    prompts = given.pop("prompts", False)
    if str(given["mission"]).startswith("c-"):
        place = {"conversation": given.pop("mission")}
        turns = ask_for(called, TURNS, {**given, **place, **page})
        called.answer(turns, history_text)
        return 0
    # People are shown a line a call in any case.
    whole = prompts or call is not None or not called.console.as_json
    found, served = run(_show(open_door(called, reads=True), {**given, "prompts": whole}))
    tell_moment(called, found)
    if call is not None:
        found = {**found, "prompts": find_calls(found["prompts"], call)}
    focus = found.get("provenance", {}).get("focus", ())

    def text(told: MissionDocument) -> str:
        if call is not None:
            return prompts_text(told["prompts"], focus).lstrip("\n")
        record = mission_text(told, voices=voices, served=served)
        return f"{record}\n{prompts_text(told['prompts'], focus)}" if prompts else record

    called.answer(found, text)
    return 0


async def _show(opened: Opened, args: Mapping[str, object]) -> tuple[MissionDocument, bool]:
    async with opened as way:
        found = await ask(way, SHOW, args)
        return found, way.served or "as_of" in found or await way.attends(found["id"])


@take(WHY)
@click.option("--whole", is_flag=True, help="The whole tree, however long it is.")
def why(called: VerbCall, given: dict[str, object], whole: bool) -> int:
    """Show the tree as wide as the terminal is."""
    given["what"] = str(given["what"]).strip()
    if not given["what"]:
        raise BriefError("it is empty", field="what", remedy="Quote a sentence, or name a mission or OBJECT.SLOT.")
    found, width = ask_for(called, WHY, given), columns(called.console.out) or 80
    called.answer(found, lambda told: tree_text(told, width, whole=whole or called.verbose))
    return 0
