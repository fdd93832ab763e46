"""The verb chat: a conversation at a terminal or through a pipe, and the messages as they are typed."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO, Protocol, TypeAlias

import click

from batos.cli import standard_input
from batos.cli.brief_options import BriefOptions, brief_options
from batos.cli.chat.chat_session import Chat
from batos.cli.chat.commands import LEAVING, completions, find_command
from batos.cli.command_line import examples
from batos.cli.doors.background_door import BackgroundDoor, Interrupted
from batos.cli.doors.choosing import open_door
from batos.cli.render.mission_record import history_text
from batos.cli.verb_options import VerbCall, terminating_signals, with_server
from batos.protocol.brief import TEXT_LIMIT
from batos.protocol.errors import BatosError, BriefError
from batos.terminal.console import Terminated

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
        """Restore the completions and keep the history."""
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


_WELCOME = "Ask, or /help. Ctrl-C stops an answer, Ctrl-D leaves."


@click.command(
    epilog=examples(
        "batos chat --persona robin",
        "batos chat --conversation last",
        "printf '%s\\n' 'My boat is called Wren.' 'What is it called?' | batos chat",
    )
)
@brief_options
@click.option("--history", is_flag=True, help="Only show the conversation's turns, word for word, and exit.")
@click.option("--start", type=int, default=-20, show_default=True,
              help="With --history: the first turn's position; negative counts from the end.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 1_000), default=20, show_default=True,
              help="With --history: most turns in the list.")  # fmt: skip
@click.option("--recompact", is_flag=True, help="Only drop the summaries of older turns, write new ones, and exit.")
@with_server
def chat(called: VerbCall, options: BriefOptions, history: bool, start: int, limit: int, recompact: bool) -> int:
    """Hold a conversation. Each question is a turn of one conversation: a new one, or that of --conversation.

    On a terminal lines are edited and remembered, and /help lists what else can be typed. From a pipe each line is a
    question, and with --json each turn is a document; the exit code is then that of the last turn that failed.
    """
    fields = dict(options.fields)
    conversation = str(fields.pop("conversation", "last" if history or recompact else "new"))
    live = called.console.out.isatty() if options.stream is None else options.stream
    chat = Chat(called, fields, conversation, voices=options.voices, stream=live)
    if "-" in options.paths:
        there = standard_input.open_terminal()
        chat.attach(options.paths)
        standard_input.replace_stdin(there)
    else:
        chat.attach(options.paths)
    with _terminable(), BackgroundDoor(open_door(called, reads=history)) as way:
        if history:
            page = way.do(lambda door: chat.page(door, start, limit))
            _print_result(called, page, history_text(page))
            return 0
        if recompact:
            return way.do(lambda door: chat.compact(door, "recompact_"))
        return _talk(called, chat, way)


def _interactive(called: VerbCall) -> bool:
    """Test if a person types, and sees what comes of it."""
    console = called.console
    return sys.stdin is not None and sys.stdin.isatty() and console.out.isatty() and not console.as_json


def _print_result(called: VerbCall, data: Mapping[str, object], text: str) -> None:
    if called.console.as_json:
        called.console.document(data)
    else:
        called.console.write(text)


def _talk(called: VerbCall, chat: Chat, way: BackgroundDoor) -> int:
    """Read message after message until there is none and return the exit code; the chat goes on after an error."""
    console, interactive = called.console, _interactive(called)
    messages = source(called.settings.home / "chat_history", completions, interactive=interactive)
    if interactive and not called.quiet:
        console.say(_WELCOME, dim=True)
    code = 0
    try:
        _begin(chat, way)
        while chat.goes_on:
            try:
                code = _round(chat, way, messages, interactive=interactive) or code
            except EOFError:
                break
            except KeyboardInterrupt:
                if not interactive or way.under_way:
                    raise  # a second one, which waits for nothing
                # Ctrl-C came between a line and its question, or the key is held: the line is clear already.
            except BatosError as error:
                console.error(error)
                code = error.exit_code
    finally:
        messages.close()
    if interactive:
        console.say("")
        chat.part()
        return 0
    way.do(chat.settle)
    return code


def _round(chat: Chat, way: BackgroundDoor, messages: MessageSource, *, interactive: bool) -> int:
    """Read a message and do what it asks; on a terminal Ctrl-C leaves the chat as it stands."""
    try:
        return _one(chat, way, messages.read(chat.prompt, chat.take_draft()))
    except Interrupted:
        if not interactive:
            raise KeyboardInterrupt from None  # what feeds the pipe is to end as well
    except KeyboardInterrupt:
        if not interactive or way.under_way:
            raise
        chat.console.say("")
    return 0


def _begin(chat: Chat, way: BackgroundDoor) -> None:
    try:
        way.do(chat.begin)
    except Interrupted:
        raise KeyboardInterrupt from None


def _one(chat: Chat, way: BackgroundDoor, text: str) -> int:
    """Do what a message asks, a question or a command; return the exit code."""
    if text.strip().lower() in LEAVING:
        chat.leave()
        return 0
    if not text.strip():
        return 0
    if not text.startswith("/") or text.startswith("//"):
        asked = text[1:] if text.startswith("//") else text
        return way.do(lambda door: chat.turn(door, asked))
    name, _, rest = text[1:].partition(" ")
    return find_command(name).run(chat, way, rest.strip())


@contextmanager
def _terminable() -> Iterator[None]:
    """End the verb at SIGTERM and SIGHUP as elsewhere, wherever the main thread stands."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    before = {number: signal.signal(number, terminate) for number in terminating_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
