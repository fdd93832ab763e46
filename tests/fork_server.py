"""Processes that run `batos`, or a script of the tests, at once: forked from a server that has their modules."""

from __future__ import annotations

import io
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.context import ForkServerContext
from multiprocessing.reduction import DupFd
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import structlog
from tests.waiting import HANG

from batos.cli import entry

#: What verbs load when they are called, beside their own modules.
_ALSO = (
    "batos.cli.doors.in_process",
    "batos.cli.verbs.adapter_folder",
    "batos.cli.doctor.residency",
    "batos.cli.doctor.doctor",
    "batos.terminal.logs",
    "batos.cli.render.mission",
    "zodburi.resolvers",
    "ZODB.FileStorage.FileStorage",
    "tests.genesis.genesis_processes",
    "tests.image.missions",
    "tests.warm_start",
)


def forking() -> ForkServerContext:
    """Where the processes come from; the server starts with the first of them and ends with the tests."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *dict.fromkeys(module for module, _ in entry.VERBS.values()), *_ALSO])
    return context


class ForkedCommand:
    """A command under way, with what a test uses of `subprocess.Popen`; `inherits` are its stdin, stdout and stderr.

    Each is a file's number, or None for a pipe to this process, which is then an attribute. With a `script` that runs
    with the arguments, and not `batos`.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        *inherits: int | None,
        folder: str = "",
        script: Path | None = None,
    ) -> None:
        theirs, ours = list[int](), list[TextIO | None]()
        for number, inherited in enumerate(inherits):
            reads, writes = (None, None) if inherited is not None else os.pipe()
            own = writes if number == 0 else reads
            ours.append(None if own is None else os.fdopen(own, "r" if number else "w", encoding="utf-8"))
            given = inherited if inherited is not None else reads if number == 0 else writes
            assert given is not None
            theirs.append(given)
        self.stdin, self.stdout, self.stderr = ours
        context = forking()
        command = [str(script or "batos"), *arguments]
        given_to = _Streams(theirs), command, dict(environ), folder or str(Path.cwd())
        self._process = context.Process(target=_become, args=given_to, daemon=True)
        self._process.start()
        for given, inherited in zip(theirs, inherits, strict=True):
            if inherited is None:
                os.close(given)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        if raised is not None and self.poll() is None:
            self.kill()  # nobody stops it any more, and the failure is to be told now
        self.wait()

    @property
    def sentinel(self) -> int:
        """What `multiprocessing.connection.wait` waits for its end by."""
        return self._process.sentinel

    @property
    def returncode(self) -> int | None:
        """The exit code; the negative of the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self, timeout: float = HANG) -> int:
        """Wait for its end."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("batos", timeout)
        return self.returncode

    def communicate(self, given: str = "", timeout: float = HANG) -> tuple[str, str]:
        """Write `given` to its stdin, read what it says to its end, and wait for that.

        One that does not end is killed, and the error has what it said.
        """
        with ThreadPoolExecutor(2) as pool:
            said = [pool.submit(_rest, stream) for stream in (self.stdout, self.stderr)]
            if self.stdin is not None and not self.stdin.closed:
                self.stdin.write(given)
                self.stdin.close()
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired as late:
                self.kill()
                late.add_note("\n".join(each.result() for each in said))
                raise
            out, err = (each.result() for each in said)
        self._close()
        return out, err

    def told_until(self, word: str) -> str:
        """Read its stdout up to the line that holds a word. Where it ends before, its exit code and stderr are told."""
        assert self.stdout is not None
        told = ""
        for line in self.stdout:
            told += line
            if word in line:
                return told
        _, err = self.communicate()
        raise AssertionError(f"the process ended with {self.returncode} without {word!r}: {told}\n{err}")

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()


def _rest(stream: TextIO | None) -> str:
    return "" if stream is None or stream.closed else stream.read()


class _Streams:
    """Files of this process on their way to one that is about to be forked."""

    def __init__(self, numbers: Sequence[int]) -> None:
        self.numbers = list(numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, tuple(DupFd(number) for number in self.numbers)


def _received(*sent: Any) -> _Streams:
    return _Streams([each.detach() for each in sent])


def log_to_stderr() -> None:
    """Keep what is logged apart from what a script says on its stdout: lines of two threads fall into each other."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))


def _become(streams: _Streams, command: list[str], environ: dict[str, str], folder: str) -> None:
    """Run the verb or the script, in the forked process, as one that was started for it does."""
    for target, given in enumerate(streams.numbers):
        os.dup2(given, target)
        os.close(given)
    # The suite may run under nohup, which every process that it starts would inherit.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    sys.argv = command
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        buffered: Any = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        errors = ("strict", "strict", "backslashreplace")[number]
        setattr(sys, name, io.TextIOWrapper(buffered, "utf-8", errors, line_buffering=number == 2))
    if command[0] == "batos":
        entry.main(command[1:])
    else:
        log_to_stderr()
        runpy.run_path(command[0], run_name="__main__")
