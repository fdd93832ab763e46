"""The verbs of memory: remember, recall, list and forget."""

from __future__ import annotations

from textwrap import indent
from typing import Annotated, Final, Literal

from pydantic import Field

from batos.protocol.brief import PersonaName
from batos.protocol.memory_documents import (
    ChunkDocument,
    DatedMemory,
    EmbeddedPage,
    ForgottenPage,
    MemoriesPage,
    MemoryLine,
    RecalledChunk,
    RecalledPage,
    RememberedPage,
    WholeMemory,
)
from batos.protocol.wire_messages import Asker, AsOf, MemoryName, Moment, Name, StrictModel
from batos.terminal.console import count_text, local_time, short, size, title_with_path
from batos.terminal.layout import plain, table
from batos.verbs.wire_verb import Noun, WireVerb

MEMORIES_NOUN: Final = Noun(
    "memories",
    """List, show, edit, delete, retract or restore what is remembered.

    Without a verb: `list`, so `batos memories DOCUMENT` shows all of one document.""",
    default="list",
)


class RememberedFile(StrictModel):
    """A file to be remembered, whose bytes were sent by `attach`."""

    name: str = Field(min_length=1, max_length=255, description="Its name.")
    media_type: Name = Field(description="Its media type, such as `text/markdown`.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The digest of its content.")
    source: str = Field(
        default="", max_length=4_096, description="The place that it came from: a later file from there replaces it."
    )
    title: str | None = Field(
        default=None, min_length=1, max_length=255, description="Its title; absent: its first heading, else its name."
    )
    span: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None,
        min_length=2,
        max_length=2,
        description="The bytes of it that are meant: the first one, and the one behind the last; absent: all.",
    )
    original: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="The digest of the file that the text was taken from; absent: of the content that was sent.",
    )
    kind: Literal["document", "turn"] = Field(default="document", description="A turn is a mail or a chat's message.")
    said_at: str = Field(default="", max_length=40, description="The moment it was said or written, where it is known.")
    speaker: str = Field(default="", max_length=255, description="The one who said it.")
    conversation: str = Field(default="", max_length=1_024, description="The conversation that it belongs to.")
    left_out: list[Annotated[str, Field(max_length=300)]] = Field(
        default_factory=list, max_length=20, description="A phrase for each part of its file that could not be read."
    )


class RememberArgs(StrictModel):
    """Texts to be remembered: files that were sent by `attach`, or one text."""

    files: list[RememberedFile] = Field(default_factory=list, max_length=256, description="The files: at most 256.")
    check: bool = Field(
        default=False,
        description="Only tell which of the files are known by their digests, and note that they came from these "
        "sources too; nothing has to be sent before.",
    )
    text: str | None = Field(default=None, min_length=1, max_length=20_000, description="Or a text of its own.")
    source: str | None = Field(default=None, max_length=4_096, description="The place that the text came from.")
    title: str | None = Field(default=None, min_length=1, max_length=255, description="The title of the text.")
    key: Name | None = Field(
        default=None,
        description="The text is a fact, the value of this key; it takes the place of the key's older one.",
    )
    supersedes: Name | None = Field(
        default=None, description="The key, or the id, of another fact that this one takes the place of."
    )
    depends_on: list[Name] = Field(
        default_factory=list, max_length=64, description="Keys of facts without which this one does not hold."
    )
    scope: Name | None = Field(default=None, description="The scope that they belong to; absent: `default`.")
    owner: Name | None = Field(
        default=None,
        description="Their owner, where no `user` is given; absent: the server's own user.",
    )
    user: Name | None = Field(
        default=None, description="The user who remembers them; only this user's files may be named then."
    )


class RecallArgs(StrictModel):
    """Find the parts of what is remembered that match QUERY best; no model answers."""

    query: str = Field(min_length=1, max_length=20_000, description="The question or the words that are looked for.")
    limit: int = Field(default=5, ge=1, le=10_000, description="Most parts in the list.")
    mode: Literal["linked", "hybrid", "text", "vectors"] = Field(
        default="linked", description="Words and vectors with the links between parts, the two alone, or one of them."
    )
    scope: Name | None = Field(default=None, description="Only what belongs to this scope; absent: all of them.")
    source: MemoryName | None = Field(
        default=None,
        description="Only what came from there: a file (of a mailbox: its mails), or a name given with --source.",
    )
    type: Literal["document", "mission", "turn", "fact", "summary"] | None = Field(
        default=None, description="Only memories of this type."
    )
    persona: PersonaName | None = Field(default=None, description="Only what this persona answered.")
    mission: Name | None = Field(default=None, description="Only what this mission left; its whole id.")
    since: Moment | None = Field(default=None, description="Only from this moment on (ISO 8601 with a time zone).")
    until: Moment | None = Field(default=None, description="Only before this moment (ISO 8601 with a time zone).")
    history: bool = Field(default=False, description="Also what is no longer current, marked by its `standing`.")
    strict: bool = Field(default=False, description="Without the statements that are marked: what holds, alone.")
    newest: bool = Field(default=False, description="Behind what matches the newest facts, turns and notes, too.")
    summarised: bool = Field(
        default=False, description="The parts that summaries stand for, in the place of these summaries."
    )
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")
    as_of: AsOf = None


