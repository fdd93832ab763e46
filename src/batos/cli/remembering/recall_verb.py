"""The verbs of memory that find what is there or forget it: recall, forget."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, cast

import click

from batos.cli.declared import ask_for, ask_once, take, tell
from batos.cli.doors.choosing import open_door
from batos.cli.doors.following import erase as follow_erasure
from batos.cli.memory_naming import erased_place, place_of
from batos.cli.render.memory_texts import recalled_text
from batos.cli.shared_options import given_options
from batos.cli.verb_options import VerbCall, run
from batos.protocol.care_documents import ErasedPage
from batos.verbs.care_verbs import ERASE, erased_text
from batos.verbs.memory_verbs import FORGET, RECALL

#: The options by which a recall finds less.
_FILTERS: Final = ("scope", "source", "type", "persona", "mission", "since", "until", "strict")


@take(RECALL, "summarised")
@click.option("--all", "every", is_flag=True, help="All parts that have a word of it, in their own words.")
def recall(called: VerbCall, given: dict[str, object], every: bool) -> int:
    """Find what is remembered."""
    if not str(given["query"]).strip():
        raise click.UsageError("QUERY is empty. Give the words that are looked for.")
    if every and given_options("limit"):
        raise click.UsageError("--all goes with no --limit: all parts are listed.")
    if every:
        given |= {"limit": 10_000, "summarised": True} | ({} if given_options("mode") else {"mode": "text"})
    filters = given_options(*_FILTERS)
    called.answer(ask_for(called, RECALL, given), lambda found: recalled_text(found, filters))
    return 0


@take(FORGET, "documents")
@click.argument("documents", metavar="WHAT...", nargs=-1, required=True)
@click.option("--erase", is_flag=True, help="Erase it for good: from history, journal, files, indexes and logs too.")
@click.option("--words", is_flag=True, help="With --erase: WHAT is words, also where it could be a name.")
@click.option("--cascade", is_flag=True, help="With --erase: missions that build on it are erased too.")
@click.option("--every-user", is_flag=True, help="With --erase: what others said as well, and not yours alone.")
@click.option("--dry-run", is_flag=True, help="With --erase: only list what would go, with all that builds on it.")
@click.option("--yes", is_flag=True, help="With --erase: do not ask. Nothing brings it back.")
def forget(
    called: VerbCall,
    given: Mapping[str, object],
    documents: tuple[str, ...],
    *,
    erase: bool,
    yes: bool,
    every_user: bool,
    **how: bool,
) -> int:
    """Forget documents, or erase one thing."""
    if erase:
        user = None if every_user else called.settings.asker
        return _erase(called, documents, {"user": user, **how}, is_sure=yes)
    if yes or every_user or any(how.values()):
        raise click.UsageError("These options go with --erase.")
    return tell(called, FORGET, ask_for(called, FORGET, {**given, "documents": [*map(place_of, documents)]}))


def _erase(called: VerbCall, named: tuple[str, ...], args: Mapping[str, object], *, is_sure: bool) -> int:
    if len(named) != 1:
        raise click.UsageError("--erase takes one thing. Put words in quotation marks.")
    target = named[0] if args["words"] else place_of(named[0])
    args = {name: value for name, value in args.items() if value is not None} | {"target": target}
    args["target"] = run(erased_place(open_door(called), args))
    if not args["dry_run"] and not is_sure and not _is_confirmed(called, args):
        called.console.say("Nothing was erased.")
        return 4
    told = run(follow_erasure(open_door(called), args, called.console, quiet=called.quiet))
    called.answer(cast("ErasedPage", told), erased_text)
    return 0


def _is_confirmed(called: VerbCall, args: Mapping[str, object]) -> bool:
    """Show what would go, and ask whether it shall. Raises: click.UsageError: there is nobody to ask."""
    if called.console.as_json or not sys.stdin.isatty() or not sys.stderr.isatty():
        raise click.UsageError("--erase asks before it erases: give --yes, as nobody can answer here.")
    planned = run(ask_once(open_door(called), ERASE, {**args, "dry_run": True}))
    called.console.say(erased_text(planned))
    return click.confirm("Erase all this for good?", err=True)
