"""The arguments of every verb of the protocol: one strict model for each verb."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue

from batos.protocol.brief import ARGUMENTS_LIMIT, MissionPolicy
from batos.protocol.care_shapes import ERASE, PACK
from batos.protocol.dream_shapes import DREAM_DIFF, DREAM_DROP, DREAM_LIST, DREAM_NEW, DREAM_PROMOTE, REPLAY
from batos.protocol.effect_shapes import EFFECTS, EFFECTS_SETTLE, GRANTS, GRANTS_ADD, GRANTS_REVOKE
from batos.protocol.genesis_documents import GenesisDocument
from batos.protocol.image_documents import ConversationPage, InspectedDocument, ReasonTree, RootNames
from batos.protocol.memory_shapes import (
    CURATE,
    EMBED_MEMORIES,
    FORGET,
    MEMORIES,
    MEMORIES_EDIT,
    MEMORIES_RESTORE,
    MEMORIES_RETRACT,
    PIN,
    RECALL,
    REMEMBER,
    UNPIN,
)
from batos.protocol.method_documents import (
    ApprovalDocument,
    ApprovalList,
    ApprovedDocument,
    DatedMethod,
    LateReport,
    MethodDocument,
    MethodHistory,
    MethodList,
    RejectedDocument,
    ToolList,
)
from batos.protocol.mission_documents import MissionDocument, MissionList, SubmittedMission
from batos.protocol.server_documents import AdapterChoice, HelloDocument, PlannedGenesis, SentPiece, StatusDocument
from batos.protocol.strict_model import AsOf, Name, StrictModel
from batos.protocol.undo_shapes import REDO, UNDO
from batos.protocol.wire_verb import WireVerb

#: Longest piece of an attachment, in bytes before base64.
PIECE_BYTES: Final = 512 * 1024
#: Longest wish and longest source of a method, in characters.
WISH_LIMIT: Final = 4_000
SOURCE_LIMIT: Final = 64 * 1024


class MissionArgs(StrictModel):
    """A mission by its id."""

    mission: Name = Field(
        description="The mission's id or its beginning; `last`: the user's newest, `last-1`: the one before."
    )
    user: Name | None = Field(
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
    user: Name | None = Field(default=None, description="Only this user's files may be named; absent: all.")
    as_of: AsOf = None


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
    user: Name | None = Field(default=None, description="The owner, who alone may name the file; absent: the home.")


class MissionsArgs(StrictModel):
    """The newest missions, a line each."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most missions in the list.")
    status: Name | None = Field(default=None, description="Only those of this status.")
    user: Name | None = Field(default=None, description="Only those of this user.")


class ShowArgs(MissionArgs):
    """All of a mission."""

    prompts: bool = Field(default=False, description="Also every call with the exact prompt.")
    as_of: AsOf = None


class TurnsArgs(StrictModel):
    """A conversation's turns, verbatim, by position."""

    conversation: Name = Field(description="Its id or the beginning of it, `last`, `last-1`.")
    start: int = Field(default=1, description="The first one's position; negative counts from the end.")
    limit: int = Field(default=20, ge=1, le=1_000, description="Most turns of a reply; the rest comes in pages.")
    user: Name | None = Field(default=None, description="Only if it is this user's.")
    as_of: AsOf = None


class DropFilesArgs(StrictModel):
    """Files of a conversation that its next question no longer gets."""

    conversation: Name = Field(description="Its id, or `last`.")
    names: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(
        min_length=1, max_length=32, description="The files' names; all or none of them."
    )
    user: Name | None = Field(default=None, description="Only if it is this user's; absent: the server's own user's.")


class InspectArgs(StrictModel):
    """An object or a slot of the image; without one the names of its root."""

    object: Name | None = Field(
        default=None, description="A root name, oid:0x2a, a mission, or one of these and .SLOT."
    )
    user: Name | None = Field(default=None, description="Only what this user may see of it.")
    as_of: AsOf = None


class SendArgs(StrictModel):
    """A message to an object of the image: delivering it is a mission."""

    receiver: Name = Field(description="The object, as `inspect` takes it.")
    selector: Name = Field(description="The slot that answers.")
    arguments: list[JsonValue] = Field(
        default_factory=list, max_length=ARGUMENTS_LIMIT, description="The message's arguments, any JSON."
    )
    policy: MissionPolicy | None = Field(default=None, description="The policy for intents, as in a brief.")
    grants: list[Name] | None = Field(default=None, max_length=8, description="The grants that it may use.")
    user: Name | None = Field(default=None, description="The sender; absent: the server's own user.")
    idempotency_key: Name | None = Field(
        default=None, description="A second message with the same key returns the first one's mission."
    )
    follow: bool = Field(default=False, description="Send its events, then its end; else the result comes at once.")


