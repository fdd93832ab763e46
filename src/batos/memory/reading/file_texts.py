"""Reads the texts of files in a process of its own, which may hang or die without harm to the one that asks."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from batos.memory.reading.read_text import (
    Emit,
    Format,
    NoText,
    NotReadable,
    Read,
    ReadText,
    UnreadPart,
    as_line,
    from_line,
)

#: The module and the function that reads a format.
READERS: Final[dict[Format, tuple[str, str]]] = {
    "other_text": ("other_text", "read"),
    "html": ("web_pages", "read"),
    "pdf": ("pdfs", "read"),
    "mail": ("mails", "read"),
    "mbox": ("mails", "read_box"),
    "chats": ("chats", "read"),
    "llm_logs": ("llm_logs", "read"),
    "archive": ("packed_texts", "read_archive"),
    "notebook": ("packed_texts", "read_notebook"),
    "cards": ("packed_texts", "read_cards"),
}
#: All that a child writes, beside so many times the bytes of its file.
_OUTPUT: Final = 64 * 2**20
_OUTPUT_FACTOR: Final = 32
#: Bytes of a file for each of which its reader has, in all, the seconds between two texts.
_TIMED_BYTES: Final = 4 * 2**20
_PACKAGE: Final = "batos.memory.reading"


def main() -> None:
    """Answer requests, a line of JSON each, with the texts of a file and a line that ends them."""
    for line in sys.stdin.buffer:
        asked: dict[str, Any] = json.loads(line)
        reader, name = READERS[asked["format"]]
        read = getattr(importlib.import_module(f"{_PACKAGE}.{reader}"), name)  # before the fork: once for all
        child = os.fork()
        if not child:
            os._exit(_read(asked, read))
        _, status = os.waitpid(child, 0)
        # A child that was ended may have left the beginning of a line.
        _write(b"\n" + json.dumps({"end": _ending(status, asked)}).encode() + b"\n")


def _read(asked: dict[str, Any], read: Any) -> int:
    """Read a file in the child; return the exit code."""
    try:
        path = Path(asked["path"])
        size = path.stat().st_size
        _limit(asked, size)
        emit = _emitter(asked, _OUTPUT + _OUTPUT_FACTOR * size)
        signal.alarm(asked["seconds"])
        read(path, emit)
    except NotReadable as error:
        _write(as_line(UnreadPart("", str(error), not isinstance(error, NoText))))
    except OSError as error:
        _write(as_line(UnreadPart("", error.strerror or "it cannot be read")))
    except MemoryError:
        _write(as_line(UnreadPart("", _too_large(asked))))
    except RecursionError:
        _write(as_line(UnreadPart("", "it is nested too deep")))
    except Exception as error:  # a parser may raise anything on a file that somebody made up
        _write(as_line(UnreadPart("", f"it is damaged ({type(error).__name__})")))
    return 0


def _limit(asked: dict[str, Any], size: int) -> None:
    """Take from the child what reading needs not: long times, much memory, other processes, files to write."""
    seconds = asked["seconds"]
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
        signal.signal(signum, signal.SIG_DFL)
    limits = {
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_NOFILE: (32, 32),
        resource.RLIMIT_AS: (asked["memory"], asked["memory"]),
        resource.RLIMIT_NPROC: (0, 0),
        resource.RLIMIT_CPU: (seconds, seconds * (1 + size // _TIMED_BYTES) + 1),
    }
    for what, most in limits.items():
        with suppress(OSError, ValueError):  # a system that lacks one has the others
            resource.setrlimit(what, most)


def _emitter(asked: dict[str, Any], most: int) -> Emit:
    """Return the function that hands on what is read, within the limits; the time runs anew after each."""
    left = most
    places: Counter[str] = Counter()

    def emit(read: Read) -> None:
        nonlocal left
        if isinstance(read, ReadText):
            if len(read.text.encode("utf-8", "replace")) > asked["text_bytes"]:
                read = UnreadPart(read.place, f"its text has more than {asked['text_bytes']} bytes")
            elif read.place:  # a mail with the id of another one must not take its place
                read = replace(read, place=_own_place(read.place, places))
        line = as_line(read)
        left -= len(line)
        if left < 0:
            raise NotReadable("it unpacks to far more than its own size")
        signal.alarm(0)  # whoever takes it may be slow
        _write(line)
        _allow(asked["seconds"])
        signal.alarm(asked["seconds"])

    return emit


def _own_place(place: str, places: Counter[str]) -> str:
    """Return a place that no text before has: an id with a number may be another's whole id."""
    own = place
    while own in places:
        places[place] += 1
        own = f"{place}~{places[place]}"
    places[own] = 1
    return own


def _allow(seconds: int) -> None:
    """Let the child compute for so many seconds from now on, as far as its file may take in all."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    with suppress(OSError, ValueError):  # the time on the clock is limited as well
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        soft = int(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (soft if most == resource.RLIM_INFINITY else min(soft, most), most))


def _ending(status: int, asked: dict[str, Any]) -> str:
    """Return the reason for which a child ended before it was done; "" where it was done."""
    if not os.WIFSIGNALED(status):
        return "" if os.waitstatus_to_exitcode(status) == 0 else "its reader failed"
    number = os.WTERMSIG(status)
    if number in {signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL}:
        return f"reading it took longer than {asked['seconds']} s"
    if number == signal.SIGABRT:
        return _too_large(asked)
    return f"its reader crashed ({signal.Signals(number).name})"


def _too_large(asked: dict[str, Any]) -> str:
    return f"reading it takes more than {asked['memory'] >> 20} MiB of memory"


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


T = TypeVar("T")

#: Beside the seconds of a reader, those until its process is ended from outside.
_GRACE: Final = 10
_PIECE: Final = 2**16
#: The texts of a file that is given as bytes are together at most as long as so many of the longest.
_TEXTS: Final = 4
_START: Final = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from batos.memory.reading.file_texts import main; main()"
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
    #: Nobody waits for what is read any more: no process is started.
    _is_left: bool = False
    _starting: threading.Lock = field(default_factory=threading.Lock)

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
            with self._starting:  # one that starts just now is ended when it is known
                self._is_left = True
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
            with self._starting:
                if self._is_left:
                    return
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
