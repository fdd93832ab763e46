"""The verbs of missions: ask, follow, read, steer; and of objects and reasons, with the texts on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from batos.protocol.brief import ARGUMENTS_LIMIT, MissionPolicy
from batos.protocol.image_documents import ConversationPage, InspectedDocument, RootNames, WhyNode
from batos.protocol.lent_tools import RESULT_BYTES, AcceptedResult, CallOutcome
from batos.protocol.mission_documents import MissionDocument, MissionList, SubmittedMission
from batos.protocol.server_documents import SentPiece
from batos.protocol.wire_messages import PIECE_BYTES, Asker, AsOf, Name, StrictModel
from batos.terminal.console import count_text, local_time, short
from batos.terminal.layout import Column, listing, table, wrap
from batos.verbs.wire_verb import WireVerb, document_text

#: Characters of a slot's value on its line.
_LINE: Final = 200


def inspected_text(found: InspectedDocument | RootNames) -> str:
    """Write what was looked at: the root, a slot, an object, or one that is declared and absent."""
    if "objects" in found:
        return "\n".join(_root(found))
    if "slot" in found:
        return "\n".join(_slot(found))
    if "api" in found:
        head = f"object   {found['object']}, declared: the first message makes it"
        return "\n".join([head, "", wrap(str(found["api"]))])
    return "\n".join(_object(found))


def _root(found: RootNames) -> Iterator[str]:
    rows = [[name, str(oid)] for name, oid in found["objects"].items()]
    rows += [[name, "declared, not made yet" if oid is None else str(oid)] for name, oid in found["declared"].items()]
    yield table(rows, ("object", "reference")) if rows else "There is no object yet: `batos genesis` makes them."
    records = ", ".join(f"{count:,} {name}" for name, count in found["records"].items() if count)
    yield f"\nrecords  {records or 'none'}"


def _object(found: InspectedDocument) -> Iterator[str]:
    yield f"object   {found['object']} ({found['oid']})"
    yield f"parents  {', '.join(found['parents']) or 'none'}"
    yield ""
    yield table([[name, *_describe(value)] for name, value in sorted(found["slots"].items())], ("slot", "kind", "what"))
    yield ""
    yield f"`batos inspect {found['object']}.SLOT` shows one whole, --json or -v everything."


def _describe(value: object) -> tuple[str, str]:
    """Return the kind of a slot's value, and the value on one line."""
    if isinstance(value, str):
        return "text", _short(value)
    method, intent = _part(value, "method"), _part(value, "intent")
    if method is not None:
        return "method", _short(method.get("intent", ""))
    if intent is not None:
        return str(intent.get("kind") or "intent"), _short(f"{intent.get('name') or 'intent'}: {intent['text']}")
    if isinstance(value, Mapping):
        return "map", count_text(len(value), "key")
    if isinstance(value, list):
        return "list", _short(", ".join(each if isinstance(each, str) else json.dumps(each) for each in value))
    return "value", _short(json.dumps(value, ensure_ascii=False))


def _part(value: object, kind: str) -> Mapping[str, object] | None:
    """Return the method or the intent that a slot holds, if it does: a map may have such a key of its own."""
    found = value.get(kind) if isinstance(value, Mapping) and len(value) == 1 else None
    text = {"method": "source", "intent": "text"}[kind]
    return found if isinstance(found, Mapping) and text in found else None


def _short(text: object) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= _LINE else f"{line[: _LINE - 3]}..."


def _slot(found: InspectedDocument) -> Iterator[str]:
    value = found["value"]
    own = found["holder"] == found["object"] or str(found["holder"]).startswith("oid:")
    where = "" if own else f", from {found['holder']}"
    yield f"slot     {found['object']}.{found['slot']}{where}"
    method, intent = _part(value, "method"), _part(value, "intent")
    if method is not None:
        yield f"method   made for: {_short(method.get('intent', ''))}"
        yield f"\n{str(method['source']).rstrip()}\n"
        yield f"`batos method show {found['object']}.{found['slot']}` shows its verdict, checks and ledger."
    elif intent is not None:
        yield from _intent(intent)
    else:
        yield ""
        yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _intent(intent: Mapping[str, Any]) -> Iterator[str]:
    heads = {"name": "intent", "signature": "called", "inspiration": "after"}
    yield from (f"{head.ljust(8)} {intent[name]}" for name, head in heads.items() if intent.get(name))
    yield ""
    yield wrap(str(intent["text"]))
    if intent.get("examples"):
        yield ""
        yield from (f"  - {each}" for each in intent["examples"])


#: The words for how a mission stands.
_STATUS: TypeAlias = Literal[
    "queued", "running", "waiting", "paused", "done", "failed", "cancelled", "parked", "undone"
]


