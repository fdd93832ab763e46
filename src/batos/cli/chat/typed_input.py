"""The source of messages, one at a time: edited and remembered on a terminal, a line of a pipe elsewhere."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

from batos.protocol.brief import TEXT_LIMIT
from batos.protocol.errors import BriefError

#: Completes the word at the end of a line.
Completions: TypeAlias = Callable[[str, str], list[str]]

#: Messages that are remembered.
REMEMBERED = 1_000
#: Seconds within which a line that follows another was pasted with it.
_PASTED = 0.03
#: Bytes of a line that is still looked at; the rest of a longer one is passed over.
_LONGEST = 4 * TEXT_LIMIT + 2


class MessageSource(Protocol):
    """A source of messages."""

    def read(self, prompt: str, begun: str = "") -> str:
        """Return the next message; EOFError at the end, KeyboardInterrupt on Ctrl-C, BriefError for what is no text.

        On a terminal a message that is `begun` already can be edited.
        """
        ...

    def close(self) -> None:
        """Close it: nothing more is read."""
        ...


class TerminalInput:
    """A person at a terminal: readline's editing, and a history that only its owner may read.

    Lines that were pasted together are one message; a line that ends in a backslash goes on in the next.
    """

    def __init__(self, history: Path, completions: Completions) -> None:
        self._history = history
        self._completions = completions
        try:
            import readline
        except ImportError:  # a Python without it still reads lines
            self._readline = None
            return
        self._readline = readline
        readline.parse_and_bind("set enable-bracketed-paste on")
        # The whole word: a command begins with a slash, and a path may have some.
        readline.set_completer_delims(" \t\n")
        readline.set_completer(self._complete)
        readline.parse_and_bind("bind ^I rl_complete" if "libedit" in (readline.__doc__ or "") else "tab: complete")
        readline.set_history_length(REMEMBERED)
        with suppress(OSError):  # there is none yet, or it cannot be read
            readline.read_history_file(history)

    def _complete(self, word: str, number: int) -> str | None:
        """Return the completions of a word, by number, as readline asks for them."""
        line = "" if self._readline is None else self._readline.get_line_buffer()[: self._readline.get_endidx()]
        found = self._completions(line, word)
        return found[number] if number < len(found) else None

    def read(self, prompt: str, begun: str = "") -> str:
        """Return the next message, which may have several lines."""
        lines = [self._read_line(prompt, begun)]
        while True:
            if lines[-1].endswith("\\"):
                lines[-1] = lines[-1][:-1]
                lines.append(input("... "))
            elif select.select([sys.stdin], [], [], _PASTED)[0]:
                try:
                    lines.append(input())
                except EOFError:
                    break
            else:
                break
        return "\n".join(lines)

    def _read_line(self, prompt: str, begun: str) -> str:
        """Return a line that begins with a text, which can be edited."""
        readline = self._readline
        if readline is None or not begun:
            return input(prompt)
        readline.set_startup_hook(lambda: readline.insert_text(begun.replace("\n", " ")))
        try:
            return input(prompt)
        finally:
            readline.set_startup_hook(None)

    def close(self) -> None:
        """Give the completions back and keep the history."""
        if self._readline is None:
            return
        self._readline.set_completer(None)
        with suppress(OSError):  # a full disk costs the history, nothing else
            os.close(os.open(self._history, os.O_WRONLY | os.O_CREAT, 0o600))
            self._history.chmod(0o600)
            self._readline.write_history_file(self._history)


class PipedInput:
    """A pipe or a file: each line is a message, empty ones are none."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, prompt: str, begun: str = "") -> str:
        """Return the next line that is not empty; a pipe gets no prompt, and nothing is begun for it."""
        while True:
            data = self._stream.readline(_LONGEST)
            if not data:
                raise EOFError
            whole = data
            while not whole.endswith(b"\n") and len(whole) == _LONGEST:
                whole = self._stream.readline(_LONGEST)
            try:
                text = data.decode("utf-8", "strict" if len(data) < _LONGEST else "ignore").strip()
            except UnicodeDecodeError as error:
                raise BriefError(
                    f"a line on stdin is not UTF-8 (byte {error.start})", field="text", remedy="Convert it to UTF-8."
                ) from error
            if text:
                return text

    def close(self) -> None:
        """Do nothing: stdin stays open."""


def source(history: Path, completions: Completions, *, interactive: bool) -> MessageSource:
    """Return the terminal where a person sits, else stdin as it comes; BriefError if it is closed."""
    if interactive:
        return TerminalInput(history, completions)
    # Python has none when the process was started with it closed, whatever its types say.
    if sys.stdin is None:
        raise BriefError("stdin is closed", field="text", remedy="Give it a question a line, or a terminal.")
    return PipedInput(sys.stdin.buffer)
