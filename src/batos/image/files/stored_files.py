"""The contents of attached files as they are stored: short ones in their record, long ones as blobs."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from ZODB.blob import Blob

from batos.image.records import Attachment
from batos.image.roots import Root, connection_of
from batos.protocol.errors import ImageDamaged, InternalError

#: Attachments up to this many bytes are kept in the record, longer ones as blobs.
INLINE_BYTES: Final = 64 * 1024


def make(root: Root, sha256: str, data: bytes, *, as_blob: bool) -> Attachment:
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
    """Test if a file is stored and sound. A damaged one counts as missing, so that the bytes at hand are
    written again.
    """
    if sha256 not in attachments:
        return False
    try:
        attachments[sha256].read()
    except ImageDamaged:
        return False
    return True
