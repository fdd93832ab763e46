"""The base of the models of messages, and the types that their fields share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from batos.protocol.brief import utc_moment


class Meaning(Enum):
    """The meaning of a field beyond its type, by which a command line fills it or reads what a person typed."""

    ASKER = "the person who types"
    MEMORY = "a memory: its id, its source, or the path of its file"
    PLACE = "the path of a file or a folder, or an address"


#: A name of anything: a user, a scope, a persona.
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=128)]
#: The user for whom a request is made; a command line says who types.
Asker: TypeAlias = Annotated[Name | None, Meaning.ASKER]
#: The place of a file or a folder, or an address.
Place: TypeAlias = Annotated[str, Field(min_length=1, max_length=4_096), Meaning.PLACE]
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
