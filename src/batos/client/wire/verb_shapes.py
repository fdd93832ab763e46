"""The arguments of every verb of the protocol: one strict model for each verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from batos.brief import ARGUMENTS_LIMIT, MissionPolicy, utc_moment

#: Longest piece of an attachment, in bytes before base64.
PIECE_BYTES: Final = 512 * 1024
#: Longest wish and longest source of a method, in characters.
WISH_LIMIT: Final = 4_000
SOURCE_LIMIT: Final = 64 * 1024

_Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
_Moment: TypeAlias = Annotated[str, Field(max_length=40), AfterValidator(utc_moment)]


class StrictModel(BaseModel):
    """The rule of every message: no value is converted, and no unknown field is accepted."""

    # Each is built when its verb is first called: a command calls two or three of all these.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, defer_build=True)


class MissionArgs(StrictModel):
    """A mission by its id."""

    mission: _Name = Field(
        description="The mission's id or its beginning; `last`: the user's newest, `last-1`: the one before."
    )
    user: _Name | None = Field(
        default=None,
        description="The owner of the mission; absent: any owner, and the server's own user for `last`.",
    )


class HelloArgs(StrictModel):
    """Ask what the server is, and what it accepts."""


class SubmitArgs(StrictModel):
    """A mission to be accepted; acknowledged once it is durable."""

    brief: dict[str, JsonValue] = Field(
        description="As in the table of the brief; `conversation` may also be `new` or `last`, `ancestor` and "
        "`in_reply_to` `last`, `last-1`, or the beginning of an id; the files that its attachments name were sent by "
        "`attach`."
    )
    follow: bool = Field(default=False, description="Send its events, then its end; else the result comes at once.")
    user: _Name | None = Field(default=None, description="Only this user's files may be named; absent: all.")


class WaitArgs(MissionArgs):
    """Wait for a mission's end; with `follow` also for its events."""

    follow: bool = Field(default=False, description="Send its events from now on.")
    seconds: float | None = Field(default=None, ge=0, le=86_400, allow_inf_nan=False, description="The longest wait.")


class AttachArgs(StrictModel):
    """A piece of a file that a later brief names; the result gives the size of the part that the server has."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The digest of the whole file.")
    offset: int = Field(default=0, ge=0, description="The offset of the piece: the size of the part that is there.")
    data: str = Field(
        default="", max_length=4 * (PIECE_BYTES // 3 + 1), description="The piece in base64; empty: a query only."
    )
    user: _Name | None = Field(default=None, description="The owner, who alone may name the file; absent: the home.")


class MissionsArgs(StrictModel):
    """The newest missions, a line each."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most missions in the list.")
    status: _Name | None = Field(default=None, description="Only those of this status.")
    user: _Name | None = Field(default=None, description="Only those of this user.")


class ShowArgs(MissionArgs):
    """All of a mission."""

    prompts: bool = Field(default=False, description="Also every call with the exact prompt.")


class TurnsArgs(StrictModel):
    """A conversation's turns, verbatim, by position."""

    conversation: _Name = Field(description="Its id or the beginning of it, `last`, `last-1`.")
    start: int = Field(default=1, description="The first one's position; negative counts from the end.")
    limit: int = Field(default=20, ge=1, le=1_000, description="Most turns of a reply; the rest comes in pages.")
    user: _Name | None = Field(default=None, description="Only if it is this user's.")


class DropFilesArgs(StrictModel):
    """Files of a conversation that its next question no longer gets."""

    conversation: _Name = Field(description="Its id, or `last`.")
    names: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(
        min_length=1, max_length=32, description="The files' names; all or none of them."
    )
    user: _Name | None = Field(default=None, description="Only if it is this user's; absent: the server's own user's.")


class InspectArgs(StrictModel):
    """An object or a slot of the image; without one the names of its root."""

    object: _Name | None = Field(
        default=None, description="A root name, oid:0x2a, a mission, or one of these and .SLOT."
    )
    user: _Name | None = Field(default=None, description="Only what this user may see of it.")


