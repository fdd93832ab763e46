"""The process that reads files of strangers: it forks a child for each, which has limits and may die."""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from batos.memory.reading.file_formats import Format
from batos.memory.reading.read_text import Emit, NoText, NotReadable, Read, ReadText, UnreadPart, as_line

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
