"""The surroundings of a command: its environment, streams and folder, and what it leaves to whoever ran it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from batos.terminal.console import Console


@dataclass(slots=True)
class Ending:
    """The things that a verb leaves to the command line: those to be undone at the end, and the console it wrote to."""

    until_end: ExitStack = field(default_factory=ExitStack)
    console: Console | None = None
    _log: Callable[[], AbstractContextManager[None]] | None = None

    def offer_log(self, log: Callable[[], AbstractContextManager[None]]) -> None:
        """Take the log of a verb, which is begun by whatever works in this process, and by no client of a server."""
        self._log = log

    def begin_log(self) -> None:
        """Begin the log, if there is one that was not begun."""
        log, self._log = self._log, None
        if log is not None:
            self.until_end.enter_context(log())


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment, streams and folder of a command, where they are not those of this process."""

    environ: Mapping[str, str]
    folder: Path
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Make them those of the process, which libraries read as well, and give the process its own back at the end.

        Enter one at a time: a process has one environment, one folder and one set of streams.
        """
        environ, stdin = dict(os.environ), sys.stdin
        with redirect_stdout(self.stdout), redirect_stderr(self.stderr), chdir(self.folder):
            try:
                sys.stdin = self.stdin
                _set_environment(self.environ)
                yield
            finally:
                sys.stdin = stdin
                _set_environment(environ)


def _set_environment(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)
