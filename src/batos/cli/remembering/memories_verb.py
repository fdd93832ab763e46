"""The verbs of memories that look further than a request: the list, an edit from stdin, deleting one."""

from __future__ import annotations

from functools import partial
from typing import Final

import click

from batos.cli import standard_input
from batos.cli.declared import ask_for, group, take, tell
from batos.cli.memory_naming import place_of
from batos.cli.shared_options import given_options
from batos.cli.verb_options import VerbCall, with_server
from batos.verbs import correction_verbs
from batos.verbs.correction_verbs import MEMORIES_EDIT
from batos.verbs.memory_verbs import FORGET, MEMORIES, MEMORIES_NOUN, listing_text, whole_text

#: Bytes of stdin that are read as a text; the server says if they are too many.
MOST_TEXT: Final = 2**20

memories = group(MEMORIES_NOUN, correction_verbs)


@take(MEMORIES, "sha256")
def list_(called: VerbCall, given: dict[str, object]) -> int:
    """List what is remembered, or show one document."""
    if "document" in given and (others := given_options("limit", "scope", "pinned")):
        raise click.UsageError(f"{others[0]} is for the list; DOCUMENT is shown as a whole.")
    found = ask_for(called, MEMORIES, given)
    listing = partial(listing_text, pinned="pinned" in given, scope=str(given.get("scope") or ""))
    called.answer(found, whole_text if "parts" in found else listing)
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
