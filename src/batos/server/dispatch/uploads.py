"""Files on their way to a brief: pieces spooled to the home's disk, verified by digest, bounded in size and time."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import shutil
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from batos.client import addresses
from batos.home_folder import disk_full, no_room
from batos.image.ownership import is_guest
from batos.protocol.errors import BriefError, Busy, ImageError
from batos.protocol.server_documents import SentPiece
from batos.protocol.wire_messages import PIECE_BYTES
from batos.server.dispatch.guests import guest_share

if TYPE_CHECKING:
    from hashlib import _Hash

#: Seconds after which what nobody went on with, or named in a brief, is removed.
PATIENCE = 3_600.0
#: And after how many where others have no room.
CROWDED = 60.0
#: Hex digits of a SHA-256.
_DIGITS = 64
#: Files that may be on their way at once, of all; a guest has a quarter.
FILES = 256


@dataclass(slots=True)
class _SpooledFile:
    """A file as far as it has come."""

    path: Path
    user: str
    touched: float
    have: int = 0
    digest: _Hash = field(default_factory=hashlib.sha256)


@dataclass(slots=True)
class Uploads:
    """Spooled files by SHA-256. `each` and `total` bound, in bytes, one file and all of them; the clock is monotonic.

    A guest has a share of the files and of the bytes.

    The folder is this object's alone: what an earlier process left goes with the first piece, or by `close`.
    """

    folder: Path
    each: int
    total: int = 0
    clock: Callable[[], float] = time.monotonic
    _files: dict[str, _SpooledFile] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _is_clean: bool = False

    def __post_init__(self) -> None:
        self.total = self.total or max(4 * self.each, 2**28)

    async def add(self, sha256: str, offset: int, data: str, user: str = "") -> SentPiece:
        """Take a piece (base64): sha256, have (bytes that are there), and size once it is whole.

        BriefError: no base64, too long a piece or file, a piece that is not what came before in its place; what came
        is dropped then. Busy: too much is on its way.
        """
        piece = _decode(data)
        async with self._turn:
            return await asyncio.to_thread(self._add, _name(sha256, user), user, offset, piece)

    async def content(self, sha256: str, user: str = "") -> bytes | None:
        """Return a whole file's bytes, as this user sent it; None where it is not there, or not whole."""
        async with self._turn:
            return await asyncio.to_thread(self._content, _name(sha256, user))

    async def forget(self, files: Iterable[str], user: str = "") -> None:
        """Remove files that the image has by now."""
        async with self._turn:
            for sha256 in files:
                self._drop(_name(sha256, user))

    async def close(self) -> None:
        """Remove everything."""
        async with self._turn:
            self._files.clear()
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)

    # -- in a thread, one at a time

    def _add(self, name: str, user: str, offset: int, piece: bytes) -> SentPiece:
        self._tidy()
        sha256 = name[:_DIGITS]
        spooled = self._files.get(name)
        if spooled is None:
            if not piece:
                return {"sha256": sha256, "have": 0}
            spooled = self._begin(name, user)
        spooled.touched = self.clock()
        if offset < spooled.have:
            self._compare(name, spooled, offset, piece)
        fresh = piece[max(0, spooled.have - offset) :] if offset <= spooled.have else b""
        self._refuse_excess(name, spooled, len(fresh))
        if fresh:
            self._write(name, spooled, fresh)
            spooled.digest.update(fresh)
            spooled.have += len(fresh)
        told = SentPiece(sha256=sha256, have=spooled.have)
        if spooled.digest.hexdigest() == sha256:
            told["size"] = spooled.have
        return told

    def _write(self, name: str, spooled: _SpooledFile, fresh: bytes) -> None:
        try:
            with spooled.path.open("ab") as file:
                file.write(fresh)
        except OSError as error:
            self._drop(name)
            if no_room(error):
                raise disk_full(error, spooled.path) from error
            raise ImageError(f"{spooled.path} cannot be written: {error}", remedy="Check the home's disk.") from error

    def _begin(self, name: str, user: str) -> _SpooledFile:
        self._make_room(user, 1, 0)
        path = self.folder / name
        path.unlink(missing_ok=True)
        self._files[name] = _SpooledFile(path, user, self.clock())
        return self._files[name]

    def _compare(self, name: str, spooled: _SpooledFile, offset: int, piece: bytes) -> None:
        """Compare a piece that came before with what is there; end the upload where it differs."""
        with spooled.path.open("rb") as file:
            file.seek(offset)
            there = file.read(len(piece))
        if not piece.startswith(there):
            self._drop(name)
            raise BriefError(
                "the pieces of the file do not agree", field="attachments", remedy="Send it again from its beginning."
            )

    def _refuse_excess(self, name: str, spooled: _SpooledFile, fresh: int) -> None:
        if spooled.have + fresh > self.each:
            self._drop(name)
            raise BriefError(
                f"the file has more than {self.each} bytes",
                field="attachments",
                remedy="Split the file, or raise attachment_bytes in batos.toml.",
            )
        self._make_room(spooled.user, 0, fresh)

    def _make_room(self, user: str, files: int, size: int) -> None:
        """Make room for more files and bytes of a user, in all and in the share of a guest. Raises: Busy."""
        self._clear(self._files, FILES - files, self.total - size)
        if is_guest(user):
            own = {name: each for name, each in self._files.items() if each.user == user}
            most, share = guest_share(FILES), max(self.each, guest_share(self.total))
            why = f"a guest sends at most {most} files of {share:,} bytes together"
            self._clear(own, most - files, share - size, why)

    def _clear(
        self, among: dict[str, _SpooledFile], most: int, size: int, why: str = "too much is being sent already"
    ) -> None:
        """Give up files that were left alone longest, until there are at most so many of them and so many bytes.

        Busy: none was left alone long enough for others not to wait for it; `why` tells it.
        """
        among = dict(among)
        while len(among) > most or sum(each.have for each in among.values()) > size:
            oldest = min(among, key=lambda name: among[name].touched, default=None)
            if oldest is None or among[oldest].touched > self.clock() - CROWDED:
                raise Busy(why, remedy="Send it again in a while, or fewer files with one question.")
            del among[oldest]
            self._drop(oldest)

    def _content(self, name: str) -> bytes | None:
        spooled = self._files.get(name)
        if spooled is None or spooled.digest.hexdigest() != name[:_DIGITS]:
            return None
        spooled.touched = self.clock()
        return spooled.path.read_bytes()

    def _tidy(self) -> None:
        """Remove what nobody went on with, and the first time what an earlier process left."""
        if not self._is_clean:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700, parents=True)
            self._is_clean = True
        old = self.clock() - PATIENCE
        for sha256 in [name for name, each in self._files.items() if each.touched < old]:
            self._drop(sha256)

    def _drop(self, name: str) -> None:
        spooled = self._files.pop(name, None)
        if spooled is not None:
            with suppress(OSError):  # it is gone, or something that is not ours is in its place
                spooled.path.unlink()


def sweep(home: Path) -> None:
    """Remove what processes that have ended left on its way in a home, each in a folder that has its number."""
    for folder in home.glob("uploads-*"):
        pid = folder.name.rpartition("-")[2]
        if pid.isdecimal() and addresses.birth_time(int(pid)) is None:
            shutil.rmtree(folder, ignore_errors=True)


def _name(sha256: str, user: str) -> str:
    """Return the name that a user's file is spooled under: another user's file of the same digest has another."""
    return f"{sha256}-{hashlib.sha256(user.encode()).hexdigest()}" if user else sha256


def _decode(data: str) -> bytes:
    try:
        piece = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise BriefError("the piece is not base64", field="args.data", remedy="Encode it with its padding.") from None
    if len(piece) > PIECE_BYTES:
        raise BriefError(
            f"a piece has at most {PIECE_BYTES} bytes", field="args.data", remedy="Send it in more pieces."
        )
    return piece
