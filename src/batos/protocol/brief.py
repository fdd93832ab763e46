"""The mission brief: a request as a validated value, and files that come with it, as far as they are text."""

from __future__ import annotations

import hashlib
import json
import mimetypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from batos.protocol import brief_checks
from batos.protocol.errors import BriefError
from batos.protocol.file_kinds import can_be_remembered, no_text
from batos.protocol.lent_tools import TOOLS_LIMIT, ToolDeclaration, distinct_names

Effort: TypeAlias = Literal["reflex", "cycle", "council"]
#: As asked for: `auto` leaves it to the router, whatever is configured.
EffortChoice: TypeAlias = Literal["auto", "reflex", "cycle", "council"]
Combine: TypeAlias = Literal["auto", "select", "vote", "weave"]
Install: TypeAlias = Literal["auto", "now", "ask", "never"]
Interpret: TypeAlias = Literal["allow", "never"]
PersonaName: TypeAlias = Literal["ROBIN", "BRICK", "BABS", "ALFRED"]

#: Longest question, in characters; a longer text belongs into a file.
TEXT_LIMIT = 20_000
ATTACHMENTS_LIMIT = 32
#: Most calls or tokens that a brief may ask for; a number of thousands of digits could not even be shown.
BUDGET_LIMIT = 10**9
ARGUMENTS_LIMIT = 8
#: The scope of what is remembered for every question, and the policy of a mission that uses nothing of it.
DEFAULT_SCOPE, NO_MEMORY = "default", "none"
#: Longest file name, in characters.
NAME_LIMIT = 255

#: The longest name of a client, in characters.
_CLIENT: Final = 128

#: The doors of clients that were made for other servers, and write more than their person typed.
FOREIGN_DOORS: Final = frozenset({"openai", "ollama", "chore", "mcp"})

_ULID = "[0-9A-HJKMNP-TV-Z]{26}"


_Line: TypeAlias = Annotated[str, AfterValidator(brief_checks.one_line)]


