"""What every verb takes: where the home is, how to show results; and how a verb gets its settings and its loop."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from batos import config, loopwatch
from batos.config import Loaded, Settings
from batos.errors import ConfigError
from batos.front import logs
from batos.front.console import Console, Terminated

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Called:
    """How a verb was called."""

    loaded: Loaded
    console: Console
    quiet: bool

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.loaded.settings


def common(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options that all have; it gets a `Called` first. An option named as a setting is that setting."""

    @click.option("--home", type=click.Path(file_okay=False), help="The folder that holds everything.")
    @click.option("--image", metavar="URI", help="The image's storage URI.")
    @click.option("--journal", metavar="URI", help="The journal's storage URI.")
    @click.option(
        "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="Least severe log line."
    )
    @click.option("--json", "as_json", is_flag=True, help="Results as JSON documents on stdout.")
    @click.option("--quiet", "-q", is_flag=True, help="Only the result.")
    @functools.wraps(verb)
    def called(*, as_json: bool, quiet: bool, **given: Any) -> Any:
        flags = {name: given.pop(name) for name in Settings.model_fields if name in given}
        loaded = config.load(flags=flags)
        settings = loaded.settings
        own_folder(settings.home)
        logs.configure(settings.log_level, settings.log_format, settings.home / "logs")
        console = Console.of(sys.stdout, sys.stderr, as_json=as_json)
        return verb(Called(loaded, console, quiet), **given)

    return called


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


def run(work: Coroutine[Any, Any, T]) -> T:
    """The command line's one event loop; BATOS_DEBUG_LOOP=1 watches it. SIGTERM ends the work as Ctrl-C does."""
    return loopwatch.run(_until_told(work), debug=os.environ.get("BATOS_DEBUG_LOOP") == "1")


async def _until_told(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    terminated = False

    def terminate() -> None:
        nonlocal terminated
        terminated = True
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
    try:
        return await task
    except asyncio.CancelledError:
        if terminated:
            raise Terminated from None
        raise