class MemoriesArgs(StrictModel):
    """List what is remembered, the newest first. With DOCUMENT (its id, or where it came from) show all of one.

    Of a mailbox, or a file of chats, its mails or messages are listed.
    """

    document: MemoryName | None = Field(
        default=None, description="Show this one: its id, the id's beginning, a source."
    )
    limit: int = Field(default=20, ge=1, le=10_000, description="Most documents in the list.")
    scope: Name | None = Field(default=None, description="Only those of this scope.")
    sha256: list[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = Field(
        default_factory=list, max_length=1_000, description="Only those with one of these contents."
    )
    pinned: bool = Field(default=False, description="Only those that are pinned.")
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")
    as_of: AsOf = None


class ForgetArgs(StrictModel):
    """Forget documents by their ids, by where they came from, or by their whole text: all that are named, or none.

    Their words are erased from the present image and its indexes. The answer says where older bytes still are.

    With --erase, WHAT is one mission, conversation, memory, source, object, OBJECT.SLOT, or words. No history, journal,
    file, index or log has the words afterwards; digests stay, so `batos audit verify` holds. The answer names what
    this verb cannot reach.
    """

    documents: list[MemoryName] = Field(
        min_length=1, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    user: Asker = Field(default=None, description="The owner of the memories; absent: the server's own user.")


def standing_text(each: MemoryLine | RecalledChunk) -> str:
    """Write that a memory is history, and since when which other one is in its place."""
    by = f" by {each['superseded_by']}" if each["superseded_by"] else ""
    since = f" since {local_time(each['valid_to'])}" if each["valid_to"] else ""
    return f"{each['standing'].upper()}{by}{since}"


def listing_text(found: MemoriesPage, *, pinned: bool = False, scope: str | None = None) -> str:
    """List documents, a line each, and count them; where there are none, say what was asked for."""
    if not found["memories"] and pinned:
        return "Nothing is pinned. `batos pin ID` pins a memory, and `batos memories` lists them."
    if not found["memories"] and scope:
        return f"Nothing is remembered in the scope {plain(scope)}. `batos memories` lists all scopes."
    if not found["memories"]:
        return "Nothing is remembered. Begin with `batos remember FILE`."
    names = short([each["document"] for each in found["memories"]])
    rows = [
        [
            names[each["document"]],
            each["kind"],
            local_time(each["at"]),
            each["scope"],
            str(each["chunks"]),
            size(each["size"]),
            title_with_path(each["title"], each["source"]),
        ]
        for each in found["memories"]
    ]
    text = table(rows, ("document", "type", "since", "scope", "parts", "size", "title"), whole=(0,))
    return f"{text}\n\n{count_text(found['documents'], 'document')}, {count_text(found['chunks'], 'part')}."


def whole_text(found: WholeMemory) -> str:
    """Show a document with all its parts."""
    head = [
        f"{plain(found['title'])} ({found['document']})",
        f"since {local_time(found['at'])}, scope {found['scope']}, trust {found['trust']}, {size(found['size'])}",
        *([f"from {plain(found['source'])}"] if found["source"] else []),
        *_folded_lines(found),
        *(f"read in part: {plain(each)}" for each in found.get("left_out", ())),
    ]
    if found["standing"] != "current":
        head.append(standing_text(found))
    parts = [f"[{each['span'][0]}-{each['span'][1]}]\n{_part_text(each)}" for each in found["parts"]]
    return "\n\n".join(["\n".join(head), *parts])


def _part_text(part: ChunkDocument) -> str:
    """Show a part, and below it what does not hold in it. Only words of the document are indented."""
    lines = [indent("\n".join(map(plain, part["text"].splitlines())), "  ")]
    for mark in part.get("marks", ()):
        begin = part["span"][0]
        said = " ".join(part["text"][mark["span"][0] - begin : mark["span"][1] - begin].split())
        why = f": {mark['reason']}" if mark["reason"] else f" by {mark['by']}" if mark["by"] else ""
        lines.append(f'({mark["standing"]}{plain(why)}: "{plain(said)}")')
    return "\n".join(lines)


def _folded_lines(found: WholeMemory) -> list[str]:
    """Tell which summary stands for a document, or what a summary stands for."""
    lines = [f"stands for {plain(each['title'])} ({each['document']})" for each in found.get("stands_for", ())]
    if lines:
        lines.append(f"`batos curate --undo {found['document']}` brings these back")
    if above := found.get("summarised_by"):
        lines.append(f"summarised in {above}; `batos curate --undo {above}` brings it back")
    return lines


def forgotten_text(found: ForgottenPage) -> str:
    """Tell which documents are gone, and what still holds their bytes."""
    lines = [
        f"Forgotten: {plain(each['title'])} ({count_text(each['chunks'], 'part')})." for each in found["forgotten"]
    ]
    if turns := found["turns"]:
        lines.append(f"No conversation recalls {count_text(len(turns), 'turn')} with these words: {', '.join(turns)}.")
    if methods := found["methods"]:
        lines.append(f"Retired, since they hold these words: {', '.join(map(plain, methods))}.")
    return "\n".join([*lines, found["note"]])


REMEMBER: Final = WireVerb[RememberArgs, RememberedPage]("remember", RememberArgs)
EMBED_MEMORIES: Final = WireVerb[StrictModel, EmbeddedPage](
    "embed_memories", StrictModel,
    about="Give vectors to all parts that have none, and wait for that; `memory.vectors` tells of each batch.",
)  # fmt: skip
RECALL: Final = WireVerb[RecallArgs, RecalledPage]("recall", RecallArgs, "recall QUERY", reads=True)
MEMORIES: Final = WireVerb[MemoriesArgs, MemoriesPage | DatedMemory](
    "memories", MemoriesArgs, "memories list [DOCUMENT]", reads=True
)
FORGET: Final = WireVerb(
    "forget",
    ForgetArgs,
    "forget DOCUMENTS...",
    forgotten_text,
    examples=("batos forget d-01M82CY0", "batos forget --erase last --dry-run"),
)