class MissionArgs(StrictModel):
    """A mission by its id."""

    mission: Name = Field(
        description="The mission's id or its beginning; `last`: the user's newest, `last-1`: the one before."
    )
    user: Asker = Field(
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
    """Wait for a mission's end, and show it as `ask` does; `last` is your newest. Ctrl-C leaves it running."""

    follow: bool = Field(default=False, description="Send its events from now on.")
    seconds: float | None = Field(
        default=None, ge=0, le=86_400, allow_inf_nan=False, description="The longest wait; the mission goes on."
    )


class AttachArgs(StrictModel):
    """A piece of a file that a later brief names; the result gives the size of the part that the server has."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="The digest of the whole file.")
    offset: int = Field(default=0, ge=0, description="The offset of the piece: the size of the part that is there.")
    data: str = Field(
        default="", max_length=4 * (PIECE_BYTES // 3 + 1), description="The piece in base64; empty: a query only."
    )
    user: Name | None = Field(default=None, description="The owner, who alone may name the file; absent: the home.")


class ToolResultArgs(StrictModel):
    """Answer a call that the event `mission.tool_call` asked a program for."""

    caller: Name = Field(description="The name by which the brief knows the program.")
    call: Name = Field(description="The id of the call.")
    outcome: CallOutcome = Field(
        description="`done`; `failed`: the function said so; `refused`: it did not run; `unknown`: it may have run."
    )
    text: str = Field(max_length=RESULT_BYTES, description="The result as text or JSON, or the reason in one line.")


class MissionsArgs(StrictModel):
    """List the newest missions, a line each; --follow watches the server's."""

    limit: int = Field(default=20, ge=1, le=10_000, description="Most missions in the list.")
    status: _STATUS | None = Field(default=None, description="Only those of this status.")
    mind: bool = Field(default=False, description="Also those that the mind asked itself, about what it remembers.")
    all: bool = Field(default=False, description="Also these, and what clients of HTTP ask for themselves (titles).")
    user: Name | None = Field(default=None, description="Only those of this user.")


class ShowArgs(MissionArgs):
    """Show all of a mission: states, calls, tokens, provenance; `last` is your newest.

    A conversation's id shows its turns.
    """

    prompts: bool = Field(default=False, description="Also every call with the exact prompt that was sent.")
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
    """Show OBJECT: a root name, oid:0x2a, a mission (or `last`), a conversation; OBJECT.SLOT for one slot.

    Without OBJECT: the names of the root. With -v: every slot in full, as with --json.
    """

    object: Name | None = Field(
        default=None, description="A root name, oid:0x2a, a mission, or one of these and .SLOT."
    )
    user: Asker = Field(default=None, description="Only what this user may see of it.")
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


class WhyArgs(StrictModel):
    """Show what WHAT came from: the path of calls, prompts, models, memories, methods and commits, as a tree.

    Name a mission (or `last`), OBJECT.SLOT, a memory or what was folded (d-...), an effect (e-...), a trial (t-...) or
    a slot that was redefined, or quote a sentence of one of your answers. The tree fits a screen; --whole shows all of
    it, and --json too.
    """

    what: str = Field(
        min_length=1,
        max_length=2_000,
        description="A sentence of an answer, a mission, OBJECT.SLOT, or a memory, effect or trial by its id.",
    )
    user: Asker = Field(default=None, description="Only what this user may see, and only answers to this user.")
    as_of: AsOf = None


def missions_text(told: MissionList) -> str:
    """List missions by short ids."""
    return _lines(told, short([each["id"] for each in told["missions"]]))


def detailed_text(told: MissionList) -> str:
    """List missions by whole ids."""
    return _lines(told, {each["id"]: each["id"] for each in told["missions"]})


def _lines(told: MissionList, names: Mapping[str, str]) -> str:
    columns: Mapping[str, Column] = {
        "mission": lambda line: names[line["id"]], "status": "status",
        "asked": lambda line: local_time(line["accepted_at"]), "question": "text",
    }  # fmt: skip
    return listing(told["missions"], columns, 'There is no such mission yet. Ask something: batos ask "..."')


def ended_text(status: str) -> str:
    """Write a mission's status as a predicate.

    >>> ended_text("failed"), ended_text("cancelled"), ended_text("parked")
    ('failed', 'was cancelled', 'is parked')
    """
    return {"failed": "failed", "done": "is done", "cancelled": "was cancelled"}.get(status, f"is {status}")


def steered_text(told: MissionDocument) -> str:
    """Write how a mission stands."""
    return f"{told['id']} {ended_text(told['status'])}."


SUBMIT: Final = WireVerb[SubmitArgs, MissionDocument | SubmittedMission]("submit", SubmitArgs)
WAIT: Final = WireVerb[WaitArgs, MissionDocument]("wait", WaitArgs, "wait MISSION")
ATTACH: Final = WireVerb[AttachArgs, SentPiece]("attach", AttachArgs)
MISSIONS: Final = WireVerb("missions", MissionsArgs, "missions", missions_text, detailed_text, reads=True)
SHOW: Final = WireVerb[ShowArgs, MissionDocument]("show", ShowArgs, "show MISSION", reads=True)
TURNS: Final = WireVerb[TurnsArgs, ConversationPage]("turns", TurnsArgs, reads=True)
TOOL_RESULT: Final = WireVerb[ToolResultArgs, AcceptedResult]("tool_result", ToolResultArgs)
DROP_FILES: Final = WireVerb[DropFilesArgs, ConversationPage]("drop_files", DropFilesArgs)
INSPECT: Final = WireVerb("inspect", InspectArgs, "inspect [OBJECT]", inspected_text, document_text, reads=True)
SEND: Final = WireVerb[SendArgs, MissionDocument | SubmittedMission]("send", SendArgs)
CANCEL: Final = WireVerb(
    "cancel", MissionArgs, "cancel MISSION", steered_text,
    about="Cancel a mission, at once if it runs; `last` is your newest. Its paid calls stay paid.",
)  # fmt: skip
PAUSE: Final = WireVerb(
    "pause", MissionArgs, "pause MISSION", steered_text,
    about="Pause a mission: calls under way are finished and kept, no new one begins. `batos resume` continues it.",
)  # fmt: skip
RESUME: Final = WireVerb[MissionArgs, MissionDocument](
    "resume", MissionArgs,
    about="Continue a paused or parked mission; paid calls are not paid again.",
)  # fmt: skip
WHY: Final = WireVerb[WhyArgs, WhyNode](
    "why",
    WhyArgs,
    "why WHAT",
    reads=True,
    examples=(
        'batos why "Maro winds the clockwork every four hours."',
        "batos why last",
        "batos why brick_prototype_obj.sage_facet_",
    ),
)
