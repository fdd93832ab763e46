"""The verbs by which a person decides about methods, changes of the mind and effects: approvals, approve, reject."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from pydantic import Field

from batos.protocol.method_documents import (
    AnsweredDocument,
    ApprovalDocument,
    ApprovalList,
    ApprovedDocument,
    RejectedDocument,
    StoredVerdict,
)
from batos.protocol.trial_documents import TrialDocument
from batos.protocol.wire_messages import Asker, Name, StrictModel
from batos.terminal.console import count_text, local_time, short
from batos.terminal.layout import JOINERS, Column, listing, plain, wrap
from batos.verbs.trial_verbs import TRIAL_COLUMNS, trial_text
from batos.verbs.wire_verb import WireVerb


class ApprovalsArgs(StrictModel):
    """List the methods, changes of the mind and effects on the world that wait for a person, then those answered.

    With APPROVAL all of one: its id, an unambiguous beginning of it, or `last` for the newest, `last-1` for the one
    before. An effect is shown with its exact arguments, and a method with its source, the guardian's verdict, its
    checks and how many broken variants they find, and the difference to the revision that it would replace. A change of
    the mind has the id of its trial (t-...), and is shown with both values, six answers that changed, the evidence and
    the cost. -v lists ids in full, with the digests of the sources.
    """

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
    """Approve methods, each of which is installed exactly as it was shown, changes of the mind, or effects.

    APPROVAL is an id, its beginning, or `last`; or give --all --matching PATTERN, or --all-of MISSION. Methods are
    installed at once, and missions that wait for them continue; an effect on the world happens once, with exactly the
    arguments that were shown. A mission follows its approved plan exactly; --plan takes your own lines in the place of
    those that were shown. Approved ones are listed; exit 4 when something could not be, because it was answered
    before, has expired, or its slot has changed.
    """

    approvals: list[Name] | None = Field(
        default=None, min_length=1, max_length=1_000, description="Their ids, beginnings of them, `last`, `last-1`."
    )
    matching: Name | None = Field(
        default=None,
        description="Or all that wait for an OBJECT.SELECTOR like this, with * and ?; a person says --all too.",
    )
    all_of: Name | None = Field(default=None, description="Or all that this mission asks; `last` is your newest.")
    plan: str | None = Field(
        default=None, max_length=65_536, description="Of one approval that is a plan: its lines as you changed them."
    )
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


class RejectArgs(StrictModel):
    """Reject a method: missions that wait for it fail with the reason. A change of the mind is barred for 90 days.

    An effect on the world that is rejected does not happen.
    """

    approval: Name = Field(description="Its id, a beginning of it, `last` or `last-1`.")
    why: str = Field(min_length=1, max_length=1_000, description="The reason that its missions are told.")
    user: Asker = Field(default=None, description="The user who decides; absent: the server's own user.")
    mine: bool = Field(default=False, description="Only what no mission of another user waits for.")


#: Characters of a digest that people compare.
_DIGEST: Final = 12
#: Characters of a value of a check that is still shown on its line.
_VALUE: Final = 200
#: The categories of characters that are told by their number, so that nothing of a source that a person is to judge
#: is hidden from them.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})


def approvals_text(found: ApprovalList | ApprovalDocument | TrialDocument) -> str:
    """Write one approval in full, or list those there are."""
    return listing_text(found) if "approvals" in found else _one_text(found)


def detailed_text(found: ApprovalList | ApprovalDocument | TrialDocument) -> str:
    """Write one approval in full, or list those there are with ids in full, and sources."""
    return listing_text(found, whole=True) if "approvals" in found else _one_text(found)


def _one_text(found: ApprovalDocument | TrialDocument) -> str:
    if "lever" not in found:
        return whole_text(found)
    return "\n".join([trial_text(found), *(_to_do(found) if found["state"] == "waiting" else ())])


def listing_text(found: ApprovalList, *, whole: bool = False) -> str:
    """List approvals, the answered ones with their status. `whole`: with ids in full, and sources.

    Ids and methods are never shortened to the terminal: the answer is given by them.
    """
    names = short([each["id"] for each in found["approvals"]])
    columns: dict[str, Column] = {
        "approval": "id" if whole else lambda each: names[each["id"]],
        "method": _slot, "status": _status, "since": _time_text,
    }  # fmt: skip
    if whole:
        columns["source"] = lambda each: each["digest"][:_DIGEST]
    if not found["trials"]:
        return listing(found["approvals"], columns, "Nothing waits for approval.", whole=(0, 1))
    known = listing(found["approvals"], columns, whole=(0, 1)) if found["approvals"] else ""
    return "\n".join(filter(None, (known, listing(found["trials"], TRIAL_COLUMNS, whole=(0,)))))


def _status(found: ApprovalDocument) -> str:
    who = f" by {found['by']}" if "by" in found else ""
    return f"{found['status']}{who}"


def _time_text(found: ApprovalDocument) -> str:
    if found["status"] == "asked":
        waits = len(found["missions"])
        kept = f", {count_text(waits, 'mission')} {'waits' if waits == 1 else 'wait'}" if waits else ""
        return f"{local_time(found['asked_at'])}, until {local_time(found['until'])}{kept}"
    return local_time(found.get("answered_at") or found["until"])


def _slot(found: ApprovalDocument) -> str:
    return f"{found['object']}.{found['selector']}"


def whole_text(found: ApprovalDocument) -> str:
    """Write one approval with all that an answer needs; its source line by line, with nothing in it hidden."""
    judged = () if any(map(found.get, ("forgets", "effects", "pins"))) or _is_call(found) else _judgement_lines(found)
    asked = _to_do(found) if found["status"] == "asked" else ()
    return "\n".join([*_head(found), *judged, "", *_source(found), *_change(found), *asked])


def _head(found: ApprovalDocument) -> Iterator[str]:
    yield f"approval {found['id']}"
    yield f"status   {_status(found)}, {_time_text(found)}"
    if "why" in found:
        yield f"because  {visible(found['why'])}"
    yield f"method   {_slot(found)}, {_takes_the_place(found)}"
    yield f"source   {found['digest']}"
    intent, wish = found.get("intent"), found.get("wish")
    if intent is not None:
        yield f"intent   {visible(intent['name'])} {visible(intent['signature'])}".rstrip()
        yield wrap(visible(intent["text"]), " " * 9)
    if wish:
        yield f"wish     {visible(_plain(wish))}"
    if found["missions"]:
        yield f"for      {', '.join(found['missions'])}"
    made = found["provenance"]
    by = made.get("by") or f"{made.get('model', '?')} ({str(made.get('model_digest', ''))[:_DIGEST]})"
    yield f"made by  {visible(str(by))}, {local_time(made.get('at', '?'))}, trust {made.get('trust', '?')}"


def _takes_the_place(found: ApprovalDocument) -> str:
    if found.get("forgets"):
        return f"which forgets {count_text(len(found['forgets']), 'document')}"
    if found.get("effects"):
        return "an effect on the world"
    if found.get("pins"):
        return f"which lets {count_text(found['pins'], 'tool')} of a server be used"
    if _is_call(found):
        return "the plan of a mission" if found["selector"] == "plan_" else "a call that a mission wants to make"
    if "revision" in found:
        return f"installed as revision {found['revision']}"
    return f"in the place of revision {found['former']}" if found["former"] else "the first of its intent"


def _is_call(found: ApprovalDocument | AnsweredDocument) -> bool:
    """Test if a question is about a mission's calls, and no method is installed by a yes."""
    return found["selector"] in ("plan_", "call_") and found["object"].startswith("m-")


