"""The messages of the wire: requests, replies and events, the strict base of their models, and their limits."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import from_json

from batos.protocol import errors
from batos.protocol.brief_checks import utc_moment
from batos.protocol.errors import (
    ApprovalNeeded,
    BatosError,
    BudgetExceeded,
    MissionFailed,
    ProtocolError,
    TimedOut,
)

if TYPE_CHECKING:
    from batos.protocol.mission_documents import MissionDocument


class Meaning(Enum):
    """The meaning of a field beyond its type, by which a command line fills it or reads what a person typed."""

    ASKER = "the person who types"
    MEMORY = "a memory: its id, its source, or the path of its file"
    PLACE = "the path of a file or a folder, or an address"
    TARGET = "what is granted: a place, or a word for a source"


#: A name of anything: a user, a scope, a persona.
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
#: The user for whom a request is made; a command line says who types.
Asker: TypeAlias = Annotated[Name | None, Meaning.ASKER]
#: The place of a file or a folder, or an address.
Place: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096), Meaning.PLACE]
#: The target of a grant: the place of a folder, an address, or a word that stands for a source.
GrantTarget: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096), Meaning.TARGET]
#: A memory by its id, the beginning of it, or its source.
MemoryName: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096), Meaning.MEMORY]
#: A moment with a time zone.
Moment: TypeAlias = Annotated[str, Field(max_length=40), AfterValidator(utc_moment)]
#: A past moment that is asked about; None: now.
AsOf: TypeAlias = Annotated[
    Name | None,
    Field(
        description="The moment that is asked about: a time (ISO 8601 with a time zone), a mission (right after it was "
        "published) or a commit (`tid:0x...`); absent: now."
    ),
]


class StrictModel(BaseModel):
    """The rule of every message: no value is converted, and no unknown field is accepted."""

    # Each is built when its verb is first called: a command calls two or three of all these.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, defer_build=True)


#: The version of the protocol: in every request, reply and event.
VERSION: Final = 1
#: Longest piece of an attachment, in bytes before base64.
PIECE_BYTES: Final = 512 * 1024
#: Longest request, in bytes.
MESSAGE_BYTES: Final = 2**20
#: The depth to which a request may nest arrays and objects.
DEPTH: Final = 32
#: Most values and fields of a request: reading that many takes a few milliseconds.
VALUES: Final = 20_000
#: Characters of a wrong value or name that an error repeats.
SHOWN = 80

Kind: TypeAlias = Literal["ack", "event", "result", "error"]


class WireRequest(StrictModel):
    """A message of a client."""

    v: Literal[1] = Field(description="The version of the protocol.")
    id: str = Field(min_length=1, max_length=128, description="The client's name for this request; replies carry it.")
    verb: str = Field(min_length=1, max_length=64, description="The name of the verb.")
    args: dict[str, JsonValue] = Field(default_factory=dict, description="The verb's arguments.")


class WireReply(StrictModel):
    """A message to a client: any number of `ack` and `event`, then one `result` or `error`."""

    v: Literal[1] = Field(description="The version of the protocol.")
    id: str | None = Field(description="The request's id; null if the request could not be read.")
    kind: Kind = Field(description="The kind of reply: the last one is a `result` or an `error`.")
    seq: int = Field(ge=1, description="Counts the replies to a request from 1; a gap means that events were lost.")
    attempt: int = Field(ge=1, description="The run of the mission that this reports; above 1 the run is a replay.")
    event: str | None = Field(default=None, description="The event's name (docs/events.md); of kind `event`.")
    data: dict[str, JsonValue] | None = Field(
        default=None, description="The acknowledgement, the event's keys or the result."
    )
    error: dict[str, JsonValue] | None = Field(
        default=None, description="code, message, remedy, retry, and field where one is meant; of kind `error`."
    )


class WireNotice(StrictModel):
    """A message to watchers: the second frame, after the topic."""

    model_config = ConfigDict(extra="allow", defer_build=True)

    v: Literal[1] = Field(description="The version of the protocol.")
    seq: int = Field(ge=1, description="Counts a mission's notices, and those of the system, from 1; gaps are visible.")
    at: str = Field(description="Time of the event, ISO 8601 in UTC.")
    event: str = Field(description="The event's name; its keys stand beside it.")
    mission: str | None = Field(default=None, description="The mission that the event concerns, if any.")


S = TypeVar("S", bound=StrictModel)


# -- reading


def parse(data: bytes) -> Any:
    """Parse the JSON of a message. Raises: ProtocolError: it is too long, too deep, has too many values, or is none."""
    if len(data) > MESSAGE_BYTES:
        raise ProtocolError(
            f"the message has {len(data)} bytes, at most {MESSAGE_BYTES} are taken",
            remedy="Send files by `attach`, in pieces.",
        )
    # Counted before it is read, so that no message keeps a server busy; in texts these signs may stand in masses.
    if sum(map(data.count, (b"[", b"{", b","))) > VALUES and _values(data) > VALUES:
        raise ProtocolError(f"the message has more than {VALUES} values", remedy="Send less at once.")
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        why = str(error)
        if why.startswith("recursion"):
            raise _too_deep() from None
        raise ProtocolError(f"the message is not JSON: {why}") from None
    _check(value)
    return value


def _values(data: bytes) -> int:
    """Estimate the values of a message, not counting the signs inside its texts (every odd part between quotes)."""
    outside = b"".join(data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    return sum(map(outside.count, (b"[", b"{", b",")))


def _check(value: object) -> None:
    """Raise ProtocolError for what nests too deep, and for a number that is none."""
    level: list[Any] = [value]
    for _ in range(DEPTH + 1):
        if any(isinstance(each, float) and not math.isfinite(each) for each in level):
            raise ProtocolError("the message holds a number that is too large")
        nested = [each for each in level if isinstance(each, dict | list)]
        if not nested:
            return
        level = [one for each in nested for one in (each.values() if isinstance(each, dict) else each)]
    raise _too_deep()


def _too_deep() -> ProtocolError:
    return ProtocolError(f"the message nests deeper than {DEPTH}", remedy="Send it flatter.")


def request_id(value: object) -> str | None:
    """Return the id of what may be no valid request, so that its sender can be told so."""
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, str) and 0 < len(found) <= 128 else None


def read_request(value: object) -> WireRequest:
    """Read parsed JSON as a request. Raises: ProtocolError: a field is wrong; the error names it."""
    if not isinstance(value, dict):
        raise ProtocolError("a request is a JSON object")
    if "v" in value and (type(value["v"]) is not int or value["v"] != VERSION):
        raise ProtocolError(
            f"this is version {VERSION} of the protocol", field="v", remedy="Use a client of the server's version."
        )
    return read_model(WireRequest, value)


def read_model(shape: type[S], value: Mapping[str, object], under: str = "") -> S:
    """Read a part of a message by its model. Raises: ProtocolError: a field is wrong; the error names it."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])[:SHOWN]
        raise ProtocolError(f"{under}{place}: {first['msg']}", field=f"{under}{place}") from None


