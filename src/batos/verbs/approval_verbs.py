"""The verbs by which a person decides about methods."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from batos.protocol.method_documents import ApprovalDocument, ApprovalList, ApprovedDocument, RejectedDocument
from batos.protocol.strict_model import Name, StrictModel
from batos.verbs.wire_verb import WireVerb


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


APPROVALS: Final = WireVerb[ApprovalsArgs, ApprovalList | ApprovalDocument]("approvals", ApprovalsArgs)
APPROVE: Final = WireVerb[ApproveArgs, ApprovedDocument]("approve", ApproveArgs)
REJECT: Final = WireVerb[RejectArgs, RejectedDocument]("reject", RejectArgs)