def _judgement_lines(found: ApprovalDocument) -> Iterator[str]:
    """Yield the guardian's verdict (a whole object has one for each method), the checks, and how sharp they are."""
    verdict, mutants = found["verdict"], found["mutants"]
    several: Mapping[str, StoredVerdict] = verdict.get("methods") or {}
    for selector, each in several.items():
        yield from _verdict(each, f" of {selector}")
    if not several:
        yield from _verdict(verdict, "")
    yield f"checks   {count_text(len(found['checks']), 'check')}, passed in a cell"
    for check in found["checks"]:
        yield f"         {visible(_plain(check))}"
    if mutants.get("made"):
        made, killed = mutants["made"], mutants.get("killed", 0)
        yield f"mutants  its checks find {killed} of {made} broken variants ({100 * killed / made:.0f} %)"


def _verdict(verdict: StoredVerdict, whose: str) -> Iterator[str]:
    said = "accepts it" if verdict.get("accepted") else "refuses it"
    yield f"guardian {said}{visible(whose)}, policy {verdict.get('policy', '?')}"
    for fault in verdict.get("faults", ()):
        yield f"         line {fault['line']}, {fault['rule']}: {visible(str(fault['why']))}"
    slots = verdict.get("slots") or {}
    for name in ("reads", "writes", "mutates", "deletes"):
        if slots.get(name):
            yield f"{name.ljust(8)} {', '.join(map(visible, sorted(slots[name])))}"
    if verdict.get("capabilities"):
        yield f"reaches  {', '.join(map(visible, sorted(verdict['capabilities'])))}"
    if verdict.get("sends"):
        yield f"sends    {', '.join(map(visible, sorted(verdict['sends'])))}"