def encode(value: Mapping[str, object]) -> bytes:
    """Return a message as it goes over the wire; what is no Unicode text becomes question marks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "replace")


# -- errors that came over the wire


class ForeignError(BatosError):
    """An error of a kind that this version does not know, told by a server of another one."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(message, **more)
        self.__dict__["code"] = code  # the kind's own is its class's


_KINDS: Final = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BatosError)
}


def error_of(told: Mapping[str, Any]) -> BatosError:
    """Rebuild the error that a server told, by its code: its `as_dict` is what was told."""
    code, message = str(told.get("code", "error")), str(told.get("message", ""))
    kind = _KINDS.get(code)
    if kind is None:
        error: BatosError = ForeignError(code, message)
    else:
        # Kinds differ in what they are made of, and all that is known of one is what it told.
        error = kind.__new__(kind, message)
        BatosError.__init__(error, message)
    error.remedy = str(told.get("remedy", ""))
    error.field = None if told.get("field") is None else str(told["field"])
    error.also = tuple(str(each) for each in told.get("also") or ())
    error.__dict__["retry"] = bool(told.get("retry", False))
    if isinstance(error, BudgetExceeded):
        error.table, error.largest = told.get("budget") or {}, told.get("largest_num_ctx")
    if isinstance(error, ApprovalNeeded):
        error.approval, *others = (str(each) for each in told.get("approvals") or (told.get("approval", ""),))
        error.others = tuple(others)
    return error


def mission_error(mission: MissionDocument) -> BatosError:
    """Return the error for which a mission has no answer, for its asker."""
    name, status, reason = mission["id"], mission["status"], mission.get("reason")
    if status == "waiting" and reason and reason["code"] == ApprovalNeeded.code:
        return error_of(reason)
    if status in ("waiting", "paused"):
        said = f": {reason['message']}" if reason else ""
        return TimedOut(f"{name} is {status}{said}", remedy=f"`batos resume {name}` lets it go on.")
    return error_of(reason) if reason else MissionFailed(f"{name} is {status}")
