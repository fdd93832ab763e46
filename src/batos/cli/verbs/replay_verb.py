"""The verb `replay`: a mission of the past asked again as of its own snapshot, with another model or codex."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from batos.cli.declared import take
from batos.cli.doors.choosing import open_door
from batos.cli.doors.following import follow, follower
from batos.cli.verb_options import VerbCall, run
from batos.protocol.errors import BriefError
from batos.verbs.dream_verbs import REPLAY, replay_text


@take(REPLAY, "codex")
@click.option("--codex", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder: another codex.")
def replay(called: VerbCall, given: Mapping[str, object], codex: Path | None) -> int:
    """Replay a mission, and show what came out otherwise."""
    args = given if codex is None else {**given, "codex": _read_codex(codex)}
    followed = follower(called, stream=False)
    followed.kept_in = "journal"
    code = run(follow(open_door(called), followed, "replay", args, learns=False), followed.parting)
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
