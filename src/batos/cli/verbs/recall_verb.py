"""The verbs of memory that find what is there or forget it: recall, forget."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast, get_args

import click

from batos.cli.declared import ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.doors.following import erase as follow_erasure
from batos.cli.past_moments import as_of_option, tell_moment
from batos.cli.render.memory_texts import forgotten_text, recalled_text
from batos.cli.shared_options import examples, given_moment, given_name, given_options
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.memory_naming import ask_of_memories, erased_place, place_of
from batos.protocol.brief import PersonaName
from batos.protocol.care_documents import ErasedPage
from batos.verbs.care_verbs import ERASE, erased_text

#: The choices of a recall.
MODES: Final = ("linked", "hybrid", "text", "vectors")
TYPES: Final = ("document", "mission", "turn", "fact", "summary")
#: The options by which a recall finds less.
_FILTERS: Final = ("scope", "source", "type", "persona", "mission", "since", "until", "strict")


@click.command()
@click.argument("query")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--all", "every", is_flag=True, help="All parts that have a word of it, in their own words.")
@click.option("--mode", type=click.Choice(MODES), help="Words, vectors and links (linked), or fewer of them.")
@click.option("--scope", type=given_name, help="Only what belongs to this scope.")
@click.option(
    "--source",
    type=given_name,
    help="Only what came from there: a file (of a mailbox: its mails), or a name given with --source.",
)
@click.option("--type", type=click.Choice(TYPES), help="Only memories of this type.")
@click.option(
    "--persona", type=click.Choice(get_args(PersonaName), case_sensitive=False), help="Only what this persona answered."
)
@click.option("--mission", type=given_name, help="Only what this mission left (its whole id).")
@click.option("--since", metavar="TIME", type=given_moment, help="Only from this moment on, such as 2026-11-24.")
@click.option("--until", metavar="TIME", type=given_moment, help="Only before this moment.")
@click.option("--history", is_flag=True, help="Also what is no longer current, marked as such.")
@click.option("--strict", is_flag=True, help="Only what holds: no statement that is marked.")
@click.option("--newest", is_flag=True, help="Behind what matches also the newest facts, turns and notes.")
@as_of_option
@with_server
def recall(called: VerbCall, query: str, every: bool, limit: int, source: str | None, **only: Any) -> int:
    """Find the parts of what is remembered that match QUERY best; no model answers."""
    if not query.strip():
        raise click.UsageError("QUERY is empty. Give the words that are looked for.")
    if every and given_options("limit"):
        raise click.UsageError("--all goes with no --limit: all parts are listed.")
    mode = only.pop("mode") or ("text" if every else "linked")
    args = {"query": query, "limit": 10_000 if every else limit, "mode": mode, "user": called.settings.asker}
    args |= {name: value for name, value in only.items() if value} | ({"summarised": True} if every else {})
    if source is not None:
        args["source"] = place_of(source)
    found = run(ask_of_memories(open_door(called, reads=True), "recall", args))
    tell_moment(called, found)
    called.answer(found, partial(recalled_text, filters=given_options(*_FILTERS)))
    return 0


@click.command(epilog=examples("batos forget d-01M82CY0", "batos forget --erase last --dry-run"))
@click.argument("documents", metavar="WHAT...", nargs=-1, required=True)
@click.option("--erase", is_flag=True, help="Erase it for good: from history, journal, files, indexes and logs too.")
@click.option("--words", is_flag=True, help="With --erase: WHAT is words, also where it could be a name.")
@click.option("--cascade", is_flag=True, help="With --erase: missions that build on it are erased too.")
@click.option("--every-user", is_flag=True, help="With --erase: what others said as well, and not yours alone.")
@click.option("--dry-run", is_flag=True, help="With --erase: only list what would go, with all that builds on it.")
@click.option("--yes", is_flag=True, help="With --erase: do not ask. Nothing brings it back.")
@with_server
def forget(called: VerbCall, documents: tuple[str, ...], erase: bool, yes: bool, every_user: bool, **how: bool) -> int:
    """Forget documents by their ids, by where they came from, or by their whole text: all that are named, or none.

    Their words are erased from the present image and its indexes. The answer says where older bytes still are.

    With --erase, WHAT is one mission, conversation, memory, source, object, OBJECT.SLOT, or words. No history, journal,
    file, index or log has the words afterwards; digests stay, so `batos audit verify` holds. The answer names what
    this verb cannot reach.
    """
    if erase:
        return _erase(called, documents, {"user": None if every_user else called.settings.asker, **how}, is_sure=yes)
    if yes or every_user or any(how.values()):
        raise click.UsageError("These options go with --erase.")
    args = {"documents": [place_of(each) for each in documents], "user": called.settings.asker}
    told = run(ask_of_memories(open_door(called), "forget", args))
    called.answer(told, forgotten_text)
    return 0


def _erase(called: VerbCall, named: tuple[str, ...], args: dict[str, Any], *, is_sure: bool) -> int:
    if len(named) != 1:
        raise click.UsageError("--erase takes one thing. Put words in quotation marks.")
    target = named[0] if args["words"] else place_of(named[0])
    args = {name: value for name, value in args.items() if value is not None} | {"target": target}
    args["target"] = run(erased_place(open_door(called), args))
    if not args["dry_run"] and not is_sure and not _is_confirmed(called, args):
        called.console.say("Nothing was erased.")
        return 4
    told = run(follow_erasure(open_door(called), args, called.console))
    called.answer(cast("ErasedPage", told), erased_text)
    return 0


def _is_confirmed(called: VerbCall, args: Mapping[str, Any]) -> bool:
    """Show what would go, and ask whether it shall. Raises: click.UsageError: there is nobody to ask."""
    if called.console.as_json or not sys.stdin.isatty() or not sys.stderr.isatty():
        raise click.UsageError("--erase asks before it erases: give --yes, as nobody can answer here.")
    planned = run(ask_once(open_door(called), ERASE, {**args, "dry_run": True}))
    called.console.say(erased_text(planned))
    return click.confirm("Erase all this for good?", err=True)