class SendArgs(StrictModel):
    """A message to an object of the image: delivering it is a mission."""

    receiver: _Name = Field(description="The object, as `inspect` takes it.")
    selector: _Name = Field(description="The slot that answers.")
    arguments: list[JsonValue] = Field(
        default_factory=list, max_length=ARGUMENTS_LIMIT, description="The message's arguments, any JSON."
    )
    policy: MissionPolicy | None = Field(default=None, description="The policy for intents, as in a brief.")
    user: _Name | None = Field(default=None, description="The sender; absent: the server's own user.")
    idempotency_key: _Name | None = Field(
        default=None, description="A second message with the same key returns the first one's mission."
    )
    follow: bool = Field(default=False, description="Send its events, then its end; else the result comes at once.")


class SteerArgs(MissionArgs):
    """A mission to cancel, to pause or to resume."""


class StatusArgs(StrictModel):
    """The status of the server, in one screen."""

    user: _Name | None = Field(default=None, description="Show only this user's missions; absent: everybody's.")


class GenesisArgs(StrictModel):
    """Make models and image match codex and adapters."""

    plan: bool = Field(default=False, description="Only report what would be done.")
    prune: bool = Field(
        default=False, description="Also delete models that this image made and no persona uses any more."
    )


class AdaptersUseArgs(StrictModel):
    """Choose the adapter that a persona thinks with."""

    persona: _Name = Field(description="The persona whose adapter is chosen.")
    name: _Name = Field(description="The name of its adapter, or `none`.")


class ApprovalsArgs(StrictModel):
    """The methods that wait for a person, then those that were answered; or all of one."""

    approval: _Name | None = Field(
        default=None,
        description="Show this approval with its source: an id, its beginning, `last`, `last-1`.",
    )
    limit: int = Field(default=20, ge=1, le=10_000, description="Most approvals in the list.")
    status: Literal["asked", "approved", "rejected", "expired", "outdated"] | None = Field(
        default=None, description="Only those of this status."
    )
    user: _Name | None = Field(default=None, description="Only those that no mission of another user waits for.")


class ApproveArgs(StrictModel):
    """Approve methods: each is installed exactly as it was shown."""

    approvals: list[_Name] | None = Field(
        default=None, min_length=1, max_length=1_000, description="Their ids, beginnings of them, `last`, `last-1`."
    )
    matching: _Name | None = Field(
        default=None, description="Or all that wait for an OBJECT.SELECTOR like this: `*.*`."
    )
    user: _Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


class RejectArgs(StrictModel):
    """Reject a method."""

    approval: _Name = Field(description="Its id, a beginning of it, `last` or `last-1`.")
    why: str = Field(min_length=1, max_length=1_000, description="The reason that its missions are told.")
    user: _Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


class MethodListArgs(StrictModel):
    """Every slot that ever had a method, a line each; and how many methods are still to be made."""

    object: _Name | None = Field(default=None, description="Only those of this object, as `inspect` takes it.")


class MethodArgs(StrictModel):
    """A slot that has a method, or had one."""

    method: str = Field(min_length=1, max_length=256, description="OBJECT.SELECTOR, split at the last dot.")


class MethodShowArgs(MethodArgs):
    """All of a method: source, verdict, checks, provenance, ledger."""

    revision: int | None = Field(default=None, ge=1, description="The revision; absent: the active, else the last.")


class MethodHistoryArgs(MethodArgs):
    """Every revision of a method, the reasons of its start and end, and every change of its slot."""


class MethodMakeArgs(StrictModel):
    """Make the methods that were missing in answered missions; a new question stops this."""


class MethodRollbackArgs(MethodArgs):
    """Make a former revision active again."""

    revision: int | None = Field(default=None, ge=0, description="The revision; 0: the intent; absent: the one before.")
    user: _Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class MethodRedefineArgs(MethodArgs):
    """Make a new revision of a method, from a wish, a source, or both; audited and checked like any other."""

    wish: str | None = Field(default=None, min_length=1, max_length=WISH_LIMIT, description="The new intent as text.")
    source: str | None = Field(default=None, min_length=1, max_length=SOURCE_LIMIT, description="The new source.")
    checks: list[dict[str, JsonValue]] | None = Field(
        default=None, min_length=1, max_length=16, description="Checks of the source; absent: the present ones."
    )
    user: _Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class ToolsArgs(StrictModel):
    """List the methods that are tools and can be called."""


