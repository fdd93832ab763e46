"""The progress of remembering: a line that is drawn anew on a terminal, now and then a note elsewhere, or events."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from batos.terminal.console import Console, count_text, size

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
        """Tell a program what became of a document."""
        self._tell("remember.document", line)

    def tell_skipped(self, line: Mapping[str, object]) -> None:
        """Tell a program what was skipped."""
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
        """Tell a person what stands, as the work was stopped."""
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
