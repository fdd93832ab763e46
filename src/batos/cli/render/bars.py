"""Progress of several steps at once: a line for each, which a terminal redraws and other outputs get as they change."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from batos.protocol.event_payloads import ERASURE_STEP, GENESIS_STEP, ErasureStep, GenesisStep
from batos.terminal.console import Console, duration_text, size

#: Seconds between two drawings: more often nobody sees, and each is a write.
PACE = 0.1
#: Seconds over which the rate is measured: what a line gave lately, not what it gave at its best.
_WINDOW = 5.0
#: Seconds before a rate means something: the first lines of a pull come in one burst.
_SOON = 0.3
_WIDTH = 20
_LAYER = re.compile(r"pulling [0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Growth:
    """A step's progress, as the event `genesis.step` says; sizes in bytes, None where nothing is counted."""

    step: str
    status: str
    completed: int | None = None
    total: int | None = None


@dataclass(slots=True)
class Bar:
    """A step that grows. `samples` are (time, bytes) of the last seconds, the oldest first."""

    name: str
    status: str = ""
    completed: int | None = None
    total: int | None = None
    samples: list[tuple[float, int]] = field(default_factory=list)

    def update(self, progress: Growth, now: float) -> None:
        """Take in how far the step is now."""
        self.status, self.total = progress.status, progress.total or self.total
        if progress.completed is None:
            return
        if self.completed is None or progress.completed < self.completed:
            self.samples.clear()  # the first bytes were there before: they say nothing of the rate
        self.completed = progress.completed
        if not self.samples or now > self.samples[-1][0]:
            self.samples.append((now, progress.completed))
        while len(self.samples) > 2 and self.samples[1][0] <= now - _WINDOW:
            del self.samples[0]

    @property
    def rate(self) -> float | None:
        """Return the bytes a second of the last seconds; None before there is something to measure."""
        if len(self.samples) < 2:
            return None
        (begun, before), (now, after) = self.samples[0], self.samples[-1]
        return (after - before) / (now - begun) if now - begun >= _SOON else None

    @property
    def tenths(self) -> int:
        """Count the tenths that are there; lines that stand are told at each."""
        return 10 * (self.completed or 0) // self.total if self.total else 0

    def line(self, width: int | None = None, wide: int = 0) -> str:
        """Draw `pull llama3.1:8b  [#####...............]  1.2 of 4.6 GiB, 40.1 MiB/s, 1 min 27 s left`.

        With less than `width` columns the bar becomes shorter, then the rate goes, then the bar. `wide` columns are
        kept for the name, so that several bars stand below each other.
        """
        name = self.name.ljust(wide)
        if not self.total or self.completed is None:
            return f"{name}  {self.status}"
        share = f"{100 * min(self.completed, self.total) // self.total:3} %"
        told, rate, left = self._amounts(self.total, self.completed)
        ways = [
            f"{name}  {self._bar_text(_WIDTH)}  {told}{rate}{left}",
            f"{name}  {self._bar_text(_WIDTH // 2)}  {told}{rate}{left}",
            f"{name}  {self._bar_text(_WIDTH // 2)}  {told}{left}",
            f"{name}  {share}  {told}{left}",
            f"{name}  {share}{left}",
            f"{share}{left}  {self.name}",
        ]
        return ways[0] if width is None else next((way for way in ways if len(way) <= width), ways[-1])

    def _bar_text(self, columns: int) -> str:
        filled = min(columns, columns * (self.completed or 0) // (self.total or 1))
        return f"[{'#' * filled}{'.' * (columns - filled)}]"

    def _amounts(self, total: int, completed: int) -> tuple[str, str, str]:
        """Return the bytes, the rate and the time that is left, the last two with a comma before them or empty."""
        if completed >= total:
            return size(total), "", ""
        told, rate = f"{size(completed)} of {size(total)}", self.rate
        if rate is None:
            return told, "", ""
        if rate <= 0:
            return told, "", ", standing still"
        return told, f", {size(rate)}/s", f", {duration_text((total - completed) / rate)} left"


class Bars:
    """Hears the progress of steps and tells it: to people as bars or lines, to a program as events."""

    def __init__(self, console: Console, *, quiet: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._quiet = quiet
        self._clock = clock
        self._bars: dict[str, Bar] = {}
        self._told: dict[str, str] = {}
        self._drawn = float("-inf")

    def on_event(self, event: str, keys: Mapping[str, object]) -> None:
        """Take in an event; only those of genesis and of an erasure are shown here."""
        if event not in (GENESIS_STEP.name, ERASURE_STEP.name) or self._quiet:
            return
        if self._console.as_json:
            self._console.event(event, keys)
        elif event == ERASURE_STEP.name:
            erased = cast("ErasureStep", keys)
            self.show_progress(Growth("erase", erased["phase"], erased["completed"], erased["total"]))
        else:
            made = cast("GenesisStep", keys)
            self.show_progress(Growth(made["step"], made["status"], made.get("completed"), made.get("total")))

    def show_progress(self, progress: Growth) -> None:
        """Show a person how far a step is."""
        if progress.total is not None and progress.status != "success":
            self._grow(progress)
        if _is_news(progress.status) and self._told.get(progress.step) != progress.status:
            self._told[progress.step] = progress.status
            if progress.status == "success":
                self._bars.pop(progress.step, None)
            self._console.redraw([])
            self._console.say(f"  {progress.step}: {_status_text(progress)}", dim=True)
            self._draw()

    def _draw(self) -> None:
        wide = max(map(len, self._bars), default=0)
        self._console.redraw([each.line(self._console.width, wide) for each in self._bars.values()])

    def _grow(self, progress: Growth) -> None:
        bar, now = self._bars.setdefault(progress.step, Bar(progress.step)), self._clock()
        tenths = bar.tenths
        bar.update(progress, now)
        if self._console.has_colour:
            if now - self._drawn >= PACE:
                self._drawn = now
                self._draw()
        elif bar.tenths > tenths:
            self._console.say(f"  {bar.line()}")

    def close(self) -> None:
        """Take the bars away: what happened stands in lines."""
        self._bars.clear()
        self._console.redraw([])


def _is_news(status: str) -> bool:
    """Test if people are told: not of every layer that is named by its digest, nor of what is over at once."""
    return "layer" not in status and status != "writing manifest" and _LAYER.fullmatch(status) is None


def _status_text(progress: Growth) -> str:
    if progress.status == "success":
        return f"done, {size(progress.total)}" if progress.total else "done"
    return progress.status
