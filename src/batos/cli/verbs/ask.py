"""The verbs that begin missions, wait for them, or run them again: ask, submit, wait, send, resume and retry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import shorten
from typing import Any, Final, cast

import click

from batos.cli.brief_options import BriefOptions, brief_options, policy_options
from batos.cli.command_line import examples, given_name
from batos.cli.completion import mission_ids, object_names
from batos.cli.declared import ask as ask_door
from batos.cli.declared import take
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.doors.following import WAITS, FollowedMission, follower, hand_over
from batos.cli.doors.mission_answers import answer_mission
from batos.cli.typed_names import as_of_option
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.brief import File
from batos.protocol.errors import BatosError, Refused
from batos.protocol.mission_documents import MissionDocument
from batos.protocol.wire_messages import mission_error
from batos.verbs.mission_verbs import RESUME, WAIT, steered_text


@click.command(
    epilog=examples(
        'batos ask "How was the breach closed?" --file harbour.txt',
        'git diff | batos ask "What could go wrong here?"',
        'batos ask --effort council --voices "Should we mend the pier or build a new one?"',
    )
)
@click.argument("text", required=False)
@brief_options
@as_of_option
@with_server
def ask(called: VerbCall, options: BriefOptions, text: str | None, as_of: str | None) -> int:
    """Ask, and wait for the answer. TEXT is the question, and piped text is a document to answer from.

    Without TEXT, or with - as TEXT, stdin is the question.

    With --as-of the mind answers as it was then, by the models of today; the image keeps nothing of it.

    Put a question that begins with a dash after two dashes: batos ask -- "-5 degrees, is that cold?"
    """
    brief, files = options.brief_and_files(text, called, "batos ask")
    again = "batos show last" if as_of is None else None
    followed = follower(called, voices=options.voices, stream=options.stream, again=again)
    if as_of is not None:
        followed.kept_in = "journal"
        return run(_ask_past(open_door(called), followed, brief, files, as_of), followed.parting)
    followed.is_answered = called.can_ask or bool(brief.get("plan"))
    code = run(_ask(open_door(called), followed, brief, files), followed.parting)
    return answer_mission(called, followed, code, partial(_follow_up, followed, brief))


async def _ask_past(
    opened: Opened, followed: FollowedMission, brief: Mapping[str, object], files: Sequence[File], as_of: str
) -> int:
    """Ask the mind as it was; nothing is learnt from that, and nothing follows."""
    async with opened as way:
        return await followed.run(way, "submit", {"brief": await hand_over(way, brief, files), "as_of": as_of})


async def _ask(opened: Opened, followed: FollowedMission, brief: Mapping[str, object], files: Sequence[File]) -> int:
    async with opened as way:
        asked = {"brief": await hand_over(way, brief, files)}
        return await _follow_up(followed, brief, way, await followed.run(way, "submit", asked))


async def _follow_up(followed: FollowedMission, brief: Mapping[str, object], way: Door, code: int) -> int:
    """See to what follows a mission: methods, effects, a compaction; return the exit code."""
    if code == 0:
        await followed.learn(way)
        code = await followed.tell_effects(way, cast("Sequence[str]", brief.get("grants") or ()))
    begun = await way.start_due(followed.mission) if code in (0, WAITS) and "conversation" in brief else None
    if begun is not None:
        followed.printer.console.say(
            f"Older turns are being compacted by {begun}; Ctrl-C leaves it for later.", dim=True
        )
        ended = cast("MissionDocument", await way.call("wait", {"mission": begun}))
        if ended["status"] != "done":
            followed.printer.console.say(f"{begun} is {ended['status']}: {mission_error(ended).message}")
    return code


@click.command(
    epilog=examples(
        'batos submit "Compare the two plans" --file a.md --file b.md',
        'id=$(batos submit -q "Why does the tide turn?"); batos wait "$id"',
        'batos submit --deadline 2h --priority -5 "What did I ask about piers?"',
    )
)
@click.argument("text", required=False)
@brief_options
@with_server
def submit(called: VerbCall, options: BriefOptions, text: str | None) -> int:
    """Submit a question and return; only the mission's id is printed.

    TEXT is the question, and what is piped is a document to answer from; without TEXT stdin is the question. The
    mission is durable then. A server runs it by itself; without one it is queued until `batos resume` or `batos serve`.
    """
    brief, files = options.brief_and_files(text, called, "batos submit")
    return run(_submit(called, open_door(called), brief, files))


async def _submit(called: VerbCall, opened: Opened, brief: Mapping[str, object], files: Sequence[File]) -> int:
    async with opened as way:
        told = await way.call("submit", {"brief": await hand_over(way, brief, files), "follow": False})
        served = way.served
    if called.console.as_json:
        called.console.document({"id": told["mission"], "status": told["status"], "served": served})
        return 0
    called.console.write(str(told["mission"]))
    if not called.quiet:
        then = "`batos wait` waits for it" if served else "no server runs: `batos resume` or `batos serve` runs it"
        called.console.say(f"It is {told['status']}; {then}.", dim=True)
    return 0


@take(WAIT)
@click.option("--voices", is_flag=True, help="Show each part beside the answer.")
@click.option("--stream/--no-stream", default=None, help="Show the answer as it grows (default: on a terminal).")
def wait(called: VerbCall, given: Mapping[str, object], voices: bool, stream: bool | None) -> int:
    """Follow a mission."""
    return run(_wait(open_door(called), follower(called, voices=voices, stream=stream), given))


async def _wait(opened: Opened, followed: FollowedMission, args: Mapping[str, object]) -> int:
    async with opened as way:
        return await followed.wait(way, args)


@click.command()
@click.argument("receiver", metavar="OBJECT", type=given_name, shell_complete=object_names)
@click.argument("selector", type=given_name)
@click.argument("arguments", metavar="[ARGS]...", nargs=-1)
@policy_options
@click.option("--grant", "grants", multiple=True, metavar="NAME", help="A grant that the message may use. Repeatable.")
@click.option("--voices", is_flag=True, help="Show each part beside the answer.")
@with_server
def send(
    called: VerbCall, receiver: str, selector: str, arguments: tuple[str, ...], voices: bool, grants: tuple[str, ...],
    **policy: str | None,
) -> int:  # fmt: skip
    """Send a message to an OBJECT of the image, and wait for the result.

    Each of ARGS that is JSON is read as JSON (12, true, '["a"]', '"12"'), any other is a text. The message is a
    mission like any other: its cost is shown, and `batos show` shows it later. Put an argument that begins with a dash
    after two dashes: batos send tools_obj double_ -- -5
    """
    followed = follower(called, voices=voices, stream=False, again="batos show last")
    message = {"receiver": receiver, "selector": selector, "arguments": [argument(each) for each in arguments]}
    chosen = {name: value for name, value in policy.items() if value is not None}
    args = {**message, "user": called.settings.asker, **({"policy": chosen} if chosen else {})}
    args |= {"grants": list(grants)} if grants else {}
    return run(_send(open_door(called), followed, args, grants), followed.parting)


async def _send(opened: Opened, followed: FollowedMission, args: Mapping[str, object], grants: Sequence[str]) -> int:
    async with opened as way:
        return await _follow_up(followed, {"grants": grants}, way, await followed.run(way, "send", args))


def argument(text: str) -> Any:
    """Read a value of the command line: JSON, or else the text itself.

    >>> argument("12"), argument("twelve"), argument('"12"'), argument("NaN")
    (12, 'twelve', '12', 'NaN')
    """
    try:
        return json.loads(text, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return text


def _no_json(word: str) -> BatosError:
    raise ValueError(f"{word} is not JSON")


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
        told = await ask_door(way, RESUME, {"mission": name})
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
        brief = again(first, user)
        return await _follow_up(followed, brief, way, await followed.run(way, "submit", {"brief": brief}))


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