class SteerArgs(MissionArgs):
    """A mission to cancel, to pause or to resume."""


class StatusArgs(StrictModel):
    """The status of the server, in one screen."""

    user: Name | None = Field(default=None, description="Show only this user's missions; absent: everybody's.")


class GenesisArgs(StrictModel):
    """Make models and image match codex and adapters."""

    plan: bool = Field(default=False, description="Only report what would be done.")
    prune: bool = Field(
        default=False, description="Also delete models that this image made and no persona uses any more."
    )


class AdaptersUseArgs(StrictModel):
    """Choose the adapter that a persona thinks with."""

    persona: Name = Field(description="The persona whose adapter is chosen.")
    name: Name = Field(description="The name of its adapter, or `none`.")


class ApprovalsArgs(StrictModel):
    """The methods that wait for a person, then those that were answered; or all of one."""

    approval: Name | None = Field(
        default=None,
        description="Show this approval with its source: an id, its beginning, `last`, `last-1`.",
    )
    limit: int = Field(default=20, ge=1, le=10_000, description="Most approvals in the list.")
    status: Literal["asked", "approved", "rejected", "expired", "outdated"] | None = Field(
        default=None, description="Only those of this status."
    )
    user: Name | None = Field(default=None, description="Only those that no mission of another user waits for.")


class ApproveArgs(StrictModel):
    """Approve methods: each is installed exactly as it was shown."""

    approvals: list[Name] | None = Field(
        default=None, min_length=1, max_length=1_000, description="Their ids, beginnings of them, `last`, `last-1`."
    )
    matching: Name | None = Field(default=None, description="Or all that wait for an OBJECT.SELECTOR like this: `*.*`.")
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


class RejectArgs(StrictModel):
    """Reject a method."""

    approval: Name = Field(description="Its id, a beginning of it, `last` or `last-1`.")
    why: str = Field(min_length=1, max_length=1_000, description="The reason that its missions are told.")
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