class _BriefPart(BaseModel):
    """A part of a brief, which is never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AttachmentRef(_BriefPart):
    """A file that comes with a brief, named by the digest of its content.

    Of one that was read, such as a PDF, that is its text; `left_out` has a phrase for each part that could not be read.
    """

    name: _Line = Field(min_length=1, max_length=NAME_LIMIT)
    media_type: _Line = Field(min_length=1, max_length=127)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}\z")
    left_out: tuple[_Line, ...] = Field(default=(), max_length=20, exclude_if=lambda phrases: not phrases)


class Budget(_BriefPart):
    """The most that this mission may spend; an absent field means the configured limit."""

    calls: int | None = Field(default=None, ge=1, le=BUDGET_LIMIT, strict=True)
    tokens: int | None = Field(default=None, ge=1, le=BUDGET_LIMIT, strict=True)
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class MissionPolicy(_BriefPart):
    """The way in which this mission is to be worked on."""

    combine: Combine = "auto"
    #: The policies for making a method of an intent, and for interpreting one without a method; absent: as configured.
    install: Install | None = None
    interpret: Interpret | None = None
    #: With the daemon away it waits until it is back, instead of failing.
    wait_ollama: bool = Field(default=False, strict=True)
    #: The scope of the memories that it uses, or NO_MEMORY; absent: `default` and the conversation's.
    memory: _Line | None = Field(default=None, min_length=1, max_length=128)
    #: The model is not asked what neither memory nor a file answers.
    only_memory: bool | None = Field(default=None, strict=True)


class Message(_BriefPart):
    """A message to an object of the image: sending it is the mission."""

    receiver: _Line = Field(min_length=1, max_length=128)
    selector: _Line = Field(min_length=1, max_length=128)
    arguments: Annotated[
        tuple[JsonValue, ...], Field(max_length=ARGUMENTS_LIMIT), BeforeValidator(brief_checks.plain_json)
    ] = ()

    def in_words(self) -> str:
        """Return the message as people read it, where a mission shows its question."""
        given = "".join(f" {json.dumps(each, ensure_ascii=False)}" for each in self.arguments)
        words = f"{self.receiver} {self.selector}{given}"
        return words if len(words) <= TEXT_LIMIT else f"{words[: TEXT_LIMIT - 1]}…"


class Origin(_BriefPart):
    """Through which door it came, and by whose hand."""

    door: _Line = Field(default="api", max_length=64)
    client: _Line = Field(default="batos", max_length=_CLIENT)
    #: Of a client that sends its whole history again: the chain of digests of what it says came before the question.
    history: str | None = Field(default=None, pattern=r"^([0-9a-f]{64})?\z", exclude_if=lambda chain: chain is None)
    #: A person types what comes by this client's key.
    typed: bool = Field(default=False, exclude_if=lambda typed: not typed)


def client_name(given: object) -> str:
    """Return what a client calls itself as an origin takes it: one line of visible letters."""
    shown = "".join(each for each in given if each.isprintable()).strip() if isinstance(given, str) else ""
    return shown[:_CLIENT].strip() or "unknown"


class MissionBrief(_BriefPart):
    """A question with its asker, its attachments, and the way in which it is to be worked on.

    `text` may be left out of a brief with a message, and is then the message in words.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    text: Annotated[str, AfterValidator(brief_checks.says_something)] = Field(min_length=1, max_length=TEXT_LIMIT)
    attachments: tuple[AttachmentRef, ...] = Field(default=(), max_length=ATTACHMENTS_LIMIT)
    user: _Line = Field(min_length=1, max_length=128)
    conversation: str | None = Field(default=None, pattern=rf"^c-{_ULID}\z")
    in_reply_to: str | None = Field(default=None, pattern=rf"^m-{_ULID}\z")
    persona: (
        Annotated[PersonaName, BeforeValidator(lambda name: name.upper() if isinstance(name, str) else name)] | None
    ) = None
    effort: EffortChoice | None = None
    #: In the place of what the codex has for the persona; `system` is told the model beside the persona's own text.
    model: _Line | None = Field(default=None, min_length=1, max_length=400)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    seed: int | None = Field(default=None, ge=0, lt=2**31, strict=True)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    #: The most tokens of the answer, which is cut there.
    max_tokens: int | None = Field(default=None, ge=1, le=BUDGET_LIMIT, strict=True)
    system: Annotated[str, AfterValidator(brief_checks.says_something)] | None = Field(default=None, max_length=4_000)
    #: The JSON schema that the answer is to have, which is then JSON text; it is one call.
    answer_schema: Annotated[dict[str, JsonValue], BeforeValidator(brief_checks.json_schema)] | None = Field(
        default=None, alias="schema"
    )
    #: ISO 8601 in UTC: what has no answer by then ends `failed`, timed out.
    deadline: Annotated[str, AfterValidator(brief_checks.utc_moment)] | None = None
    #: Higher goes first, none is 0; among equals who came first.
    priority: int | None = Field(default=None, ge=-9, le=9, strict=True)
    budget: Budget | None = None
    policy: MissionPolicy | None = None
    message: Message | None = None
    #: A second brief of the same user with the same key is the first one's mission.
    idempotency_key: _Line | None = Field(default=None, min_length=1, max_length=128)
    ancestor: str | None = Field(default=None, pattern=rf"^m-{_ULID}\z")
    #: The grants by whose capabilities the mission may act on the world; without one it cannot.
    grants: tuple[Annotated[_Line, Field(min_length=1, max_length=64)], ...] | None = Field(default=None, max_length=8)
    #: Functions of the program that asks, which it runs for this mission while it waits for the end; `caller` is the
    #: name by which it answers for them, that nobody else knows.
    caller: str | None = Field(default=None, pattern=r"^[0-9a-f]{32}\z")
    tools: Annotated[tuple[ToolDeclaration, ...] | None, AfterValidator(distinct_names)] = Field(
        default=None, max_length=TOOLS_LIMIT
    )
    #: The mission shows its plan first, and waits for a yes before it calls a tool, answers or acts.
    plan: bool | None = Field(default=None, strict=True)
    #: Of who makes calls after the mission's end: it may, or has to, end with a call of one of `tools`, which were
    #: chosen by rule and are not run here.
    tool_choice: Literal["auto", "required"] | None = None
    origin: Origin = Field(default_factory=Origin)

    @property
    def system_trust(self) -> str:
        """Return the trust class of the system text: what a client writes into it of itself is nobody's word here."""
        foreign = self.origin.door in FOREIGN_DOORS and not self.origin.typed
        return "external" if self.system is not None and foreign else "user"

    def as_document(self) -> dict[str, object]:
        """Return the brief as the image and the journal keep it: plain data without the fields that are absent."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_document(cls, value: Mapping[str, Any]) -> MissionBrief:
        """Return the brief of what `as_document` gave. `parse` checked it at the door, and nothing is checked here.

        Fields that this version does not know, from an image of another, are left out.
        """
        known = {name: each for name, each in value.items() if name in FIELDS and each is not None}
        made = {name: make(known[name]) for name, make in _STORED.items() if name in known}
        return cls.model_construct(**{**known, **made})


#: The names of a brief's fields in documents.
FIELDS: Final = tuple(about.alias or name for name, about in MissionBrief.model_fields.items())
#: The fields of a stored brief that are not plain values, each with the function that makes its value.
_STORED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "attachments": lambda files: tuple(AttachmentRef.model_construct(**each) for each in files),
    "budget": lambda value: Budget.model_construct(**value),
    "policy": lambda value: MissionPolicy.model_construct(**value),
    "message": lambda value: Message.model_construct(**{**value, "arguments": tuple(value.get("arguments", ()))}),
    "origin": lambda value: Origin.model_construct(**value),
    "grants": tuple,
    "tools": lambda tools: tuple(ToolDeclaration.model_construct(**each) for each in tools),
}


def parse(value: object) -> MissionBrief:
    """Parse a brief from plain data.

    Raises: BriefError: a field is wrong; the error names the first.
    """
    if not isinstance(value, Mapping):
        raise BriefError(f"a brief is an object with fields, not a {type(value).__name__}", remedy="Send its fields.")
    given = dict(value)
    if given.get("schema") is not None:
        given["effort"] = _effort_by_schema(given)
    if given.get("plan") and given.get("message") is not None:
        remedy = "Leave one of them out; `batos approvals` has the effects of a message."
        raise BriefError("plan: a message is sent as it stands, and has no plan", field="plan", remedy=remedy)
    wordless = given.get("text") is None and given.get("message") is not None
    if wordless:
        given["text"] = "-"
    try:
        brief = MissionBrief.model_validate(given)
        return brief.model_copy(update={"text": brief.message.in_words()}) if wordless and brief.message else brief
    except ValidationError as error:
        raise _wrong(error) from error


def _effort_by_schema(given: Mapping[str, object]) -> object:
    """Return the effort of a question with a schema. Raises: BriefError: it cannot have one."""
    effort, policy = given.get("effort"), given.get("policy")
    wrong = ""
    if effort in {"cycle", "council"}:
        wrong = f"an answer by a schema is one call, and the effort {effort} is several"
    elif given.get("message") is not None:
        wrong = "what a message answers is its method's"
    elif isinstance(policy, Mapping) and policy.get("only_memory"):
        wrong = "from memory alone the answer may be that there is none, which has no schema"
    if wrong:
        raise BriefError(f"schema: {wrong}", field="schema", remedy="Leave one of them out.")
    return "reflex" if effort in {None, "auto"} else effort


#: Messages for a wrong field, by pydantic's name of the fault; `it` is the field, `given` its value.
_FAULTS = {
    "missing": "{it} is missing",
    "string_type": "{it} must be text, not {given}",
    "string_unicode": "{it} is not valid Unicode text",
    "string_too_short": "{it} is empty",
    "string_too_long": "{it} has {length:,} characters, at most {max_length:,} are taken",
    "string_pattern_mismatch": "there is no {kind} {given}",
    "too_long": "there are {actual_length:,}, at most {max_length:,} are taken",
    "literal_error": "{it} must be {expected}, not {given}",
    "bool_type": "{it} must be true or false, not {given}",
    "int_type": "{it} must be a whole number, not {given}",
    "float_type": "{it} must be a number, not {given}",
    "float_parsing": "{it} must be a number, not {given}",
    "finite_number": "{it} must be a finite number",
    "greater_than": "{it} must be more than {gt}, not {given}",
    "greater_than_equal": "{it} must be at least {ge}, not {given}",
    "less_than_equal": "{it} must be at most {le:,}, not {given}",
    "model_type": "{it} must be an object with fields, not {given}",
    "tuple_type": "{it} must be a list, not {given}",
    "dict_type": "{it} must be an object, not {given}",
    "value_error": "{error}",
}
#: Names of fields for people.
_CALLED = {"text": "the question"}
#: Remedies beyond correcting the field.
_REMEDIES = {("text", "string_too_long"): "Give a long text as a file with --file, and ask a question about it."}
#: Characters or bits of a wrong value that is still shown.
_SHOWN = 60


def _wrong(error: ValidationError) -> BriefError:
    first = error.errors(include_url=False)[0]
    name = ".".join(str(part) for part in first["loc"]) or "brief"
    if first["type"] == "extra_forbidden":
        known = ", ".join(FIELDS)
        return BriefError(f"{name}: a brief has no such field", field=name, remedy=f"Leave it out; there are {known}.")
    given = first["input"]
    about = {
        "it": _CALLED.get(name, "it"),
        "given": _describe(given),
        "length": len(given) if isinstance(given, str) else 0,
        "kind": "SHA-256 like" if name.endswith("sha256") else "such id as",
    }
    said = _FAULTS.get(first["type"], "{it} is not valid").format_map({**first.get("ctx", {}), **about})
    remedy = _REMEDIES.get((name, first["type"]), f"Correct `{name}` and ask again.")
    return BriefError(f"{name}: {said}", field=name, remedy=remedy)


def _describe(given: object) -> str:
    """Describe a wrong value for an error message; a long, nested or endless one is named by its kind."""
    if isinstance(given, str) and len(given) <= _SHOWN:
        return repr(given)
    if given is None or isinstance(given, float) or (isinstance(given, int) and given.bit_length() <= _SHOWN):
        return repr(given)
    kind = type(given).__name__
    return f"a long {kind}" if isinstance(given, str | int) else f"a value of another type ({kind})"


@dataclass(frozen=True, slots=True)
class File:
    """A file's content with the reference that a brief carries."""

    ref: AttachmentRef
    data: bytes

    @property
    def is_text(self) -> bool:
        """Test if it is UTF-8 text, which a mission takes as it is; a server reads the text of another file."""
        try:
            is_utf8 = "\0" not in self.data.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return is_utf8 and no_text(self.ref.name, self.data) is None


