"""Look-ups in a granted folder: its files but for hidden ones and keys, and nothing that a link leads to outside."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from batos.agency.look_ups.look_up import Hit, rank
from batos.agency.look_ups.web_documents import MOST_TEXT, Document
from batos.image.ids import iso
from batos.memory.reading.file_texts import READERS, FileTexts, ReadingLimits
from batos.memory.reading.folder_files import FileReader
from batos.memory.reading.read_text import HEAD, format_of, one_line
from batos.protocol.errors import LookUpFailed, Refused

#: The most files that a search reads, the most bytes of one, and of all.
MOST_FILES, MOST_BYTES, MOST_ALL = 2_000, 20 * 2**20, 64 * 2**20
#: Names of files that hold keys or passwords.
_KEYS: Final = re.compile(
    r"(?:id_(?:rsa|dsa|ecdsa|ed25519)|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx?|ppk|gpg|asc|ovpn)|.*credentials?.*|"
    r".*secrets?\b.*|.*passwords?\b.*|htpasswd|shadow|token|.*\.token|wallet\.dat)",
    re.IGNORECASE,
)
#: The words of a file that holds a private key.
_KEY_TEXT: Final = b"PRIVATE KEY-----"


def is_shown(path: str) -> bool:
    """Test if a path below a folder may be read: nothing of it is hidden, and it is named as no key.

    >>> is_shown("notes/a.md"), is_shown(".ssh/config"), is_shown("a/id_rsa"), is_shown("my-passwords.txt")
    (True, False, False, False)
    """
    parts = path.split("/")
    plain = all(part not in ("", ".", "..") and not part.startswith(".") and part.isprintable() for part in parts)
    return plain and not _KEYS.fullmatch(parts[-1])


@dataclass(frozen=True, slots=True)
class FolderLookUp:
    """The files of a folder. Addresses are paths below it; `guard` raises Refused for a folder of the mind itself."""

    folder: Path
    clock: Callable[[], datetime]
    guard: Callable[[Path], None] = lambda folder: None

    async def search(self, query: str, limit: int) -> Sequence[Hit]:
        """Return the text files that have words of the query."""
        return await asyncio.to_thread(lambda: rank(self._texts(), query, limit))

    async def list(self, place: str, limit: int) -> Sequence[Hit]:
        """Return the files of the folder, or of one in it, by their paths."""
        top = f"{place.strip('/')}/" if place.strip("/") else ""
        return await asyncio.to_thread(
            lambda: [self._hit(path) for path in self._paths(MOST_FILES) if path.startswith(top)][:limit]
        )

    async def fetch(self, address: str) -> Document:
        """Return the text of a file."""
        return await asyncio.to_thread(self._read, address)

    def _paths(self, most: int) -> Iterator[str]:
        """Yield the paths of files that may be read, as a walk finds them."""
        self.guard(self.folder)
        walker = FileReader(MOST_BYTES, FileTexts(ReadingLimits(MOST_BYTES)))  # it walks, and starts no process
        for path in walker.walk(self.folder):
            below = path.relative_to(self.folder).as_posix()
            if is_shown(below):
                most -= 1
                yield below
            if most <= 0:
                return

    def _texts(self) -> Iterator[tuple[Hit, str]]:
        left = MOST_ALL
        for path in self._paths(MOST_FILES):
            with suppress(LookUpFailed, Refused):
                data, when = self._open(path)
                left -= len(data)
                if left < 0:
                    return
                if format_of(path, data[:HEAD]) == "plain":
                    text = data.decode("utf-8", "replace")
                    yield Hit(path, path, "", iso(when)[:10], self.folder.name), f"{path}\n{text}"

    def _hit(self, path: str) -> Hit:
        size = 0
        with suppress(OSError):
            size = (self.folder / path).stat(follow_symlinks=False).st_size
        return Hit(path, path, f"{size:,} bytes", "", self.folder.name)

    def _read(self, path: str) -> Document:
        data, when = self._open(path)
        format_ = format_of(path, data[:HEAD])
        title, text, left_out = one_line(path), "", tuple[str, ...]()
        if format_ == "plain":
            text = data.decode("utf-8", "replace")
        elif format_ in READERS:
            with FileTexts(ReadingLimits(4 * MOST_TEXT)) as reader:
                texts, unread = reader.read_bytes(path, data, format_)
            text, title = "\n\n".join(each.text for each in texts), next((each.title for each in texts), "") or title
            left_out = tuple(each.reason for each in unread)
        if not text.strip():
            raise LookUpFailed(f"{path} has no text{f': {left_out[0]}' if left_out else ''}")
        if len(text) > MOST_TEXT:
            left_out = (*left_out, f"all behind the first {MOST_TEXT:,} of {len(text):,} characters")
        digest, source = hashlib.sha256(data).hexdigest(), f"{self.folder.name}/{path}, changed {iso(when)[:10]}"
        return Document(
            title, text[:MOST_TEXT], path, iso(self.clock()), digest=digest, source=source, left_out=left_out
        )

    def _open(self, path: str) -> tuple[bytes, datetime]:
        """Return the bytes of a file and when it changed: opened folder by folder, so that no link is followed.

        Raises: Refused: it is hidden, a key, or no plain file. LookUpFailed: it is not there, or too large.
        """
        if not is_shown(path):
            what = f"{path[:120]!r} is hidden, a key, or no plain path below the granted folder"
            raise Refused(what, field="path", remedy="`list_` shows what may be read.")
        self.guard(self.folder)
        held = [os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            *folders, name = path.split("/")
            for each in folders:
                held.append(os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held[-1]))
            held.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=held[-1]))
            about = os.fstat(held[-1])
            if not stat.S_ISREG(about.st_mode):
                raise Refused(f"{path!r} is no plain file", field="path", remedy="`list_` shows what may be read.")
            if about.st_size > MOST_BYTES:
                raise LookUpFailed(f"{path} has more than {MOST_BYTES:,} bytes")
            with os.fdopen(held.pop(), "rb") as file:
                data = file.read(MOST_BYTES)
        except OSError as error:
            raise LookUpFailed(f"{path} cannot be read: {error.strerror}") from error
        finally:
            for number in held:
                os.close(number)
        if _KEY_TEXT in data[:HEAD]:
            raise Refused(f"{path!r} holds a private key", field="path", remedy="A key is shown to no mission.")
        return data, datetime.fromtimestamp(about.st_mtime, UTC)
