"""Errors about approvals: a mission waits, a method does not run, an answer came too late."""

from __future__ import annotations

from collections.abc import Sequence

from batos.protocol.errors import ApprovalNeeded, GenerationFailed, NotFound, Refused
from batos.records.approvals import ApprovalState


def approval_error(names: Sequence[str], what: str) -> ApprovalNeeded:
    """Return the error of a mission that waits until a person approves the first of these, and the others too."""
    first, *others = dict.fromkeys(names)
    answer = f"`batos approve {first}` or `batos reject {first} --why ...`"
    every = "; for several at once `batos approve --all --matching PATTERN`" if others else ""
    return ApprovalNeeded(
        f"{what} waits for your approval: {', '.join((first, *others))}",
        first,
        others=tuple(others),
        remedy=f"`batos approvals {first}` shows it; then {answer}{every}.",
    )


def combine_reasons(reasons: Sequence[ApprovalNeeded]) -> ApprovalNeeded:
    """Combine several ApprovalNeeded errors into one, so that the mission waits once for all approvals."""
    names = [name for each in reasons for name in (each.approval, *each.others)]
    return reasons[0] if len(set(names)) == 1 else approval_error(names, f"the code of {len(set(names))} parts")


def disapproval(answer: ApprovalState) -> GenerationFailed:
    """Return the error with which a part fails whose method may not run."""
    what = f"the method that was made for {answer.object}.{answer.selector}"
    if answer.word == "rejected":
        return GenerationFailed(
            f"{what} was rejected by {answer.by}: {answer.why} ({answer.name})",
            remedy="Declare the intent otherwise, or `batos method redefine` it.",
        )
    return GenerationFailed(
        f"{what} was not approved: {answer.why or 'nobody answered in time'} ({answer.name})",
        remedy="Ask again: a new approval is then requested.",
    )


def refusal(answer: ApprovalState) -> Refused:
    """Return the error for an answer that came too late."""
    said = {
        "approved": f"was approved by {answer.by} and is installed as revision {answer.revision}",
        "rejected": f"was rejected by {answer.by}: {answer.why}",
        "expired": f"has expired: nobody answered until {answer.until}",
        "outdated": f"is outdated: {answer.why}",
        "asked": "still waits for an answer",
    }[answer.word]
    remedy = (
        "`batos method list` shows what is installed; `batos method rollback METHOD --revision 0` takes a method out."
        if answer.word == "approved"
        else "The next message to that intent asks again; `batos approvals` shows what waits."
    )
    return Refused(f"{answer.name} ({answer.object}.{answer.selector}) {said}", field="approval", remedy=remedy)


def no_such(name: str) -> NotFound:
    """Return the error for an id under which nothing is asked."""
    return NotFound(f"there is no approval {name!r}", field="approval", remedy="`batos approvals` lists them.")
