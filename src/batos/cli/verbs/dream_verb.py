"""The verb `dream new`, a question in a copy of the mind, and the group of verbs about what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from batos.cli.declared import group
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.brief_options import BriefOptions, brief_options
from batos.cli.wrong_usage import DefaultVerb
from batos.verbs.dream_verbs import DREAM_DIFF, DREAM_DROP, DREAM_LIST, DREAM_NOUN, DREAM_PROMOTE


class _Dream(DefaultVerb):
    """The verb `dream`: a question in the place of a verb is asked."""

    def takes(self, args: Sequence[str]) -> bool:
        """Tell whether there is a question: a text of several words, which no verb is, first or behind options."""
        told = args[:1] if args and not args[0].startswith("-") else args
        return any(len(each.split()) > 1 for each in told)


dream = group(DREAM_NOUN, DREAM_LIST, DREAM_DIFF, DREAM_PROMOTE, DREAM_DROP, kind=_Dream)


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