class MethodListArgs(StrictModel):
    """Every slot that ever had a method, a line each; and how many methods are still to be made."""

    object: Name | None = Field(default=None, description="Only those of this object, as `inspect` takes it.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodArgs(StrictModel):
    """A slot that has a method, or had one."""

    method: str = Field(min_length=1, max_length=256, description="OBJECT.SELECTOR, split at the last dot.")


class MethodShowArgs(MethodArgs):
    """All of a method: source, verdict, checks, provenance, ledger."""

    revision: int | None = Field(default=None, ge=1, description="The revision; absent: the active, else the last.")
    user: Name | None = Field(default=None, description="Only missions and people that are this user's; absent: all.")
    as_of: AsOf = None


class MethodHistoryArgs(MethodArgs):
    """Every revision of a method, the reasons of its start and end, and every change of its slot."""

    user: Name | None = Field(default=None, description="Only people and origins that are this user's; absent: all.")


class MethodMakeArgs(StrictModel):
    """Make the methods that were missing in answered missions; a new question stops this."""


class MethodRollbackArgs(MethodArgs):
    """Make a former revision active again."""

    revision: int | None = Field(default=None, ge=0, description="The revision; 0: the intent; absent: the one before.")
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class MethodRedefineArgs(MethodArgs):
    """Make a new revision of a method, from a wish, a source, or both; audited and checked like any other."""

    wish: str | None = Field(default=None, min_length=1, max_length=WISH_LIMIT, description="The new intent as text.")
    source: str | None = Field(default=None, min_length=1, max_length=SOURCE_LIMIT, description="The new source.")
    checks: list[dict[str, JsonValue]] | None = Field(
        default=None, min_length=1, max_length=16, description="Checks of the source; absent: the present ones."
    )
    user: Name | None = Field(default=None, description="The user who decides; absent: the server's own user.")


class WhyArgs(StrictModel):
    """The path that something came from, as a tree."""

    what: str = Field(
        min_length=1,
        max_length=2_000,
        description="A sentence of an answer, a mission, OBJECT.SLOT, or a memory by its id.",
    )
    user: Name | None = Field(default=None, description="Only what this user may see, and only answers to this user.")
    as_of: AsOf = None


class ToolsArgs(StrictModel):
    """List the methods that are tools and can be called."""


HELLO: Final = WireVerb[HelloArgs, HelloDocument]("hello", HelloArgs)
SUBMIT: Final = WireVerb[SubmitArgs, MissionDocument | SubmittedMission]("submit", SubmitArgs)
WAIT: Final = WireVerb[WaitArgs, MissionDocument]("wait", WaitArgs)
ATTACH: Final = WireVerb[AttachArgs, SentPiece]("attach", AttachArgs)
MISSIONS: Final = WireVerb[MissionsArgs, MissionList]("missions", MissionsArgs)
SHOW: Final = WireVerb[ShowArgs, MissionDocument]("show", ShowArgs)
TURNS: Final = WireVerb[TurnsArgs, ConversationPage]("turns", TurnsArgs)
DROP_FILES: Final = WireVerb[DropFilesArgs, ConversationPage]("drop_files", DropFilesArgs)
INSPECT: Final = WireVerb[InspectArgs, InspectedDocument | RootNames]("inspect", InspectArgs)
SEND: Final = WireVerb[SendArgs, MissionDocument | SubmittedMission]("send", SendArgs)
CANCEL: Final = WireVerb[SteerArgs, MissionDocument]("cancel", SteerArgs)
PAUSE: Final = WireVerb[SteerArgs, MissionDocument]("pause", SteerArgs)
RESUME: Final = WireVerb[SteerArgs, MissionDocument]("resume", SteerArgs)
STATUS: Final = WireVerb[StatusArgs, StatusDocument]("status", StatusArgs)
GENESIS: Final = WireVerb[GenesisArgs, GenesisDocument | PlannedGenesis]("genesis", GenesisArgs)
ADAPTERS_USE: Final = WireVerb[AdaptersUseArgs, AdapterChoice]("adapters_use", AdaptersUseArgs)
APPROVALS: Final = WireVerb[ApprovalsArgs, ApprovalList | ApprovalDocument]("approvals", ApprovalsArgs)
APPROVE: Final = WireVerb[ApproveArgs, ApprovedDocument]("approve", ApproveArgs)
REJECT: Final = WireVerb[RejectArgs, RejectedDocument]("reject", RejectArgs)
METHOD_LIST: Final = WireVerb[MethodListArgs, MethodList]("method_list", MethodListArgs)
METHOD_SHOW: Final = WireVerb[MethodShowArgs, DatedMethod]("method_show", MethodShowArgs)
METHOD_HISTORY: Final = WireVerb[MethodHistoryArgs, MethodHistory]("method_history", MethodHistoryArgs)
METHOD_ROLLBACK: Final = WireVerb[MethodRollbackArgs, MethodDocument]("method_rollback", MethodRollbackArgs)
METHOD_MAKE: Final = WireVerb[MethodMakeArgs, LateReport]("method_make", MethodMakeArgs)
METHOD_REDEFINE: Final = WireVerb[MethodRedefineArgs, MethodDocument]("method_redefine", MethodRedefineArgs)
TOOLS: Final = WireVerb[ToolsArgs, ToolList]("tools", ToolsArgs)
WHY: Final = WireVerb[WhyArgs, ReasonTree]("why", WhyArgs)

#: The arguments of every verb.
ARGS: Final[Mapping[str, type[StrictModel]]] = {
    each.name: each.args
    for each in (
        HELLO,
        SUBMIT,
        WAIT,
        ATTACH,
        MISSIONS,
        SHOW,
        TURNS,
        DROP_FILES,
        INSPECT,
        SEND,
        CANCEL,
        PAUSE,
        RESUME,
        STATUS,
        GENESIS,
        ADAPTERS_USE,
        APPROVALS,
        APPROVE,
        REJECT,
        METHOD_LIST,
        METHOD_SHOW,
        METHOD_HISTORY,
        METHOD_ROLLBACK,
        METHOD_MAKE,
        METHOD_REDEFINE,
        TOOLS,
        WHY,
        DREAM_NEW,
        DREAM_LIST,
        DREAM_DIFF,
        DREAM_PROMOTE,
        DREAM_DROP,
        REPLAY,
        GRANTS,
        GRANTS_ADD,
        GRANTS_REVOKE,
        EFFECTS,
        EFFECTS_SETTLE,
        PACK,
        ERASE,
        UNDO,
        REDO,
        REMEMBER,
        EMBED_MEMORIES,
        RECALL,
        MEMORIES,
        FORGET,
        CURATE,
        MEMORIES_EDIT,
        MEMORIES_RETRACT,
        MEMORIES_RESTORE,
        PIN,
        UNPIN,
    )
}
