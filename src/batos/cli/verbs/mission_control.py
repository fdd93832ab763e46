"""The verbs that stop missions and let them go on: cancel, pause, resume."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import Final

import click

from batos.cli.completions import mission_ids
from batos.cli.declared import ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission import ended_text
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.mission_documents import MissionDocument
from batos.verbs.mission_verbs import CANCEL, PAUSE, SteerArgs
from batos.verbs.wire_verb import WireVerb

#: Characters of a question that say which one it is.
_LINE: Final = 60


@click.command()
@click.argument("mission", type=given_name, shell_complete=mission_ids)
@with_server
def cancel(called: VerbCall, mission: str) -> int:
    """Cancel a MISSION, at once if it runs; `last` is your newest. Its paid calls stay paid."""
    return _steer(called, CANCEL, mission)


@click.command()
@click.argument("mission", type=given_name, shell_complete=mission_ids)
@with_server
def pause(called: VerbCall, mission: str) -> int:
    """Pause a MISSION: calls under way are finished and kept, no new one begins. `batos resume` continues it."""
    return _steer(called, PAUSE, mission)


def _steer(called: VerbCall, verb: WireVerb[SteerArgs, MissionDocument], mission: str) -> int:
    told = run(ask_once(open_door(called), verb, {"mission": mission, "user": called.settings.asker}))
    _tell(called, told)
    return 0


def _tell(called: VerbCall, told: Mapping[str, object]) -> None:
    if called.console.as_json:
        called.console.document(told)
    elif not called.quiet:
        called.console.write(f"{told['id']} {ended_text(str(told['status']))}.")


@click.command()
@click.argument("mission", type=given_name, required=False, shell_complete=mission_ids)
@with_server
def resume(called: VerbCall, mission: str | None) -> int:
    """Continue a paused or parked MISSION; paid calls are not paid again. `last` is your newest.

    Without MISSION: run missions that an ended process left, and those that `submit` queued while no server ran. A
    server does that by itself. Ctrl-C puts missions without an answer back into the queue.
    """
    printer = MissionPrinter(
        called.console, quiet=called.quiet, streams=False, shows_voices=False, verbose=called.verbose
    )
    return run(_resume(called, open_door(called), FollowedMission(printer), mission))


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
        told = await way.call("resume", {"mission": name})
        if way.served:
            _tell(called, told)
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