def read_file(path: Path, limit: int) -> File:
    """Read a file as an attachment; `limit` in bytes.

    Raises: BriefError: the file cannot be read, is too large, or is of a kind that nothing reads.
    """
    try:
        with path.open("rb") as file:
            # Never more than the limit: a pipe or a device has no size to ask for.
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        folder = isinstance(error, IsADirectoryError)
        remedy = "Name its files, each with --file." if folder else "Check its name and its permissions."
        raise BriefError(f"{str(path)!r} cannot be read: {why}", field="attachments", remedy=remedy) from error
    return as_file(path.name, data, limit)


def as_file(name: str, data: bytes, limit: int | None = None) -> File:
    """Make an attachment of bytes: of a text, or of a file whose text a server reads, such as a PDF.

    Raises: BriefError: there are more than `limit` bytes, none but blanks, or they are of a kind that nothing reads.
    """
    name = _name(name)
    if limit is not None and len(data) > limit:
        raise BriefError(
            f"{name} has more than {limit} bytes",
            field="attachments",
            remedy="Split the file, or raise attachment_bytes in batos.toml.",
        )
    known = no_text(name, data)
    if known is not None and not can_be_remembered(data):
        what, command = known
        remedy = f"Convert it to text: {command} | batos ask ... --file -" if command else "Give its content as text."
        what += "" if " not " in what else ", not a text"
        raise BriefError(f"{name} is {what}", field="attachments", remedy=remedy)
    if not data.removeprefix(b"\xef\xbb\xbf").strip():
        raise BriefError(f"{name} is empty", field="attachments", remedy="Give a file that is not empty.")
    media_type = mimetypes.guess_type(f"file{Path(name).suffix}")[0] or "text/plain"
    ref = AttachmentRef(name=name, media_type=media_type, sha256=hashlib.sha256(data).hexdigest())
    return File(ref, data)


def _name(name: str) -> str:
    """Return a file's name without characters that are no text, since a name on a disk can hold any bytes."""
    text = name.encode("utf-8", "replace").decode("utf-8")
    return "".join(each if each.isprintable() else "_" for each in text)[:NAME_LIMIT] or "file"
