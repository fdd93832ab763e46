"""Measures how whole files of 18 formats are read: what is found, what is told as left out, and what is false.

A file is read as `remember` reads it, in the process with limits. Phrases that must be found are sought in the title,
the speaker, the moment and the text of all that was read, where white space is one blank; words that must be told in
the phrases on what was left out and the reasons why a part could not be read, in any case of letters; what must not
appear, in the same place as what must be found. `found`, `told` and `false` are shares of all these phrases.

Without --data the files are made by reading_files_side.py, always the same; --write DIR writes them. --data DIR takes
other files of this form: `expected.jsonl` has a line for each with `file`, `format`, `found`, `told` and `absent`. A
list in place of a phrase means that one of its phrases is enough. A file with `refused` may also be refused whole, if
these words are told. `ended` counts files at which the reading process died, or had to be ended. --mixed MB reads files
of some megabytes as well, again and again until so many are read. `peak_mb` is the memory of the reading process.

    python bench/reading.py [--quick] [--data DIR] [--write DIR] [--mixed MB] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import TracebackType
from typing import Any, Final, Self, cast

from batos.memory.reading.file_texts import FileTexts, ReadingLimits
from batos.memory.reading.folder_files import FileReader, SkippedFile
from reading_case_side import GivenFile, Phrase, read_files, write_files
from reading_files_side import given_files, long_files
from report import Goal, report

FOUND, TOLD, FALSE, FALSE_OF_OTHERS = (0.98, 0.95), (1.0, 0.95), 0.0, 0.02
PEAK_MB: Final = 400
#: The longest text that `attachment_bytes` allows.
LIMITS: Final = ReadingLimits(text_bytes=16 * 2**20)
ENDED: Final = "its reader was ended"
#: Seconds between two looks at the memory of the process that reads a file, and ends with it.
LOOK: Final = 0.02


@dataclass(frozen=True, slots=True)
class FileReading:
    """The reading of one file: phrases that were missed, words that were not told, and phrases that are false."""

    given: GivenFile
    missed: Sequence[Phrase]
    untold: Sequence[Phrase]
    false: Sequence[str]
    refused: bool
    ended: bool
    seconds: float

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Return the numbers of phrases that were to be found, told and absent."""
        if self.refused:
            return 0, len(self.given.refused), len(self.given.absent)
        return len(self.given.found), len(self.given.told), len(self.given.absent)

    def as_row(self) -> dict[str, Any]:
        """Return what was wrong, by the name of the file."""
        wrong = {"missed": self.missed, "untold": self.untold, "false": self.false, "ended": self.ended}
        return {"file": self.given.file, **{key: value for key, value in wrong.items() if value}}


@dataclass(slots=True)
class Peak:
    """The largest memory that a process which reads had, each file having its own; None where none can be told."""

    megabytes: float | None = None
    _before: frozenset[int] = field(default_factory=lambda: frozenset(children()))
    _own: bytes = field(default_factory=lambda: command_line("self"))
    _done: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def __enter__(self) -> Self:
        """Begin to look."""
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Look no more."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Take the largest memory that each process had until now."""
        for child in children() - self._before:
            with suppress(OSError, StopIteration):  # it may just have ended
                if command_line(str(child)) != self._own:  # else it is about to begin, and has our memory
                    lines = Path(f"/proc/{child}/status").read_text(encoding="utf-8").splitlines()
                    kilobytes = int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
                    self.megabytes = max(self.megabytes or 0.0, round(kilobytes / 1024, 1))

    def _watch(self) -> None:
        while not self._done.wait(LOOK):
            self.look()


def command_line(process: str) -> bytes:
    """Return what a process was started with; nothing where the system does not tell."""
    path = Path(f"/proc/{process}/cmdline")
    return path.read_bytes() if path.exists() else b""


def children(parent: str = "self") -> set[int]:
    """Return the processes that a process began, and theirs; none where the system does not list them."""
    found: set[int] = set()
    for each in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # a thread or process may just have ended
            found |= {int(number) for number in each.read_text(encoding="ascii").split()}
    return found.union(*(children(str(each)) for each in found))


def stands(phrase: Phrase, text: str) -> bool:
    """Test if a phrase, or one of several, stands in a text, whatever the white space.

    >>> stands("two  words", "of two words"), stands(("a mast", "an oar"), "an oar"), stands("oars", "an oar")
    (True, True, False)
    """
    return any(plain(each) in text for each in ([phrase] if isinstance(phrase, str) else phrase))


def plain(text: str) -> str:
    """Return a text with one blank for each run of white space."""
    return " ".join(text.split())


