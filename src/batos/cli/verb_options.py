"""The options of every verb (the home, the form of results), and how a verb gets its settings and its loop."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from batos import config, loopwatch
from batos.cli.command_line import Ending, common_options, server_option
from batos.config import LoadedSettings, Settings
from batos.protocol.errors import ConfigError
from batos.terminal.console import Console, Terminated

T = TypeVar("T")
Reply = TypeVar("Reply", bound=Mapping[str, object])


@dataclass(frozen=True, slots=True)
class VerbCall:
    """The call of a verb: its settings, its console and how much it is to tell."""

    loaded: LoadedSettings
    console: Console
    quiet: bool
    verbose: bool = False
    ending: Ending = field(default_factory=Ending)

    @property
    def settings(self) -> Settings:
        """Return the settings."""
        return self.loaded.settings

    @property
    def can_ask(self) -> bool:
        """Test if a person sits there who can answer."""
        return not self.quiet and not self.console.as_json and sys.stdin.isatty() and sys.stderr.isatty()

    def note(self, text: str) -> None:
        """Say something beside the result, unless only the result is wanted."""
        if not self.quiet:
            self.console.say(text, dim=True)

    def answer(self, found: Reply, text: Callable[[Reply], str]) -> None:
        """Write the verb's result: as a document for a program, in words for a person."""
        if self.console.as_json:
            self.console.document(found)
        else:
            self.console.write(text(found))


def common(verb: Callable[..., Any], *, is_client: bool = False) -> Callable[..., Any]:
    """Add to a verb the options that all have, and a `VerbCall` first. An option named like a setting changes it.

    The log of a verb that may be a server's client alone is begun by whatever it does in its own process.
    """

    @common_options
    @functools.wraps(verb)
    def run_verb(*, as_json: bool, quiet: bool, verbose: bool, plain: bool, **given: object) -> Any:
        flags = {name: given.pop(name) for name in Settings.model_fields if name in given}
        loaded = config.load(flags=flags)
        settings = loaded.settings
        own_folder(settings.home)
        # Until the command line has told what came of the verb: an error that nobody foresaw belongs to the log too.
        ending = click.get_current_context().ensure_object(Ending)
        ending.offer_log(partial(_log, settings))
        if not is_client:
            ending.begin_log()
        console = ending.console = Console.from_streams(sys.stdout, sys.stderr, as_json=as_json, is_plain=plain)
        for each in () if quiet else loaded.unread:
            console.say(f"warning: {each}.".replace("?.", "?"), warn=True)
        return verb(VerbCall(loaded, console, quiet, verbose, ending), **given)

    return run_verb


def _log(settings: Settings) -> AbstractContextManager[None]:
    from batos.terminal import logs  # a client of a server loads nothing of logs

    return logs.configure(settings.log_level, settings.log_format, settings.home / "logs")


def own_folder(home: Path) -> None:
    """Make the home, for its owner alone; raises ConfigError when it cannot be made."""
    try:
        # mkdir gives its mode to the last folder only.
        home.parent.mkdir(parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the home {home} cannot be made: {error.strerror}",
            field="home",
            remedy="Name a folder that you may write with --home or BATOS_HOME.",
        ) from error


def with_server(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb what `common` gives, and the server's address: for verbs that speak through a door."""
    return server_option(common(verb, is_client=True))


def run(work: Coroutine[Any, Any, T], parting: Callable[[], None] | None = None) -> T:
    """Run work on the command line's one event loop, which BATOS_DEBUG_LOOP=1 watches, and return its result.

    Ctrl-C, SIGTERM and SIGHUP (a terminal was closed) cancel the work; a second one calls `parting` and ends the
    process at once, as a kill would: what is committed stays, and what is not leaves no trace. Raises:
    KeyboardInterrupt, Terminated: the work was cancelled so.
    """
    try:
        return loopwatch.run(_run_until_signal(work, parting), debug=os.environ.get("BATOS_DEBUG_LOOP") == "1")
    except _Signalled as told:
        raise (KeyboardInterrupt if told.signal == signal.SIGINT else Terminated) from None


def terminating_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a verb with exit code 143; SIGHUP is none where nohup made the process ignore it."""
    outlives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return (signal.SIGTERM,) if outlives else (signal.SIGTERM, signal.SIGHUP)


class _Signalled(BaseException):
    """A signal ended the work."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


async def _run_until_signal(work: Coroutine[Any, Any, T], parting: Callable[[], None] | None) -> T:
    task = asyncio.ensure_future(work)
    heard: list[int] = []

    def on_signal(number: int) -> None:
        heard.append(number)
        if len(heard) == 1:
            task.cancel()
            return
        if parting is not None:
            parting()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
        os._exit(128 + number)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, *terminating_signals()):
        loop.add_signal_handler(number, on_signal, number)
    try:
        return await task
    except asyncio.CancelledError:
        if heard:
            raise _Signalled(heard[0]) from None
        raise
