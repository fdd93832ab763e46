"""The verb `why`: where something came from."""

from __future__ import annotations

import click

from batos.cli.declared import ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.past_moments import as_of_option, tell_moment, with_moment
from batos.cli.render.why_tree import tree_text
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import BriefError
from batos.terminal.layout import columns
from batos.verbs.mission_verbs import WHY


@click.command(
    epilog=examples(
        'batos why "Maro winds the clockwork every four hours."',
        "batos why last",
        "batos why brick_prototype_obj.sage_facet_",
    )
)
@click.argument("what")
@click.option("--whole", is_flag=True, help="The whole tree, however long it is.")
@as_of_option
@with_server
def why(called: VerbCall, what: str, whole: bool, as_of: str | None) -> int:
    """Show what WHAT came from: the path of calls, prompts, models, memories, methods and commits, as a tree.

    Name a mission (or `last`), OBJECT.SLOT or a memory (d-...), or quote a sentence of one of your answers. The tree
    fits a screen; --whole shows all of it, and --json too.
    """
    if not what.strip():
        raise BriefError("it is empty", field="what", remedy="Quote a sentence, or name a mission or OBJECT.SLOT.")
    args = with_moment({"what": what.strip(), "user": called.settings.asker}, as_of)
    found = run(ask_once(open_door(called, reads=True), WHY, args))
    tell_moment(called, found)
    width = columns(called.console.out) or 80
    called.answer(found, lambda told: tree_text(told, width, whole=whole or called.verbose))
    return 0
