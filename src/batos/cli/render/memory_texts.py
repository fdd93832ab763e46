"""The texts on what is remembered: what became of files, what was found, and the progress of remembering."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from batos.memory.text_units import head_within
from batos.terminal.console import Console, count_text, local_time, size, title_with_path
from batos.terminal.layout import plain, wrap
from batos.verbs.memory_verbs import standing_text

#: Files that were skipped and are told one by one.
_TOLD: Final = 10
#: Characters of a part in a list.
_GLANCE: Final = 300


def remembered_text(found: Mapping[str, Any]) -> str:
    """Tell what became of each document, in numbers where there are many."""
    lines, counts = found["remembered"], found["counts"]
    told = [f"{counts[state]:,} {state}" for state in ("new", "replaced", "known") if counts[state]]
    parts = "1 part" if counts["parts"] == 1 else f"{counts['parts']:,} parts"
    text = [f"Remembered: {', '.join(told) or 'nothing'}; {parts} added."]
    if len(lines) == 1 and not found["more"]["remembered"]:
        text = [f"{_STATES[lines[0]['state']]}: {plain(lines[0]['title'])} ({lines[0]['document']})."]
    text += _read_in_part(lines)
    superseded = [name for each in lines for name in each.get("superseded", ())]
    flagged = [name for each in lines for name in each.get("flagged", ())]
    aside = [each for each in lines if each.get("standing", "current") in ("edited", "retracted")]
    for standing, why in (("retracted", "retracted"), ("edited", "edited by hand since")):
        if named := [each["document"] for each in aside if each["standing"] == standing]:
            shown = ", ".join(named[:_TOLD]) + (f" and {len(named) - _TOLD} more" if len(named) > _TOLD else "")
            text.append(
                f"Known and {why}, so that it is not recalled: {shown}. `batos memories restore ID` changes that."
            )
    if superseded:
        text.append(f"Superseded: {', '.join(map(plain, superseded))}. It stays as history: `batos recall --history`.")
    if flagged:
        text.append(f"Marked, since they no longer hold as they stand: {', '.join(map(plain, flagged))}.")
    if missing := found.get("not_found"):
        text.append(f"No current fact is {plain(missing[0])}: nothing was superseded by that name.")
    skipped = found["skipped"]
    text += [f"Skipped {plain(each['source'])}: {plain(each['reason'])}." for each in skipped[:_TOLD]]
    if counts["skipped"] > _TOLD:
        text.append(f"And {count_text(counts['skipped'] - _TOLD, 'more file')} skipped; --json lists them.")
    left_out = [f"{count} {why}" for why, count in found["left_out"].items()]
    if left_out:
        text.append(f"Left out: {', '.join(left_out)}. --all takes them too.")
    vectors = found.get("vectors") or {}
    if vectors.get("reason") and vectors["missing"]:
        missing = count_text(vectors["missing"], "part")
        text.append(f"{missing} found by words alone, until there are vectors: {plain(vectors['reason'])}.")
    return "\n".join(text)


def _read_in_part(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each document of whose file not all could be read."""
    found = [each for each in lines if each.get("left_out")]
    for each in found[:_TOLD]:
        yield f"Read in part: {plain(each['title'])}: {plain('; '.join(each['left_out']))}."
    if len(found) > _TOLD:
        yield f"And {count_text(len(found) - _TOLD, 'more document')} read in part; --json lists them."


_STATES: Final = {"new": "Remembered", "replaced": "Remembered in the place of its older content", "known": "Known"}


def recalled_text(found: Mapping[str, Any], filters: Sequence[str] = ()) -> str:
    """Show each part that was found: where it stands, how well it matches and why, and its words.

    `filters` are the options by which less was looked for.
    """
    if not found["recalled"]:
        without = f"; {', '.join(filters)} left out the rest" if filters else ""
        return f"Nothing that is remembered has a word of it{without}."
    blocks = []
    for each in found["recalled"]:
        trust = "" if each["trust"] == "user" else f", {each['trust']}"
        standing = "" if each["standing"] == "current" else f", {standing_text(each)}"
        standing += f" in {each['summarised_by']}" if each.get("summarised_by") else ""
        place = f"{each['document']}, {local_time(each['at'])}{trust}{standing}"
        head = plain(title_with_path(each["title"], each["source"]))
        lines = [head, wrap(f"[{place}; {plain(each['why'])}]"), _glance(each["heading"], each["text"])]
        if path := each["path"]:
            lines.append(wrap(f'reached from {plain(path["title"])}: "{plain(" ".join(path["sentence"].split()))}"'))
        blocks.append("\n".join(lines))
    shown = len(found["recalled"])
    tail = (
        [] if shown >= found["of"] else [f"{shown} of {count_text(found['of'], 'part')} that match; --all shows all."]
    )
    note = [f"Found {plain(found['note'])}."] if found.get("note") else []
    return "\n\n".join([*blocks, *tail, *note])


