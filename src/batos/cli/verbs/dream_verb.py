"""The verb `dream` with its verbs: a question in a copy of the mind, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from batos.cli.declared import ask_once
from batos.cli.doors.door import Opened, open_door
from batos.cli.doors.followed_mission import FollowedMission
from batos.cli.render.dream_texts import difference_text, list_text
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.brief_options import BriefOptions, brief_options
from batos.cli.wrong_usage import DefaultVerb
from batos.verbs.dream_verbs import DREAM_DIFF, DREAM_DROP, DREAM_LIST, DREAM_PROMOTE


class _Dream(DefaultVerb):
    """The verb `dream`: a question in the place of a verb is asked."""

    def takes(self, args: Sequence[str]) -> bool:
        """Tell whether there is a question: a text of several words, which no verb is, first or behind options."""
        told = args[:1] if args and not args[0].startswith("-") else args
        return any(len(each.split()) > 1 for each in told)


@click.group(cls=_Dream, default="new")
def dream() -> None:
    """Ask in a copy of the mind, look at what that would change, then promote it or drop it.

    Without a verb: `new`, so `batos dream "Should we move?"` asks.
    """


@dream.command(
    short_help="Ask in a copy of the mind as it is now.",
    epilog=examples('batos dream new "What if the pier were of steel?"', "batos dream diff last"),
)
@click.argument("text", required=False)
@brief_options
@with_server
def new(called: VerbCall, options: BriefOptions, text: str | None) -> int:
    """Ask in a copy of the mind as it is now, and keep what the answer would change until you promote or drop it.

    With `--install now` methods that it lacks are made in the copy, and come with a promotion. TEXT and piped text are
    as in `batos ask`.
    """
    brief, files = options.brief_and_files(text, called, "batos dream new")
    live = called.console.out.isatty() if options.stream is None else options.stream
    printer = MissionPrinter(called.console, called.quiet, live, options.voices, called.verbose)
    followed = FollowedMission(printer, kept_in="journal")
    code = run(_new(open_door(called), followed, brief, files), followed.parting)
    if code == 0:
        name = followed.mission
        called.note(f"`batos dream diff {name}` shows what it would change, `batos dream promote {name}` does it.")
    return code


async def _new(opened: Opened, followed: FollowedMission, brief: dict[str, Any], files: Any) -> int:
    async with opened as way:
        whole = {**brief, "attachments": await way.attach(files)} if files else brief
        return await followed.run(way, "dream_new", {"brief": whole})


@dream.command("list", short_help="List the newest dreams.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@with_server
def list_(called: VerbCall, limit: int) -> int:
    """List the newest dreams, and whether each is open, promoted or dropped."""
    args = {"limit": limit, "user": called.settings.asker}
    called.answer(run(ask_once(open_door(called, reads=True), DREAM_LIST, args)), list_text)
    return 0


_DREAM = click.argument("dream_", metavar="DREAM", type=given_name)


@dream.command(short_help="Show all that a dream would change.")
@_DREAM
@with_server
def diff(called: VerbCall, dream_: str) -> int:
    """Show what DREAM (its mission's id, or `last`) would change now: by object and slot, tools, contributions."""
    args = {"dream": dream_, "user": called.settings.asker}
    called.answer(run(ask_once(open_door(called, reads=True), DREAM_DIFF, args)), difference_text)
    return 0


@dream.command(short_help="Make a dream part of the mind.")
@_DREAM
@with_server
def promote(called: VerbCall, dream_: str) -> int:
    """Make DREAM part of the mind: its mission, the slots that it changed, and its contributions, or none of it.

    Refused where a slot was changed since the dream began.
    """
    args = {"dream": dream_, "user": called.settings.asker}
    found = run(ask_once(open_door(called), DREAM_PROMOTE, args))
    called.answer(found, lambda told: f"{told['id']} is part of the mind now: `batos show {told['id']}`.")
    return 0


@dream.command(short_help="Throw a dream away.")
@_DREAM
@with_server
def drop(called: VerbCall, dream_: str) -> int:
    """Throw DREAM away. Its calls stay in the journal, and `batos show` still shows its answer."""
    args = {"dream": dream_, "user": called.settings.asker}
    found = run(ask_once(open_door(called), DREAM_DROP, args))
    called.answer(found, lambda told: f"{told['dream']} is dropped.")
    return 0
