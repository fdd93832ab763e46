"""The verb chat at a terminal: keys, what is piped before it, and a second shell beside it."""

from __future__ import annotations

import os
import pty
import select
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.cli.processes import BATOS, User
from tests.waiting import HANG, wait_until

from batos.client import server_life

REFLEX = ("chat", "--effort", "reflex")


class Terminal:
    """`batos chat` at a terminal of its own."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd
        self.seen = ""

    def type(self, text: str) -> None:
        """Keys that a person presses."""
        os.write(self._fd, text.encode())

    def expect(self, text: str) -> str:
        """Wait until it is shown; what was shown up to there."""
        wait_until(lambda: self._shows(text), f"{text!r} at the terminal, which shows {self.seen!r},")
        before, _, self.seen = self.seen.partition(text)
        return before

    def press(self, key: str, text: str) -> None:
        """Press a key until something is shown, once in two seconds: readline misses a signal just before it waits."""
        for _ in range(round(HANG / 2)):
            self.type(key)
            if self._shows(text, 2):
                break
        self.expect(text)

    def _shows(self, text: str, seconds: float = 1) -> bool:
        """Read what comes within some seconds, until a text is there; a program that has ended shows no more."""
        while text not in self.seen and select.select([self._fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self._fd, 65_536).decode(errors="replace")
            except OSError as error:  # Linux says so when the other side is closed
                raise AssertionError(f"it ended with {self.code()} without {text!r}: {self.seen!r}") from error
        return text in self.seen

    def code(self) -> int:
        """Its exit code."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def terminal(user: User, *arguments: str, batos: Sequence[str] = BATOS, server: str = "never") -> Iterator[Terminal]:
    """The chat with its terminal; it is ended if the test did not."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe(batos[0], [*batos, *arguments], {**user.environ(), "TERM": "xterm", "BATOS_SERVER": server})
    try:
        yield Terminal(pid, fd)
    finally:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it has ended
        os.close(fd)


@contextmanager
def stopping(user: User) -> Iterator[None]:
    """The server that a verb starts meanwhile is stopped at the end."""
    try:
        yield
    finally:
        server_life.stop(user.home)


def test_at_a_terminal_lines_are_edited_and_remembered(user: User) -> None:
    """Ctrl-C clears the line, a paste is one message, Ctrl-D leaves, and the history is its owner's alone."""
    with terminal(user, *REFLEX) as shown:
        shown.expect("you> ")
        shown.type("half of it")
        shown.expect("half of it")
        shown.press("\x03", "you> ")
        shown.type("first\nsecond\n")
        shown.expect("1 call")
        shown.expect("you> ")
        shown.type("/history\n")
        assert "1 turn" in shown.expect("second")
        shown.expect("you> ")
        shown.type("\x04")
        shown.expect("Go on with: batos chat --conversation c-")
        assert shown.code() == 0
    kept = user.home / "chat_history"
    assert "/history" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_document_is_piped_and_questions_are_typed(user: User) -> None:
    """With --file - stdin is read to its end; what follows comes from the terminal."""
    piped = ("sh", "-c", 'printf "The master is Zoe Quill." | "$@"', "sh", *BATOS)
    with terminal(user, *REFLEX, "--file", "-", batos=piped) as shown:
        shown.expect("you> ")
        shown.type("Who is the master?\n")
        shown.expect("Zoe Quill")
        shown.expect("you> ")
        shown.type("\x04")
        assert shown.code() == 0


def test_another_shell_asks_while_a_chat_waits_at_its_prompt(user: User) -> None:
    """Both ask its server in turn, in one conversation; Tab completes what begins with a slash, and `exit` leaves."""
    with stopping(user), terminal(user, *REFLEX, server="auto") as shown:
        shown.expect("you> ")
        for number in (1, 2):
            shown.type("Where is the pier?\n")
            shown.expect("1 call")
            shown.expect("you> ")
            beside = user.run("ask", "-c", "-q", "--effort", "reflex", "And who built it?")
            assert beside.code == 0, beside.err
            shown.type("/hist\t\n")
            shown.expect(f": {2 * number} turns")
            shown.expect("you> ")
        shown.type("exit\n")
        shown.expect("Go on with: batos chat --conversation c-")
        assert shown.code() == 0
