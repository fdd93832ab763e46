"""The verbs of missions: ask, follow, read, steer; and of the objects and reasons behind them."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, JsonValue

from batos.protocol.brief import ARGUMENTS_LIMIT, MissionPolicy
from batos.protocol.image_documents import ConversationPage, InspectedDocument, ReasonTree, RootNames
from batos.protocol.mission_documents import MissionDocument, MissionList, SubmittedMission
from batos.protocol.server_documents import SentPiece
from batos.protocol.strict_model import AsOf, Name, StrictModel
from batos.protocol.wire_messages import PIECE_BYTES
from batos.verbs.wire_verb import WireVerb


class MissionArgs(StrictModel):
    """A mission by its id."""

    mission: Name = Field(
        description="The mission's id or its beginning; `last`: the user's newest, `last-1`: the one before."
    )
    user: Name | None = Field(
        default=None,
        description="The owner of the mission; absent: any owner, and the server's own user for `last`.",
    )


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


class WhyArgs(StrictModel):
    """The path that something came from, as a tree."""

    what: str = Field(
        min_length=1,
        max_length=2_000,
        description="A sentence of an answer, a mission, OBJECT.SLOT, or a memory by its id.",
    )
    user: Name | None = Field(default=None, description="Only what this user may see, and only answers to this user.")
    as_of: AsOf = None


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
WHY: Final = WireVerb[WhyArgs, ReasonTree]("why", WhyArgs)
