"""The verbs that run missions again: resume, also after a process ended, and retry, which pays for no call twice."""

from __future__ import annotations

from textwrap import shorten
from typing import Final, cast

import click

from batos.cli.completions import mission_ids
from batos.cli.declared import ask
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.doors.following import FollowedMission, follower
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import Refused
from batos.protocol.mission_documents import MissionDocument
from batos.verbs.mission_verbs import RESUME, steered_text

#: Characters of a question that say which one it is.
_LINE: Final = 60


@click.command()
@click.argument("mission", type=given_name, required=False, shell_complete=mission_ids)
@with_server
def resume(called: VerbCall, mission: str | None) -> int:
    """Continue a paused or parked MISSION; paid calls are not paid again. `last` is your newest.

    Without MISSION: run missions that an ended process left, and those that `submit` queued while no server ran. A
    server does that by itself. Ctrl-C puts missions without an answer back into the queue.
    """
    return run(_resume(called, open_door(called), follower(called, stream=False), mission))


async def _resume(called: VerbCall, opened: Opened, followed: FollowedMission, only: str | None) -> int:
    async with opened as way:
        if only is None:
            waiting = await way.left_behind()
            if not waiting:
                called.console.say("The server runs the waiting missions." if way.served else "Nothing waits.")
            return await _run_all(called, way, followed, waiting)
        behind, meant = await way.left_behind(), {"mission": only, "user": called.settings.asker}
        name = str((await way.call("show", meant))["id"])
        if name in behind:
            return await _run_all(called, way, followed, [name])
        told = await ask(way, RESUME, {"mission": name})
        if way.served:
            called.answer(told, steered_text)
            return 0
        return await _run_all(called, way, followed, [str(told["id"])])


async def _run_all(called: VerbCall, way: Door, followed: FollowedMission, missions: list[str]) -> int:
    """Run missions in this process, one after another; gives the worst exit code."""
    codes, ended = [0], []
    for mission in missions:
        await way.begin(mission)
        if called.console.as_json:
            ended.append(await way.call("wait", {"mission": mission, "follow": True}, followed.printer.on_event))
        else:
            if not called.quiet:
                text = (await way.call("show", {"mission": mission}))["brief"]["text"]
                called.console.say(f"{mission} goes on: {shorten(text, _LINE, placeholder='...')}")
            codes.append(await followed.wait(way, {"mission": mission}))
    if called.console.as_json:
        called.console.document({"missions": ended})
        return 0 if all(each["status"] == "done" for each in ended) else 1
    return max(codes)


#: The fields of a brief that are one mission's alone: a moment that has passed, its key, the door it came by.
_ITS_OWN: Final = frozenset({"id", "deadline", "idempotency_key", "origin", "ancestor"})


@click.command(epilog=examples("batos retry", "batos retry m-01M82CY0"))
@click.argument("mission", type=given_name, default="last", shell_complete=mission_ids)
@click.option("--voices", is_flag=True, help="Show each part beside the answer.")
@click.option("--stream/--no-stream", default=None, help="Show the answer as it grows (default: on a terminal).")
@with_server
def retry(called: VerbCall, mission: str, voices: bool, stream: bool | None) -> int:
    """Repeat a MISSION, or your `last`: its question, files and options.

    The retry is a new mission. Calls that the first one paid for are not paid again. The deadline is not repeated. A
    dream, a replay or a question to the past is asked again by its own verb.
    """
    followed = follower(called, voices=voices, stream=stream)
    return run(_retry(open_door(called), followed, mission, called.settings.asker), followed.parting)


async def _retry(opened: Opened, followed: FollowedMission, mission: str, user: str) -> int:
    async with opened as way:
        first = cast("MissionDocument", await way.call("show", {"mission": mission, "user": user}))
        _check_retriable(first)
        code = await followed.run(way, "submit", {"brief": again(first, user)})
        if code == 0:
            await followed.learn(way)
        return code


def _check_retriable(first: MissionDocument) -> None:
    """Check that a mission is one of the mind's. Raises: Refused: a copy of the mind had it."""
    mission = first["id"]
    if first.get("dream"):
        remedy = '`batos dream "..."` dreams a question again.'
        raise Refused(f"{mission} is a dream, and was not promoted", field="mission", remedy=remedy)
    if "as_of" in first:
        remedy = f'`batos ask --as-of {first["as_of"]["tid"]} "..."` asks that moment again, `batos replay` a mission.'
        raise Refused(f"{mission} asked the past, and the image has no such mission", field="mission", remedy=remedy)


def again(first: MissionDocument, user: str) -> dict[str, object]:
    """Make the brief of a mission that asks the same, by this user, and does not pay again for what was paid."""
    asked = {name: value for name, value in first["brief"].items() if name not in _ITS_OWN}
    origin = {"door": "cli", "client": "batos retry"}
    return {**asked, "user": user, "origin": origin, "ancestor": first["id"]}
