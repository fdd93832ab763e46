"""The verbs of what is remembered: memories, recall, forget and curate."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final, cast

import click

from batos.cli import standard_input
from batos.cli.command_line import given_options
from batos.cli.declared import ask_for, ask_once, group, take, tell
from batos.cli.doors.choosing import open_door
from batos.cli.doors.following import erase as follow_erasure
from batos.cli.render.memory_texts import recalled_text
from batos.cli.typed_names import erased_place, place_of
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import UsageError
from batos.protocol.server_documents import ErasedPage
from batos.terminal.console import count_text
from batos.verbs import correction_verbs
from batos.verbs.correction_verbs import CURATE, MEMORIES_EDIT
from batos.verbs.memory_verbs import FORGET, MEMORIES, MEMORIES_NOUN, RECALL, listing_text, whole_text
from batos.verbs.server_verbs import ERASE, erased_text

#: Bytes of stdin that are read as a text; the server says if they are too many.
MOST_TEXT: Final = 2**20

memories = group(MEMORIES_NOUN, correction_verbs)


@take(MEMORIES, "sha256")
def list_(called: VerbCall, given: dict[str, object]) -> int:
    """List what is remembered, or show one document."""
    if "document" in given and (others := given_options("limit", "scope", "pinned")):
        raise click.UsageError(f"{others[0]} is for the list; DOCUMENT is shown as a whole.")
    found = ask_for(called, MEMORIES, given)
    pinned, scope = "pinned" in given, str(given.get("scope") or "")
    called.answer(
        found, lambda told: whole_text(told) if "parts" in told else listing_text(told, pinned=pinned, scope=scope)
    )
    return 0


@take(MEMORIES_EDIT)
def edit(called: VerbCall, given: dict[str, object]) -> int:
    """Edit a memory."""
    if given["text"] == "-":
        read = standard_input.read_stdin(MOST_TEXT, "text", called.note)
        given["text"] = standard_input.decode(read, "text", "text")
    return tell(called, MEMORIES_EDIT, ask_for(called, MEMORIES_EDIT, given))


@memories.command(short_help="Forget a memory.")
@click.argument("document", type=place_of)
@with_server
def delete(called: VerbCall, document: str) -> int:
    """Forget one memory: `batos forget` with one document."""
    return tell(called, FORGET, ask_for(called, FORGET, {"documents": [document], "user": called.settings.asker}))


memories.add_command(list_)
memories.add_command(edit)


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


#: A line is told after so many regions.
_TOLD_REGIONS = 20


@take(CURATE)
def curate(called: VerbCall, given: dict[str, object]) -> int:
    """Fold memories, and tell how far that is."""
    if "undo" in given:
        if others := given_options("dry_run", "cold_days", "limit", "rule"):
            other = others[0].replace("cold-days", "cold-after")
            raise UsageError(f"--undo goes with no {other}", field="undo", remedy="Give it alone.")
        del given["limit"]
    folded: list[int] = []

    def on_event(_event: str, told: Mapping[str, object]) -> None:
        folded.append(cast("int", told["documents"]))
        if told["written_by"] == "model" or len(folded) % _TOLD_REGIONS == 0:
            called.note(f"{count_text(sum(folded), 'document')} in {count_text(len(folded), 'region')} so far")

    return tell(called, CURATE, run(ask_once(open_door(called), CURATE, given, on_event)))
