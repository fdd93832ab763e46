"""Any brief that a door takes, for laws of what is done with one."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from batos.protocol import brief as briefs
from batos.protocol.brief import ARGUMENTS_LIMIT, MissionBrief, parse

#: JSON that an argument of a message may be.
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9), inner, max_size=3
        )
    ),
    max_leaves=8,
)

_words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip)
_line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
_ulid = st.text("0123456789ABCDEFGHJKMNPQRSTVWXYZ", min_size=26, max_size=26)
_moment = st.datetimes().map(lambda at: f"{at.isoformat(timespec='seconds')}+00:00")
_number = st.integers(1, 10**6)


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of these fields, each present or absent."""
    return st.fixed_dictionaries({}, optional=fields)


def _one_of(alias: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(get_args(alias))


_attachment = st.fixed_dictionaries(
    {"name": _line, "media_type": _line, "sha256": st.text("0123456789abcdef", min_size=64, max_size=64)}
)
_message = st.tuples(_line, _line, st.lists(json_values, max_size=ARGUMENTS_LIMIT)).map(
    lambda told: dict(zip(("receiver", "selector", "arguments"), told, strict=True))
)


def any_brief() -> st.SearchStrategy[MissionBrief]:
    """Briefs as `parse` makes them, with any of their fields."""
    fields = st.fixed_dictionaries(
        {"text": _words, "user": _line},
        optional={
            "attachments": st.lists(_attachment, max_size=2),
            "conversation": _ulid.map("c-{}".format),
            "in_reply_to": _ulid.map("m-{}".format),
            "persona": _one_of(briefs.PersonaName),
            "effort": _one_of(briefs.EffortChoice),
            "schema": st.just({"type": "object", "properties": {"lamp": {"type": "string"}}}),
            "deadline": _moment,
            "priority": st.integers(-9, 9),
            "budget": _some(calls=_number, tokens=_number, seconds=st.floats(0.001, 1e6) | _number),
            "policy": _some(
                combine=_one_of(briefs.Combine),
                install=_one_of(briefs.Install),
                interpret=_one_of(briefs.Interpret),
                wait_ollama=st.booleans(),
            ),
            "message": _message,
            "idempotency_key": _line,
            "ancestor": _ulid.map("m-{}".format),
            "origin": _some(door=_line, client=_line),
        },
    )
    return fields.map(_without_contradiction).map(parse)


def _without_contradiction(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out the schema where there is a message or several calls, which it cannot stand beside."""
    several = fields.get("effort") in {"cycle", "council"}
    without = several or "message" in fields
    return {name: each for name, each in fields.items() if name != "schema" or not without}
