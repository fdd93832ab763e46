"""The verb `dream new`, a question in a copy of the mind, and the group of verbs about what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from batos.cli.brief_options import BriefOptions, brief_options
from batos.cli.declared import group
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.doors.following import FollowedMission, follower, hand_over
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.wrong_usage import DefaultVerb
from batos.protocol.brief import File
from batos.verbs import dream_verbs


class _Dream(DefaultVerb):
    """The verb `dream`: a question in the place of a verb is asked."""

    def takes(self, args: Sequence[str]) -> bool:
        """Test if there is a question: a text of several words, which no verb is, first or behind options."""
        told = args[:1] if args and not args[0].startswith("-") else args
        return any(len(each.split()) > 1 for each in told)


dream = group(dream_verbs.DREAM_NOUN, dream_verbs, _Dream)


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
    followed = follower(called, voices=options.voices, stream=options.stream)
    followed.kept_in = "journal"
    code = run(_new(open_door(called), followed, brief, files), followed.parting)
    if code == 0:
        name = followed.mission
        called.note(f"`batos dream diff {name}` shows what it would change, `batos dream promote {name}` does it.")
    return code


async def _new(opened: Opened, followed: FollowedMission, brief: Mapping[str, object], files: Sequence[File]) -> int:
    async with opened as way:
        whole = await hand_over(way, brief, files)
        return await followed.run(way, "dream_new", {"brief": whole})
