"""The verb `retry`: it repeats a mission's question with its files and options, and pays for no call twice."""

from __future__ import annotations

from typing import Any, Final

import click

from batos.cli.completions import mission_ids
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import Refused

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
    live = called.console.out.isatty() if stream is None else stream
    followed = FollowedMission(MissionPrinter(called.console, called.quiet, live, voices, called.verbose))
    return run(_retry(open_door(called), followed, mission, called.settings.asker), followed.parting)


async def _retry(opened: Opened, followed: FollowedMission, mission: str, user: str) -> int:
    async with opened as way:
        first = await way.call("show", {"mission": mission, "user": user})
        _check_retriable(first)
        code = await followed.run(way, "submit", {"brief": again(first, user)})
        if code == 0:
            await followed.learn(way)
        return code


def _check_retriable(first: dict[str, Any]) -> None:
    """Check that a mission is one of the mind's. Raises: Refused: a copy of the mind had it."""
    mission = first["id"]
    if first.get("dream"):
        remedy = '`batos dream "..."` dreams a question again.'
        raise Refused(f"{mission} is a dream, and was not promoted", field="mission", remedy=remedy)
    if "as_of" in first:
        remedy = f'`batos ask --as-of {first["as_of"]["tid"]} "..."` asks that moment again, `batos replay` a mission.'
        raise Refused(f"{mission} asked the past, and the image has no such mission", field="mission", remedy=remedy)


def again(first: dict[str, Any], user: str) -> dict[str, Any]:
    """Make the brief of a mission that asks the same, by this user, and does not pay again for what was paid."""
    asked = {name: value for name, value in first["brief"].items() if name not in _ITS_OWN}
    origin = {"door": "cli", "client": "batos retry"}
    return {**asked, "user": user, "origin": origin, "ancestor": first["id"]}
