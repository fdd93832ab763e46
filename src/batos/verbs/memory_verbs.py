"""The arguments of the verbs of memory: one strict model for each."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from batos.protocol.memory_documents import (
    CuratedPage,
    DatedMemory,
    EditedPage,
    EmbeddedPage,
    ForgottenPage,
    MemoriesPage,
    PinnedPage,
    RecalledPage,
    RememberedPage,
    RestoredPage,
    RetractedPage,
    UnfoldedPage,
)
from batos.protocol.strict_model import AsOf, Moment, Name, StrictModel
from batos.verbs.wire_verb import WireVerb


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


class EmbedMemoriesArgs(StrictModel):
    """Give vectors to all parts that have none, and wait for that; `memory.vectors` tells of each batch."""


class RecallArgs(StrictModel):
    """The parts of what is remembered that match a query best."""

    query: str = Field(min_length=1, max_length=20_000, description="The question or the words that are looked for.")
    limit: int = Field(default=5, ge=1, le=10_000, description="Most parts in the list.")
    mode: Literal["linked", "hybrid", "text", "vectors"] = Field(
        default="linked", description="Words and vectors with the links between parts, the two alone, or one of them."
    )
    scope: Name | None = Field(default=None, description="Only what belongs to this scope; absent: all of them.")
    source: str | None = Field(default=None, max_length=4_096, description="Only what came from there.")
    type: Literal["document", "mission", "turn", "fact", "summary"] | None = Field(
        default=None, description="Only memories of this type."
    )
    persona: Name | None = Field(default=None, description="Only what this persona answered.")
    mission: Name | None = Field(default=None, description="Only what this mission left; its whole id.")
    since: Moment | None = Field(default=None, description="Only from this moment on (ISO 8601 with a time zone).")
    until: Moment | None = Field(default=None, description="Only before this moment (ISO 8601 with a time zone).")
    history: bool = Field(default=False, description="Also what is no longer current, marked by its `standing`.")
    strict: bool = Field(default=False, description="Without the statements that are marked: what holds, alone.")
    newest: bool = Field(default=False, description="Behind what matches the newest facts, turns and notes, too.")
    summarised: bool = Field(
        default=False, description="The parts that summaries stand for, in the place of these summaries."
    )
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")
    as_of: AsOf = None


class MemoriesArgs(StrictModel):
    """The documents that are remembered, the newest first; or all of one."""

    document: str | None = Field(
        default=None, min_length=1, max_length=4_096, description="Show this one: its id, the id's beginning, a source."
    )
    limit: int = Field(default=20, ge=1, le=10_000, description="Most documents in the list.")
    scope: Name | None = Field(default=None, description="Only those of this scope.")
    sha256: list[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = Field(
        default_factory=list, max_length=1_000, description="Only those with one of these contents."
    )
    pinned: bool = Field(default=False, description="Only those that are pinned.")
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")
    as_of: AsOf = None


class ForgetArgs(StrictModel):
    """Documents to be forgotten: all of them, or none."""

    documents: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        min_length=1, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class CurateArgs(StrictModel):
    """Fold what nobody has recalled for long, or what says the same, into summaries; or bring back what one stands for.

    `memory.folded` tells of each summary.
    """

    dry_run: bool = Field(default=False, description="Only tell what would be folded.")
    undo: str | None = Field(
        default=None, min_length=1, max_length=4_096, description="Bring back what this summary stands for."
    )
    cold_days: float | None = Field(
        default=None, ge=0, le=36_500, description="Days without a recall; absent: the setting `cold_days`."
    )
    limit: int = Field(default=100, ge=1, le=100_000, description="Most regions that are folded.")
    rule: bool = Field(default=False, description="Ask no model: a rule writes the summaries.")
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class _NamesMemories(StrictModel):
    """Memories, by name."""

    documents: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        min_length=1, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class MemoriesEditArgs(StrictModel):
    """Another text for a memory; the older one stays as marked history."""

    document: str = Field(min_length=1, max_length=4_096, description="Its id, the beginning of it, or its source.")
    text: str = Field(min_length=1, max_length=200_000, description="The whole new text.")
    user: Name | None = Field(default=None, description="The owner of the memory; absent: the server's own user.")


class MemoriesRetractArgs(StrictModel):
    """Memories that are no longer recalled, named or by their source; they stay as marked history."""

    documents: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        default_factory=list, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    source: str | None = Field(default=None, min_length=1, max_length=4_096, description="Or all that came from there.")
    cascade: bool = Field(default=False, description="Also answers, memories, methods and pins that came of them.")
    user: Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class MemoriesRestoreArgs(_NamesMemories):
    """Memories to be recalled again that were retracted or edited, with all that went with them."""

    alone: bool = Field(default=False, description="Without the answers, methods and pins that went with them.")


class PinArgs(_NamesMemories):
    """Memories that are recalled for every question of their user and scope."""


class UnpinArgs(_NamesMemories):
    """Memories that are recalled like any other again."""


REMEMBER: Final = WireVerb[RememberArgs, RememberedPage]("remember", RememberArgs)
EMBED_MEMORIES: Final = WireVerb[EmbedMemoriesArgs, EmbeddedPage]("embed_memories", EmbedMemoriesArgs)
RECALL: Final = WireVerb[RecallArgs, RecalledPage]("recall", RecallArgs)
MEMORIES: Final = WireVerb[MemoriesArgs, MemoriesPage | DatedMemory]("memories", MemoriesArgs)
FORGET: Final = WireVerb[ForgetArgs, ForgottenPage]("forget", ForgetArgs)
CURATE: Final = WireVerb[CurateArgs, CuratedPage | UnfoldedPage]("curate", CurateArgs)
MEMORIES_EDIT: Final = WireVerb[MemoriesEditArgs, EditedPage]("memories_edit", MemoriesEditArgs)
MEMORIES_RETRACT: Final = WireVerb[MemoriesRetractArgs, RetractedPage]("memories_retract", MemoriesRetractArgs)
MEMORIES_RESTORE: Final = WireVerb[MemoriesRestoreArgs, RestoredPage]("memories_restore", MemoriesRestoreArgs)
PIN: Final = WireVerb[PinArgs, PinnedPage]("pin", PinArgs)
UNPIN: Final = WireVerb[UnpinArgs, PinnedPage]("unpin", UnpinArgs)
