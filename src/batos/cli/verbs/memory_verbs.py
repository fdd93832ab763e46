"""The verbs of memory that look at what is there or forget it: recall, memories, forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from batos.cli.doors.door import open_door
from batos.cli.render.memory_texts import forgotten_text, listing_text, recalled_text, whole_text
from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.memory_files import exists
from batos.cli.verbs.show import ask_once


@click.command()
@click.argument("query")
@click.option("--limit", default=5, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--all", "every", is_flag=True, help="All parts that have a word of it.")
@click.option("--scope", type=given_name, help="Only what belongs to this scope.")
@with_server
def recall(called: VerbCall, query: str, limit: int, every: bool, scope: str | None) -> int:
    """Find the parts of what is remembered that match QUERY best; no model is asked."""
    args = {"query": query, "limit": 10_000 if every else limit, "user": called.settings.asker}
    found = run(ask_once(open_door(called, reads=True), "recall", {**args, **({"scope": scope} if scope else {})}))
    called.answer(found, recalled_text)
    return 0


@click.command()
@click.argument("document", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--scope", type=given_name, help="Only those of this scope.")
@with_server
def memories(called: VerbCall, document: str | None, limit: int, scope: str | None) -> int:
    """List what is remembered, the newest first. With DOCUMENT (its id, or where it came from) show all of one."""
    args: dict[str, Any] = {"limit": limit, "user": called.settings.asker}
    if document is not None:
        args["document"] = _place(document)
    if scope is not None:
        args["scope"] = scope
    found = run(ask_once(open_door(called, reads=True), "memories", args))
    called.answer(found, listing_text if document is None else whole_text)
    return 0


@click.command()
@click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)
@with_server
def forget(called: VerbCall, documents: tuple[str, ...]) -> int:
    """Forget documents by their ids, or by where they came from: all that are named, or none.

    Their words are erased from the present image and its indexes. The answer says where older bytes still are.
    """
    args = {"documents": [_place(each) for each in documents], "user": called.settings.asker}
    told = run(ask_once(open_door(called), "forget", args))
    called.answer(told, forgotten_text)
    return 0


def _place(named: str) -> str:
    """Return the path of a file that is there as `remember` keeps it, else the name as given."""
    return str(Path(named).resolve()) if exists(named) else named