def _glance(heading: str, text: str) -> str:
    """Return the beginning of a part, line by line, below the head of the table that it is of."""
    lines = [*head_within(heading).splitlines(), *text.splitlines()]
    words = "\n".join(line.rstrip() for line in lines if line.strip())
    words = words if len(words) <= _GLANCE else f"{words[:_GLANCE]}…"
    return "\n".join(map(wrap, words.splitlines()))


_WIDTH: Final = 24
#: Seconds between two drawings on a terminal, and between two notes or events elsewhere.
_PAUSE: Final = 0.1
_LONG_PAUSE: Final = 10.0
_EVENT_PAUSE: Final = 1.0


class RememberProgress:
    """Tells how many files and bytes are done, how fast, and how many there are; then how many parts have no vector."""

    def __init__(self, console: Console, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._begun = self._told = clock()
        self._files = self._bytes = 0
        self._of_files = self._of_bytes = 0
        self._missing = 0

    def expect(self, files: int, size_: int) -> None:
        """Take how much there is to do."""
        self._of_files, self._of_bytes = files, size_
        if self._console.as_json:
            self._tell("remember.progress", self.keys())
        else:
            self._draw(self.line())

    def advance(self, files: int, size_: int) -> None:
        """Count files that are done, with their bytes."""
        self._files += files
        self._bytes += size_
        if self._is_due() and self._of_files > 1:
            self._tell("remember.progress", self.keys())
            self._draw(self.line())

    def tell_document(self, line: Mapping[str, object]) -> None:
        """Write for a program what became of a document."""
        self._tell("remember.document", line)

    def tell_skipped(self, line: Mapping[str, object]) -> None:
        """Write for a program what was skipped."""
        self._tell("remember.skipped", line)

    def tell_missing(self, missing: int) -> None:
        """Take how many parts have no vector yet."""
        self._missing = max(missing, self._missing)
        if self._is_due():
            done = self._missing - missing
            self._tell("remember.vectors", {"missing": missing})
            self._draw(f"{_bar(done, self._missing)} {done:,} of {self._missing:,} new parts have a vector")

    def keys(self) -> dict[str, int]:
        """Return the figures."""
        return {
            "files": self._files,
            "bytes": self._bytes,
            "of_files": self._of_files,
            "of_bytes": self._of_bytes,
            "bytes_per_second": round(self._bytes / max(self._clock() - self._begun, 0.001)),
        }

    def line(self) -> str:
        """Return the line for people."""
        rate = size(self.keys()["bytes_per_second"])
        of_files = max(self._files, self._of_files)  # files may come while it goes
        return (
            f"{_bar(self._bytes, self._of_bytes)} {self._files:,} of {of_files:,} files,"
            f" {size(self._bytes)} of {size(max(self._bytes, self._of_bytes))}, {rate}/s"
        )

    def tell_interruption(self) -> None:
        """Write for a person what stands, as the work was stopped."""
        if not self._quiet:
            done = count_text(self._files, "file")
            self._console.say(f"Stopped: {done} done. The same command goes on from there.", dim=True)

    def _is_due(self) -> bool:
        now, console = self._clock(), self._console
        pause = _EVENT_PAUSE if console.as_json else _PAUSE if console.has_colour else _LONG_PAUSE
        if now - self._told < pause:
            return False
        self._told = now
        return True

    def _tell(self, event: str, keys: Mapping[str, object]) -> None:
        if self._console.as_json and not self._quiet:
            self._console.event(event, keys)

    def _draw(self, line: str) -> None:
        if self._quiet or self._console.as_json:
            return
        if self._console.has_colour:
            self._console.redraw([line])
        elif self._files or self._missing:
            self._console.say(line, dim=True)


def _bar(done: int, whole: int) -> str:
    return f"[{'#' * round(min(1.0, done / whole if whole else 0.0) * _WIDTH):<{_WIDTH}}]"
