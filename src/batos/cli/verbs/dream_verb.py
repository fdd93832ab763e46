"""The verbs `dream new` and `replay`: a question, or a mission of the past, asked in a copy of the mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from batos.cli.brief_options import BriefOptions, brief_options
from batos.cli.command_line import DefaultVerb, examples
from batos.cli.declared import group, take
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.doors.following import FollowedMission, follow, follower, hand_over
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.brief import File
from batos.protocol.errors import BriefError
from batos.verbs import history_verbs
from batos.verbs.history_verbs import REPLAY, replay_text


class _Dream(DefaultVerb):
    """The verb `dream`: a question in the place of a verb is asked."""

    def takes(self, args: Sequence[str]) -> bool:
        """Test if there is a question: a text of several words, which no verb is, first or behind options."""
        told = args[:1] if args and not args[0].startswith("-") else args
        return any(len(each.split()) > 1 for each in told)


dream = group(history_verbs.DREAM_NOUN, history_verbs, _Dream)


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


@take(REPLAY, "codex")
@click.option("--codex", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder: another codex.")
def replay(called: VerbCall, given: Mapping[str, object], codex: Path | None) -> int:
    """Replay a mission, and show what came out otherwise."""
    args = given if codex is None else {**given, "codex": _read_codex(codex)}
    followed = follower(called, stream=False)
    followed.kept_in = "journal"
    code = run(follow(open_door(called), followed, "replay", args), followed.parting)
    found = followed.found
    if "replay" in found and not called.console.as_json:
        called.console.write("\n" + replay_text(found["replay"], code == 0))
    return code


def _read_codex(folder: Path) -> dict[str, str]:
    """Read the files of a codex. Raises: BriefError: there are none."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise BriefError(f"{folder} has no codex", field="codex", remedy="`batos codex show` tells where yours is.")
    return found
