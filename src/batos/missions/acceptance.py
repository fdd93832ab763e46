"""Acceptance of a brief: finds its conversation, its ancestor and the mission that it answers before it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from batos.agency.records import effect_records
from batos.conversations import conversations
from batos.image import attached_files, ids, ownership, roots
from batos.image.ids import conversation_id
from batos.image.roots import Root
from batos.protocol import brief as briefs
from batos.protocol.brief import AttachmentRef, MissionBrief
from batos.protocol.errors import BriefError, Refused

#: The fields in which a brief and its repetition may differ: those that the door sets.
_MAY_DIFFER: Final = frozenset({"origin", "idempotency_key"})


def resolve_brief(root: Root, asked: Mapping[str, Any], now: datetime) -> MissionBrief:
    """Parse a brief, with `new` and `last` replaced by the names that they stand for.

    Raises: BriefError: a field is wrong. NotFound: a named mission or conversation does not exist. Refused: the
    ancestor has not ended.
    """
    fields = dict(asked)
    # A value of another type is refused by the brief's own rules.
    if isinstance(fields.get("conversation"), str) and isinstance(fields["user"], str):
        fields["conversation"] = _conversation(root, fields["conversation"], fields["user"], now)
    brief = briefs.parse(fields)
    if brief.ancestor is not None:
        _check_ancestor(root, brief.ancestor, brief.user)
    if brief.in_reply_to is not None:
        conversations.check_reply(root, brief.in_reply_to, brief.user)
    effect_records.check_granted(root, brief.grants or (), brief.user)
    return brief


def find_repeat(root: Root, brief: MissionBrief, asked: Mapping[str, object]) -> str | None:
    """Return the mission that the same user began with the same idempotency key; None if there is none.

    Raises: BriefError: that mission's brief has other fields.
    """
    key = brief.idempotency_key
    name = None if key is None else root[roots.REPEATS].get(roots.repeat_key(brief.user, key))
    if name is None:
        return None
    first, value = roots.mission_record(root, name).brief.value, brief.as_document()
    named = asked.get("conversation")
    # `new` and `last` stand for another conversation when they are used again later.
    is_relative = isinstance(named, str) and (named == "new" or ids.back(named) is not None)
    by_name = {"conversation"} if is_relative else set()
    for field in set(briefs.FIELDS) - _MAY_DIFFER - by_name:
        if not _same(field, first, value):
            raise BriefError(
                f"idempotency_key: {key!r} is the key of {name}, whose `{field}` is another",
                field="idempotency_key",
                remedy="Give a new question a key of its own; an old one with the same fields is the same mission.",
            )
    return str(name)


def _same(field: str, first: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Compare a field of two briefs. The first may also have the files of its conversation."""
    if field == "attachments" and "conversation" in first:
        return all(each in first[field] for each in value.get(field, ()))
    return bool(first.get(field) == value.get(field))


def with_kept_files(root: Root, brief: MissionBrief) -> MissionBrief:
    """Return the brief with the files of its conversation added. Raises: BriefError: there are too many files."""
    found = root[roots.CONVERSATIONS].get(brief.conversation or "")
    if found is None:
        return brief
    given = [each.model_dump() for each in brief.attachments]
    files = attached_files.merge_files(attached_files.files_of(found), given)
    if len(files) > briefs.ATTACHMENTS_LIMIT:
        raise BriefError(
            f"attachments: with those of the conversation there are {len(files)}, at most {briefs.ATTACHMENTS_LIMIT} "
            "are taken",
            field="attachments",
            remedy="Leave some out: /drop NAME in `batos chat`.",
        )
    return brief.model_copy(update={"attachments": tuple(AttachmentRef.model_construct(**each) for each in files)})


def _conversation(root: Root, name: str, user: str, now: datetime) -> str:
    """Return the name of the conversation that a brief means by `new`, by `last` (the user's newest) or by its name."""
    if name == "new":
        return conversation_id(now)
    found = conversations.resolve_name(root, name, user)
    conversations.own_conversation(root, found, user)
    return found


def _check_ancestor(root: Root, name: str, user: str) -> None:
    """Check that the ancestor is a mission of the same user that has ended, so that its paid answers may be reused.

    Raises: NotFound: there is no such mission of this user. Refused: the mission has not ended.
    """
    found = roots.find_record(root, name)
    if found is None or found.brief.value["user"] != user:
        raise ownership.no_mission(name, user, "ancestor")
    status = found.status
    if status.word in ("queued", "running", "waiting", "paused"):
        raise Refused(
            f"{name} has not ended: it is {status.word}",
            field="ancestor",
            remedy="Wait for its end (`batos resume` continues one that was interrupted): otherwise both would pay.",
        )