class RememberedFile(StrictModel):
    """A file to be remembered, whose bytes were sent by `attach`."""

    name: str = Field(min_length=1, max_length=255, description="Its name.")
    media_type: _Name = Field(description="Its media type, such as `text/markdown`.")
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
    key: _Name | None = Field(
        default=None,
        description="The text is a fact, the value of this key; it takes the place of the key's older one.",
    )
    supersedes: _Name | None = Field(
        default=None, description="The key, or the id, of another fact that this one takes the place of."
    )
    depends_on: list[_Name] = Field(
        default_factory=list, max_length=64, description="Keys of facts without which this one does not hold."
    )
    scope: _Name | None = Field(default=None, description="The scope that they belong to; absent: `default`.")
    owner: _Name | None = Field(
        default=None,
        description="Their owner, where no `user` is given; absent: the server's own user.",
    )
    user: _Name | None = Field(
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
    scope: _Name | None = Field(default=None, description="Only what belongs to this scope; absent: all of them.")
    source: str | None = Field(default=None, max_length=4_096, description="Only what came from there.")
    type: Literal["document", "mission", "turn", "fact", "summary"] | None = Field(
        default=None, description="Only memories of this type."
    )
    persona: _Name | None = Field(default=None, description="Only what this persona answered.")
    mission: _Name | None = Field(default=None, description="Only what this mission left; its whole id.")
    since: _Moment | None = Field(default=None, description="Only from this moment on (ISO 8601 with a time zone).")
    until: _Moment | None = Field(default=None, description="Only before this moment (ISO 8601 with a time zone).")
    history: bool = Field(default=False, description="Also what is no longer current, marked by its `standing`.")
    strict: bool = Field(default=False, description="Without the statements that are marked: what holds, alone.")
    newest: bool = Field(default=False, description="Behind what matches the newest facts, turns and notes, too.")
    user: _Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class MemoriesArgs(StrictModel):
    """The documents that are remembered, the newest first; or all of one."""

    document: str | None = Field(
        default=None, min_length=1, max_length=4_096, description="Show this one: its id, the id's beginning, a source."
    )
    limit: int = Field(default=20, ge=1, le=10_000, description="Most documents in the list.")
    scope: _Name | None = Field(default=None, description="Only those of this scope.")
    sha256: list[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = Field(
        default_factory=list, max_length=1_000, description="Only those with one of these contents."
    )
    user: _Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


class ForgetArgs(StrictModel):
    """Documents to be forgotten: all of them, or none."""

    documents: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        min_length=1, max_length=1_000, description="Their ids, beginnings of them, or sources."
    )
    user: _Name | None = Field(default=None, description="The owner of the memories; absent: the server's own user.")


#: The arguments of every verb.
ARGS: Final[Mapping[str, type[StrictModel]]] = {
    "hello": HelloArgs,
    "submit": SubmitArgs,
    "wait": WaitArgs,
    "attach": AttachArgs,
    "missions": MissionsArgs,
    "show": ShowArgs,
    "turns": TurnsArgs,
    "drop_files": DropFilesArgs,
    "inspect": InspectArgs,
    "send": SendArgs,
    "cancel": SteerArgs,
    "pause": SteerArgs,
    "resume": SteerArgs,
    "status": StatusArgs,
    "genesis": GenesisArgs,
    "adapters_use": AdaptersUseArgs,
    "approvals": ApprovalsArgs,
    "approve": ApproveArgs,
    "reject": RejectArgs,
    "method_list": MethodListArgs,
    "method_show": MethodShowArgs,
    "method_history": MethodHistoryArgs,
    "method_rollback": MethodRollbackArgs,
    "method_make": MethodMakeArgs,
    "method_redefine": MethodRedefineArgs,
    "tools": ToolsArgs,
    "remember": RememberArgs,
    "embed_memories": EmbedMemoriesArgs,
    "recall": RecallArgs,
    "memories": MemoriesArgs,
    "forget": ForgetArgs,
}
