"""The bytes at stdin: the question, a document to answer from, or nothing that was meant for a verb."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Callable
from typing import TextIO

from batos.protocol.brief import TEXT_LIMIT, File, as_file
from batos.protocol.errors import BriefError, UsageError
from batos.terminal.console import size

#: The name of a document from stdin.
NAME = "stdin.txt"
#: Seconds after which whoever waits for stdin is told so: an open pipe that brings nothing looks like a standstill.
_PATIENCE = 1.0
#: Bytes in which every question that may be asked fits.
_QUESTION_BYTES = 4 * TEXT_LIMIT


def is_piped() -> bool:
    """Test if stdin can be read without anybody typing: it is a pipe, a file or a socket."""
    try:
        kind = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # it is closed, or no file of the system's
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)


def question(text: str | None, say: Callable[[str], None], verb: str) -> str:
    """Return the question as given; where it is `-`, or none and stdin is piped, return all of stdin.

    `verb` is what asks it, and what a remedy names.

    UsageError: there is none. BriefError: stdin is closed, is too long, or is no text.
    """
    if text is not None and text != "-" and text.strip():
        return text
    if text != "-" and (text is not None or not is_piped()):
        raise UsageError(
            "there is no question", field="text", remedy=f'Ask one: {verb} "...", or pipe it: echo "..." | {verb}'
        )
    data = read_stdin(_QUESTION_BYTES + 1, "text", say)
    if len(data) > _QUESTION_BYTES:
        raise BriefError(
            f"the question on stdin has more than {TEXT_LIMIT:,} characters",
            field="text",
            remedy=f'Give a long text as a file: {verb} "..." --file PATH, or --file - for stdin.',
        )
    return decode(data, "text", "question")


def decode(data: bytes, name: str, what: str) -> str:
    """Return what stdin has as text. Raises: BriefError: it is not UTF-8; the error names the field and the byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BriefError(
            f"the {what} on stdin is not UTF-8 (byte {error.start})", field=name, remedy="Convert it to UTF-8."
        ) from error


def document(limit: int, say: Callable[[str], None]) -> list[File]:
    """Return what is piped beside a given question, as a file to answer from; none where nothing comes.

    BriefError: it has more than `limit` bytes, or is no text.
    """
    if not is_piped():
        return []
    data = read_stdin(limit + 1, "attachments", say)
    if not data.strip():
        say("What is piped is empty: no document is made of it.")
        return []
    file = as_file(NAME, data, limit)
    say(f"The piped text ({size(len(data))}) is a document to answer from: {NAME}.")
    return [file]


def read_stdin(most: int, name: str, say: Callable[[str], None]) -> bytes:
    """Read stdin to its end, or so many bytes, and say when that waits. BriefError: it is closed."""
    # Python has none when the process was started with it closed, whatever its types say.
    source: TextIO | None = sys.stdin
    if source is None:
        raise BriefError("stdin is closed", field=name, remedy="Open stdin, or leave the - out.")
    if is_piped() and not select.select([source], [], [], _PATIENCE)[0]:
        say("Waiting for the input that is piped to stdin; </dev/null gives none.")
    return source.buffer.read(most)


def open_terminal() -> int:
    """Open the terminal for one who reads a document from stdin and then questions; UsageError without one."""
    try:
        return os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        raise UsageError(
            "the document is read from stdin, and there is no terminal for the questions",
            field="file",
            remedy="Put the text in a file.",
        ) from error


def replace_stdin(there: int) -> None:
    """Let stdin be an opened file from here on."""
    os.dup2(there, sys.stdin.fileno())
    os.close(there)
