"""The verb chat: a conversation at a terminal or through a pipe, through a server or in this process."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import click

from batos.cli import standard_input
from batos.cli.brief_options import BriefOptions, brief_options
from batos.cli.chat.chat_session import Chat
from batos.cli.chat.commands import LEAVING, completions, find_command
from batos.cli.chat.typed_input import MessageSource, source
from batos.cli.doors.background_door import BackgroundDoor, Interrupted
from batos.cli.doors.choosing import open_door
from batos.cli.render.turns import history_text
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, terminating_signals, with_server
from batos.protocol.errors import BatosError
from batos.terminal.console import Terminated

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
