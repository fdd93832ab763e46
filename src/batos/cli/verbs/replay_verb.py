"""The verb `replay`: a mission of the past asked again as of its own snapshot, with another model or codex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from batos.cli.completions import mission_ids
from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Opened
from batos.cli.doors.following import FollowedMission
from batos.cli.render.mission_printer import MissionPrinter
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import BriefError
from batos.verbs.dream_verbs import replay_text


@click.command(epilog=examples("batos replay last --model qwen3:8b", "batos replay m-01K8S2 --codex ./other-codex"))
@click.argument("mission", type=given_name, shell_complete=mission_ids)
@click.option("--model", type=given_name, help="Let every persona think with this model, which Ollama has.")
@click.option("--codex", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A folder: another codex.")
@with_server
def replay(called: VerbCall, mission: str, model: str | None, codex: Path | None) -> int:
    """Ask MISSION (or `last`) again in a copy of the mind as it saw it, and show what comes out otherwise.

    Calls that are the same are served from the journal. The image is not changed, and the journal keeps the replay.
    """
    args: dict[str, Any] = {"mission": mission, "user": called.settings.asker}
    if model is not None:
        args["model"] = model
    if codex is not None:
        args["codex"] = _read_codex(codex)
    printer = MissionPrinter(called.console, called.quiet, False, False, called.verbose)
    followed = FollowedMission(printer, kept_in="journal")
    code, found = run(_replay(open_door(called), followed, args), followed.parting)
    if "replay" in found and not called.console.as_json:
        called.console.write("\n" + replay_text(found["replay"], code == 0))
    return code


async def _replay(opened: Opened, followed: FollowedMission, args: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the exit code, and the mission's document with what is otherwise."""
    async with opened as way:
        code = await followed.run(way, "replay", args)
        return code, followed.found


def _read_codex(folder: Path) -> dict[str, str]:
    """Read the files of a codex. Raises: BriefError: there are none."""
    found = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.toml"))}
    if not found:
        raise BriefError(f"{folder} has no codex", field="codex", remedy="`batos codex show` tells where yours is.")
    return found