def read(texts: FileTexts, path: Path, given: GivenFile) -> FileReading:
    """Read a file as `remember` does, and compare."""
    skipped: list[SkippedFile] = []
    reader = FileReader(LIMITS.text_bytes, texts, skipped.append)
    begun = time.perf_counter()
    got = [text for found in reader.find(path) for text in reader.read(found)]
    seconds = time.perf_counter() - begun
    about = [str(each.about.get(key, "")) for each in got for key in ("title", "speaker", "said_at")]
    text = plain("\n".join([*about, *(each.data.decode() for each in got)]))
    phrases = [phrase for each in got for phrase in cast("list[str]", each.about.get("left_out", []))]
    told = plain("\n".join(phrases + [f"{each.source.removeprefix(str(path))} {each.reason}" for each in skipped]))
    refused = not got and bool(given.refused)
    return FileReading(
        given,
        [] if refused else [each for each in given.found if not stands(each, text)],
        [each for each in (given.refused if refused else given.told) if not stands(fold(each), told.casefold())],
        [each for each in given.absent if stands(each, text)],
        refused,
        any(each.reason == ENDED for each in skipped),
        seconds,
    )


def fold(phrase: Phrase) -> Phrase:
    """Return a phrase, or several, without capital letters."""
    return phrase.casefold() if isinstance(phrase, str) else tuple(each.casefold() for each in phrase)


def figures(outcomes: Sequence[FileReading]) -> dict[str, Any]:
    """Return the shares of what was found, told and false; None where nothing was to be."""
    wrong = zip(*((len(each.missed), len(each.untold), len(each.false)) for each in outcomes), strict=True)
    numbers = zip(*(each.numbers for each in outcomes), strict=True)
    (missed, found), (untold, told), (false, absent) = zip(map(sum, wrong), map(sum, numbers), strict=True)
    return {
        "files": len(outcomes),
        "found": round(1 - missed / found, 4) if found else None,
        "told": round(1 - untold / told, 4) if told else None,
        "false": round(false / absent, 4) if absent else 0.0,
        "ended": sum(each.ended for each in outcomes),
    }


def measure(folder: Path, files: Sequence[GivenFile], mixed: int) -> dict[str, Any]:
    """Read the files of a folder, then so many megabytes of them and of long ones, and return the figures."""
    with FileTexts(LIMITS) as texts, Peak() as peak:
        outcomes = []
        for given in files:
            outcomes.append(read(texts, folder / given.file, given))
            peak.look()
            if wrong := outcomes[-1].as_row().keys() - {"file"}:
                print(f"{given.file}: {', '.join(sorted(wrong))}", file=sys.stderr)
        bytes_read = _mix(texts, mixed)
        peak.look()
    of: dict[str, list[FileReading]] = {}
    for each in outcomes:
        of.setdefault(each.given.format, []).append(each)
    return {
        **figures(outcomes),
        "formats": len(of),
        "by_format": {name: figures(some) for name, some in sorted(of.items())},
        "slowest_s": round(max(each.seconds for each in outcomes), 3),
        "slowest": max(outcomes, key=lambda each: each.seconds).given.file,
        "peak_mb": peak.megabytes,
        "mixed_mb": round(bytes_read / 2**20, 1),
        "wrong": [row for each in outcomes if len(row := each.as_row()) > 1],
    }


def _mix(texts: FileTexts, megabytes: int) -> int:
    done = 0
    with TemporaryDirectory() as name:
        files = list(long_files()) if megabytes else []
        write_files(Path(name), files)
        for given in cycle(files):
            if done >= megabytes * 2**20:
                break
            read(texts, Path(name, given.file), given)
            done += len(given.data)
    return done


def goals(document: Mapping[str, Any], others: bool) -> list[Goal]:
    """Return the goals, which are a little lower for files that somebody else wrote."""
    return [
        Goal("found", document["found"], FOUND[others], "at_least"),
        Goal("told", document["told"], TOLD[others], "at_least"),
        Goal("false", document["false"], FALSE_OF_OTHERS if others else FALSE),
        Goal("ended", document["ended"], 0),
        Goal("peak_mb", document["peak_mb"], PEAK_MB),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the files, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="DIR", help="the files of this folder, with their expected.jsonl")
    parser.add_argument("--write", type=Path, metavar="DIR", help="write the files to this folder, and read none")
    parser.add_argument("--mixed", type=int, default=0, metavar="MB", help="read so many megabytes of long files too")
    parser.add_argument("--quick", action="store_true", help="one file of each format")
    parser.add_argument("--json", type=Path, help="write the document to this file too")
    options = parser.parse_args(arguments)
    files = list(read_files(options.data) if options.data else given_files())
    if options.write:
        write_files(options.write, files)
        return 0
    if options.quick:
        files = list({each.format: each for each in reversed(files)}.values())[::-1]
    if not files:
        sys.exit(f"no files are listed in {options.data}")
    with TemporaryDirectory() as name:
        if not options.data:
            write_files(Path(name), files)
        document = measure(options.data or Path(name), files, options.mixed)
    report(document, goals(document, bool(options.data)), options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
