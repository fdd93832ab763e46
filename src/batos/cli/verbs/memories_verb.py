"""The verbs that show what is remembered and correct it: memories with its verbs, pin, unpin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import click

from batos.cli.doors.choosing import open_door
from batos.cli.past_moments import as_of_option, tell_moment
from batos.cli.render.correction_texts import edited_text, pinned_text, restored_text, retracted_text
from batos.cli.render.memory_texts import forgotten_text, listing_text, whole_text
from batos.cli.shared_options import given_name, given_options
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs import standard_input
from batos.cli.verbs.memory_naming import ask_of_memories, place_of
from batos.cli.wrong_usage import DefaultVerb

#: Bytes of stdin that are read as a text; the server says if they are too many.
MOST_TEXT: Final = 2**20

_DOCUMENTS = click.argument("documents", metavar="DOCUMENT...", nargs=-1, required=True)


@click.group(cls=DefaultVerb, default="list")
def memories() -> None:
    """List, show, edit, delete, retract or restore what is remembered.

    Without a verb: `list`, so `batos memories DOCUMENT` shows all of one document.
    """


@memories.command("list", short_help="List what is remembered, or show all of one document.")
@click.argument("document", required=False)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--scope", type=given_name, help="Only those of this scope.")
@click.option("--pinned", is_flag=True, help="Only those that are pinned.")
@as_of_option
@with_server
def list_(called: VerbCall, document: str | None, limit: int, **only: Any) -> int:
    """List what is remembered, the newest first. With DOCUMENT (its id, or where it came from) show all of one."""
    if document is not None and (others := given_options("limit", "scope", "pinned")):
        raise click.UsageError(f"{others[0]} is for the list; DOCUMENT is shown as a whole.")
    args: dict[str, Any] = {"limit": limit, "user": called.settings.asker}
    if document is not None:
        args["document"] = place_of(document)
    args |= {name: value for name, value in only.items() if value}
    found = run(ask_of_memories(open_door(called, reads=True), "memories", args))
    tell_moment(called, found)
    listing = partial(listing_text, pinned=bool(only["pinned"]), scope=only["scope"])
    called.answer(found, listing if document is None else whole_text)
    return 0


@memories.command(short_help="Give a memory another text.")
@click.argument("document")
@click.argument("text")
@with_server
def edit(called: VerbCall, document: str, text: str) -> int:
    """Give a memory another TEXT; `-` reads it from stdin. The older text stays as marked history.

    The class of trust stays that of the older text.
    """
    words = text
    if text == "-":
        words = standard_input.decode(standard_input.read_stdin(MOST_TEXT, "text", called.note), "text", "text")
    return _change(called, "memories_edit", {"document": place_of(document), "text": words}, edited_text)


@memories.command(short_help="Forget a memory.")
@click.argument("document")
@with_server
def delete(called: VerbCall, document: str) -> int:
    """Forget one memory: `batos forget` with one document."""
    return _change(called, "forget", {"documents": [place_of(document)]}, forgotten_text)


@memories.command(short_help="Take memories out of recall, with all that they caused.")
@click.argument("documents", metavar="[DOCUMENT...]", nargs=-1)
@click.option("--source", metavar="FILE", help="All that came from this file or source.")
@click.option("--cascade", is_flag=True, help="Also answers, memories, methods and pins that came of them.")
@with_server
def retract(called: VerbCall, documents: tuple[str, ...], source: str | None, cascade: bool) -> int:
    """Take memories out of recall, named by ids or by their source, and keep them as marked history.

    `batos memories restore` brings them back, with all that went with them.
    """
    if bool(documents) == (source is not None):
        raise click.UsageError("Give documents, or --source FILE.")
    args: dict[str, Any] = {"documents": [place_of(each) for each in documents], "cascade": cascade}
    if source is not None:
        args["source"] = place_of(source)
    return _change(called, "memories_retract", args, retracted_text)


@memories.command(short_help="Let retracted or edited memories be recalled again.")
@_DOCUMENTS
@click.option("--alone", is_flag=True, help="Without the answers, methods and pins that went with them.")
@with_server
def restore(called: VerbCall, documents: tuple[str, ...], alone: bool) -> int:
    """Let memories be recalled again: retracted ones with all that went with them, edited ones with the old text."""
    args = {"documents": [place_of(each) for each in documents], "alone": alone}
    return _change(called, "memories_restore", args, restored_text)


@click.command()
@_DOCUMENTS
@with_server
def pin(called: VerbCall, documents: tuple[str, ...]) -> int:
    """Let memories be recalled for every question of their user and scope, as quoted text."""
    return _change(called, "pin", {"documents": [place_of(each) for each in documents]}, pinned_text)


@click.command()
@_DOCUMENTS
@with_server
def unpin(called: VerbCall, documents: tuple[str, ...]) -> int:
    """Let pinned memories be recalled like any other again."""
    return _change(called, "unpin", {"documents": [place_of(each) for each in documents]}, pinned_text)


def _change(called: VerbCall, verb: str, args: Mapping[str, Any], text: Callable[[Any], str]) -> int:
    told = run(ask_of_memories(open_door(called), verb, {**args, "user": called.settings.asker}))
    called.answer(told, text)
    return 0
