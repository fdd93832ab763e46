"""The verbs `undo` and `redo`: take a mission out of the mind with all that it left there, or bring it back."""

from __future__ import annotations

from typing import Any

import click

from batos.cli.doors.door import open_door
from batos.cli.render.undo_texts import redone_text, undone_text
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.completion import mission_ids
from batos.cli.verbs.show import ask_once
from batos.protocol.undo_shapes import REDO, UNDO


@click.command(epilog=examples("batos undo --dry-run", "batos undo m-01M82CY0 --cascade", "batos undo --keep-methods"))
@click.argument("mission", type=given_name, default="last", shell_complete=mission_ids)
@click.option("--dry-run", is_flag=True, help="Only list what would go, with all that builds on it.")
@click.option("--cascade", is_flag=True, help="Take out later missions too that build on it.")
@click.option("--keep-methods", is_flag=True, help="Leave the methods and tools that were made for it.")
@click.option("--keep-memories", is_flag=True, help="Leave what is remembered of it.")
@click.option("--keep-slots", is_flag=True, help="Leave the slots that its methods wrote as they are.")
@with_server
def undo(called: VerbCall, mission: str, dry_run: bool, cascade: bool, **keeps: bool) -> int:
    """Undo a MISSION, or your `last`: its answer, memories, turn, methods, tools, and the slots that it wrote.

    Later missions that do not build on it stay. If some do, the undo is refused, and lists them. `batos redo` brings
    all of it back. Its calls stay in the journal, so that nothing is paid for twice.
    """
    keep = [name.removeprefix("keep_") for name, is_kept in keeps.items() if is_kept]
    args: dict[str, Any] = {"mission": mission, "cascade": cascade, "dry_run": dry_run, "keep": keep}
    found = run(ask_once(open_door(called), UNDO, {**args, "user": called.settings.asker}))
    called.answer(found, undone_text)
    return 0


@click.command(epilog=examples("batos redo", "batos redo m-01M82CY0 --cascade"))
@click.argument("mission", type=given_name, required=False, shell_complete=mission_ids)
@click.option("--cascade", is_flag=True, help="Bring back all missions that were undone with it.")
@with_server
def redo(called: VerbCall, mission: str | None, cascade: bool) -> int:
    """Bring an undone MISSION back as it was; without MISSION that of your newest undo.

    Whatever was changed since stays changed, and is named.
    """
    args = {"cascade": cascade, "user": called.settings.asker} | ({} if mission is None else {"mission": mission})
    called.answer(run(ask_once(open_door(called), REDO, args)), redone_text)
    return 0
