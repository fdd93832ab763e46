"""Canonical JSON: one form for equal values, made only once for what a call writes several times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

_ENCODER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: object) -> bytes:
    """Encode a value as canonical JSON: sorted keys, no blanks, UTF-8 that also holds a lone surrogate."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


class EncodedMessages(tuple[dict[str, str], ...]):
    """The messages of a chat, which nobody changes: their form is for the wire, for the journal and for its key."""

    @cached_property
    def form(self) -> bytes:
        """Return the canonical form of the messages."""
        try:
            # Of texts this is the same form, in a quarter of the time.
            return to_json([dict(sorted(each.items())) for each in self])
        except PydanticSerializationError:  # half a surrogate pair
            return canonical(self)


class EncodedSchema(dict[str, Any]):
    """The schema of a reply, which nobody changes: every call with the same decision has the same form of it."""

    @cached_property
    def form(self) -> bytes:
        """Return the canonical form of the schema."""
        return canonical(self)


def form_of(value: object) -> bytes:
    """Return the canonical form of a value: the one that it has already, or a new one."""
    return value.form if isinstance(value, EncodedMessages | EncodedSchema) else canonical(value)


def form_of_list(values: Iterable[object]) -> bytes:
    """Return the canonical form of a list, made of the forms of its values."""
    return b"[%b]" % b",".join(map(form_of, values))


def form_of_object(fields: Mapping[str, object]) -> bytes:
    """Return the canonical form of a mapping, made of the forms of its values."""
    return b"{%b}" % b",".join(b"%b:%b" % (canonical(name), form_of(fields[name])) for name in sorted(fields))
