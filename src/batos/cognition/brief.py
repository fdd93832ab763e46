"""The mission brief: a request as a validated value."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from batos.errors import BriefError

Effort: TypeAlias = Literal["reflex", "cycle"]
PersonaName: TypeAlias = Literal["ROBIN", "BRICK", "BABS", "ALFRED"]

#: Longest question, in characters; a longer text belongs into a file.
TEXT_LIMIT = 20_000
ATTACHMENTS_LIMIT = 32


class AttachmentRef(BaseModel):
    """A file that comes with a brief, named by the digest of its content."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=255)
    media_type: str = Field(min_length=1, max_length=127)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Budget(BaseModel):
    """What this mission may spend at most; what is absent is the configured limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)


class MissionBrief(BaseModel):
    """What is asked, by whom, with what, and how it is to be worked on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1, max_length=TEXT_LIMIT)
    attachments: tuple[AttachmentRef, ...] = Field(default=(), max_length=ATTACHMENTS_LIMIT)
    user: str = Field(min_length=1, max_length=128)
    conversation: str | None = Field(default=None, pattern=r"^c-[0-9A-HJKMNP-TV-Z]{26}$")
    persona: PersonaName | None = None
    effort: Effort | None = None
    budget: Budget | None = None
    ancestor: str | None = Field(default=None, pattern=r"^m-[0-9A-HJKMNP-TV-Z]{26}$")
    origin: dict[str, str] = Field(default_factory=lambda: {"door": "api", "client": "batos"})

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("there is nothing but blanks")
        if "\0" in value:
            raise ValueError("it contains a NUL character")
        return value


def parse(value: Mapping[str, Any]) -> MissionBrief:
    """A brief from plain data; raises BriefError naming the first field that is wrong."""
    try:
        return MissionBrief(**value)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"]) or "brief"
        message = first["msg"].removeprefix("Value error, ")
        raise BriefError(f"{name}: {message}", field=name, remedy=f"Correct `{name}` and ask again.") from error


@dataclass(frozen=True, slots=True)
class File:
    """A file's content with the reference that a brief carries."""

    ref: AttachmentRef
    data: bytes


def read_file(path: Path, limit: int) -> File:
    """A text file as an attachment; `limit` in bytes. Raises BriefError when it is not one."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise BriefError(
                f"{path.name} has {size} bytes, the limit is {limit}",
                field="attachments",
                remedy="Split the file, or raise attachment_bytes in batos.toml.",
            )
        data = path.read_bytes()
    except OSError as error:
        raise BriefError(f"{path} cannot be read: {error.strerror}", field="attachments") from error
    return as_file(path.name, data)


def as_file(name: str, data: bytes) -> File:
    """Bytes as a text attachment; raises BriefError when they are no UTF-8 text."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_text(name, f"byte {error.start} is no UTF-8") from error
    if "\0" in text:
        raise _not_text(name, "it contains a NUL character")
    if not text.strip():
        raise BriefError(f"{name} is empty", field="attachments", remedy="Give a file that says something.")
    media_type = mimetypes.guess_type(name)[0] or "text/plain"
    ref = AttachmentRef(name=name[:255], media_type=media_type, sha256=hashlib.sha256(data).hexdigest())
    return File(ref, data)


def _not_text(name: str, why: str) -> BriefError:
    return BriefError(f"{name} is not a text file: {why}", field="attachments", remedy="Convert it to UTF-8 text.")
