"""Reads the texts of files in a process of its own, which may hang or die without harm to this one."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Final, Self, TypeVar

from batos.memory.reading.file_formats import Format
from batos.memory.reading.read_text import Read, ReadText, UnreadPart, from_line
from batos.memory.reading.reading_process import READERS

T = TypeVar("T")

#: Beside the seconds of a reader, those until its process is ended from outside.
_GRACE: Final = 10
_PIECE: Final = 2**16
#: The texts of a file that is given as bytes are together at most as long as so many of the longest.
_TEXTS: Final = 4
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]);"
    " from batos.memory.reading.reading_process import main; main()"
)
_ENVIRONMENT: Final = ("LANG", "LC_ALL", "PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """The most that reading a file may take: bytes of a text, bytes of memory, and seconds between two texts."""

    text_bytes: int
    memory: int = 2**30
    seconds: int = 60


@dataclass(slots=True)
class FileTexts:
    """Reads files one after the other; a thread at a time. Its process begins with the first file."""

    limits: ReadingLimits
    _process: subprocess.Popen[bytes] | None = None
    _held: bytearray = field(default_factory=bytearray)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        self.close()

    def read(self, path: Path, format_: Format) -> Generator[Read]:
        """Yield the texts of a file, and what of it could not be read with the reason; never raises for a file."""
        done = False
        try:
            self._ask(path, format_)
            while not done:
                line = self._line()
                if line is None:
                    yield UnreadPart("", "its reader was ended")
                    return
                found = from_line(line) if line.strip() else None
                if isinstance(found, str):
                    done = True
                    if found:
                        yield UnreadPart("", found)
                elif found is not None:
                    yield found
        finally:
            if not done:
                self.close()

    def read_bytes(self, name: str, data: bytes, format_: Format | str) -> tuple[list[ReadText], list[UnreadPart]]:
        """Return the texts of a file that is given as bytes, and what of it could not be read; never none of both."""
        if format_ not in READERS:
            return [], [UnreadPart("", format_)]
        suffix = PurePath(name).suffix
        with NamedTemporaryFile(suffix=suffix if suffix.isalnum() or suffix[1:].isalnum() else "") as file:
            file.write(data)
            file.flush()
            read = list(self._cap(self.read(Path(file.name), format_)))
        own = PurePath(file.name).name
        unread = [replace(each, reason=each.reason.replace(own, name)) for each in read if isinstance(each, UnreadPart)]
        texts = [each for each in read if isinstance(each, ReadText)]
        return texts, unread if texts or unread else [UnreadPart("", "it has no text")]

    def _cap(self, reads: Generator[Read]) -> Iterator[Read]:
        """Yield what is read, as long as all of it together is not far longer than one text may be."""
        left = _TEXTS * self.limits.text_bytes
        with closing(reads):
            for each in reads:
                left -= len(each.text.encode("utf-8", "replace")) if isinstance(each, ReadText) else 0
                if left < 0:
                    yield UnreadPart("", "its texts are too long together")
                    return
                yield each

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run what reads in a thread. A cancellation ends what is being read, and waits for the thread."""
        running = asyncio.ensure_future(asyncio.to_thread(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self.kill()
            await asyncio.wait([running])
            raise

    def kill(self) -> None:
        """End what is being read, from another thread: the one that reads is told so."""
        process = self._process
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and what it began."""
        self.kill()
        process, self._process = self._process, None
        self._held.clear()
        if process is None:
            return
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not handed over goes nowhere
                    pipe.close()

    def _ask(self, path: Path, format_: Format) -> None:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = _start()
        asked = {"path": os.fsdecode(path.absolute()), "format": format_, **asdict(self.limits)}
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):  # then there is no answer either
                self._process.stdin.write(json.dumps(asked).encode() + b"\n")
                self._process.stdin.flush()

    def _line(self) -> bytes | None:
        """Return the next line; None where the process ended or must be ended."""
        until = time.monotonic() + self.limits.seconds + _GRACE
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0:
            searched = len(self._held)
            if searched > 8 * self.limits.text_bytes + _PIECE or not self._fill(until):
                return None
        line = bytes(self._held[:end])
        del self._held[: end + 1]
        return line

    def _fill(self, until: float) -> bool:
        process = self._process
        if process is None or process.stdout is None:
            return False
        number = process.stdout.fileno()
        ready, _, _ = select.select([number], [], [], max(0.0, until - time.monotonic()))
        data = os.read(number, _PIECE) if ready else b""
        self._held += data
        return bool(data)


def _start() -> subprocess.Popen[bytes]:
    """Start the process: with the paths of modules of this one, in a session that no terminal's keys reach."""
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        start_new_session=True,
    )
