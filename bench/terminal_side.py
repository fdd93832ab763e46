"""A terminal for what is measured or recorded: a process on a pty of a fixed size, when it wrote, what then stands."""

from __future__ import annotations

import codecs
import os
import pty
import re
import selectors
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

COLUMNS, ROWS = 80, 24
_CODE: Final = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
_PLAIN: Final = ""
_TICK: Final = 0.02  # seconds between two looks whether the process has ended


@dataclass(slots=True)
class Screen:
    """Shows a terminal of so many columns: lines of (character, style); a style is the digits of its SGR codes."""

    columns: int = COLUMNS
    lines: list[list[tuple[str, str]]] = field(default_factory=lambda: [[]])
    row: int = 0
    column: int = 0
    style: str = _PLAIN
    _rest: str = ""

    def feed(self, text: str) -> None:
        """Take what was written: characters, ends of lines, and the codes that move, erase and style."""
        text, at = self._rest + text, 0
        self._rest = ""
        while at < len(text):
            if text[at] == "\x1b":
                code = _CODE.match(text, at)
                if code is None:
                    self._rest = text[at:]
                    return
                self._code(code[1], code[2])
                at = code.end()
                continue
            self._sign(text[at])
            at += 1

    @property
    def text(self) -> list[str]:
        """Return the lines as plain text, without blanks at their ends."""
        return ["".join(sign for sign, _ in line).rstrip() for line in self.lines]

    def _sign(self, sign: str) -> None:
        if sign == "\n":
            self._to(self.row + 1, self.column)
        elif sign == "\r":
            self.column = 0
        elif sign >= " ":
            if self.column >= self.columns:
                self._to(self.row + 1, 0)
            line = self.lines[self.row]
            line.extend((" ", _PLAIN) for _ in range(self.column - len(line)))
            line[self.column : self.column + 1] = [(sign, self.style)]
            self.column += 1

    def _to(self, row: int, column: int) -> None:
        self.row, self.column = max(0, row), column
        while len(self.lines) <= self.row:
            self.lines.append([])

    def _code(self, numbers: str, kind: str) -> None:
        many = int(numbers) if numbers.isdigit() else 0
        if kind == "m":
            self.style = _PLAIN if numbers in ("", "0") else f"{self.style} {numbers}".strip()
        elif kind in "AB":
            self._to(self.row + (max(many, 1) if kind == "B" else -max(many, 1)), self.column)
        elif kind == "G":
            self.column = max(many, 1) - 1
        elif kind in "JK":
            del self.lines[self.row][0 if many == 2 else self.column :]
            if kind == "J":
                del self.lines[self.row + 1 :]


@dataclass(slots=True)
class TerminalRun:
    """A process that came to its end: both of its terminals, and seconds since it was started."""

    code: int
    seconds: float
    out: Screen
    err: Screen
    #: When the first character that is seen was written to its standard output; None if none was.
    first_s: float | None
    #: Everything that was written: seconds, and the text.
    written: list[tuple[float, str]]


def on_a_terminal(
    command: Sequence[str | Path], environ: Mapping[str, str], columns: int = COLUMNS, *, together: bool = False
) -> TerminalRun:
    """Run a command as a person does, to its end; `together` puts errors on the terminal of the output."""
    masters, slaves = zip(*(_terminal(columns) for _ in range(1 if together else 2)), strict=True)
    began = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in command],
        stdin=slaves[0],
        stdout=slaves[0],
        stderr=slaves[-1],
        env={**environ, "TERM": "xterm-256color", "COLUMNS": str(columns)},
        start_new_session=True,
    ) as process:
        for slave in slaves:
            os.close(slave)
        return _read_output(process, masters, columns, began)


def _terminal(columns: int) -> tuple[int, int]:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (ROWS, columns))
    return master, slave


def _read_output(process: subprocess.Popen[bytes], masters: Sequence[int], columns: int, began: float) -> TerminalRun:
    """Return what is written until the process has ended; one that it leaves behind is not waited for."""
    screens = {master: Screen(columns) for master in masters}
    decoders = {master: codecs.getincrementaldecoder("utf-8")("replace") for master in masters}
    ran = TerminalRun(0, 0.0, screens[masters[0]], screens[masters[-1]], None, [])
    with selectors.DefaultSelector() as waiting:
        for master in masters:
            waiting.register(master, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(_TICK)
            if process.poll() is not None and not ran.seconds:
                ran.code, ran.seconds = process.returncode, time.perf_counter() - began
            if ran.seconds and not ready:
                break
            for key, _ in ready:
                try:
                    data = os.read(key.fd, 65536)
                except OSError:  # Linux says so of a terminal that nobody holds
                    data = b""
                if not data:
                    waiting.unregister(key.fd)
                    continue
                # Output that is read after its end was written before it.
                text, at = decoders[key.fd].decode(data), ran.seconds or time.perf_counter() - began
                screens[key.fd].feed(text)
                ran.written.append((at, text))
                if key.fd == masters[0] and ran.first_s is None and any(ran.out.text):
                    ran.first_s = at
    for master in masters:
        os.close(master)
    ran.code = process.wait()
    ran.seconds = ran.seconds or time.perf_counter() - began
    return ran
