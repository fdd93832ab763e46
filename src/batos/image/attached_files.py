"""Attached files: as their contents are stored, and available to all later questions of a conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from ZODB.blob import Blob

from batos.image.records import Attachment
from batos.image.roots import Root, connection_of
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import ImageDamaged, InternalError

#: Attachments up to this many bytes are kept in the record, longer ones as blobs.
INLINE_BYTES: Final = 64 * 1024


def make_attachment(root: Root, sha256: str, data: bytes, *, as_blob: bool) -> Attachment:
    """Return the record of a file, as a change of the writer's; `as_blob`: the storage has blobs for a long one."""
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InternalError("an attachment's content is not what its digest says")
    if len(data) <= INLINE_BYTES or not as_blob:
        return Attachment(sha256, len(data), data, None)
    blob = Blob()
    # A blob of no connection would be written to the system's temporary folder: that may be another disk, and what a
    # killed process left there nobody would remove.
    connection_of(root).add(blob)
    with blob.open("w") as file:
        # The file has no buffer: on a full disk one write takes what fits, and only the next one is an error.
        rest = memoryview(data)
        while rest:
            rest = rest[file.write(rest) :]
    return Attachment(sha256, len(data), None, blob)


def is_kept(attachments: Any, sha256: str) -> bool:
    """Test if a file is stored and sound; a damaged one counts as missing, so that it is written again."""
    if sha256 not in attachments:
        return False
    try:
        attachments[sha256].read()
    except ImageDamaged:
        return False
    return True


#: A file as a brief names it: its name, its media type, the SHA-256 of its content.
Ref: TypeAlias = Mapping[str, Any]

_FILES: Final = "files"


def files_of(conversation: UvmObject) -> list[Ref]:
    """Return the files of a conversation, in the order in which they came."""
    return list(own_slots(conversation).get(_FILES, ()))


def merge_files(before: Iterable[Ref], given: Collection[Ref]) -> list[Ref]:
    """Join what was there with what comes; a file takes the place of one of its name, and of one of its content.

    >>> a, b = {"name": "a", "sha256": "1"}, {"name": "b", "sha256": "2"}
    >>> merge_files([a, b], [{"name": "a", "sha256": "3"}])
    [{'name': 'b', 'sha256': '2'}, {'name': 'a', 'sha256': '3'}]
    """
    names, contents = {each["name"] for each in given}, {each["sha256"] for each in given}
    return [each for each in before if each["name"] not in names and each["sha256"] not in contents] + list(given)


def keep_in_conversation(conversation: UvmObject, given: Collection[Ref]) -> None:
    """Let what was attached be the conversation's; one that has it all is not written again."""
    before = files_of(conversation)
    after = merge_files(before, given)
    if given and after != before:
        _set(conversation, after)


def drop_from_conversation(conversation: UvmObject, names: Collection[str]) -> list[str]:
    """Leave the files of these names out from now on, and what is not there: then nothing is left out."""
    before = files_of(conversation)
    unknown = sorted(set(names) - {each["name"] for each in before})
    if not unknown:
        _set(conversation, [each for each in before if each["name"] not in names])
    return unknown


def _set(conversation: UvmObject, files: Iterable[Ref]) -> None:
    setattr(conversation, _FILES, tuple(dict(each) for each in files))