def _source(found: ApprovalDocument) -> Iterator[str]:
    lines = found["source"].split("\n")
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        yield f"{number:>{width}}  {visible(line)}".rstrip()


def _change(found: ApprovalDocument) -> Iterator[str]:
    if found["diff"] is None:
        return
    yield ""
    yield from (visible(line) for line in found["diff"])
    if not found["diff"]:
        yield f"It is word for word revision {found['former']}."


def _to_do(found: ApprovalDocument | TrialDocument) -> Iterator[str]:
    yield ""
    yield f"batos approve {found['id']}"
    yield f"batos reject {found['id']} --why TEXT"


def approved_text(told: ApprovedDocument) -> str:
    """Write which methods were approved, which could not be, and which missions go on."""
    columns: Mapping[str, Column] = {
        "approved": "id", "method": _slot, "revision": lambda each: each.get("revision", ""),
        "source": lambda each: each.get("digest", "")[:_DIGEST],
    }  # fmt: skip
    lines = [listing(told["approved"], columns, whole=(0,))] if told["approved"] else []
    lines += [f"not approved: {each['error']['message']}" for each in told["refused"]]
    return "\n".join([*lines, *_woken_lines(told["woken"])])


def rejected_text(told: RejectedDocument) -> str:
    """Write what was rejected, and which missions are told so."""
    what = told["rejected"]
    does = "does not happen" if what.get("effects") or _is_call(what) else "is not installed"
    head = f"{what['id']} is rejected: {what['object']}.{what['selector']} {does}."
    return "\n".join([head, *_woken_lines(told["woken"])])


def _woken_lines(woken: Sequence[str]) -> list[str]:
    return [f"{mission} goes on: the server runs it, and without one `batos resume`." for mission in woken]


def visible(text: str) -> str:
    r"""Write each sign that could move a cursor, hide or look like nothing by its number.

    >>> print(visible("a\x1b[31m\u202eb\u200b"))
    a\x1b[31m\u202eb\u200b
    """
    return "".join(_escape(each) if _hides(each) else each for each in text)


def _hides(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN or character in JOINERS or not plain(character)


def _escape(character: str) -> str:
    if character == "\t":
        return "    "
    return character.encode("unicode_escape", "surrogatepass").decode()


def _plain(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"


APPROVALS: Final = WireVerb(
    "approvals", ApprovalsArgs, "approvals [APPROVAL]", approvals_text, detailed_text, reads=True
)
APPROVE: Final = WireVerb("approve", ApproveArgs, "approve [APPROVALS...]", approved_text)
REJECT: Final = WireVerb("reject", RejectArgs, "reject APPROVAL", rejected_text)
