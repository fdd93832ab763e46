"""The line to a server: found by its home or its address, each time anew, and started where none runs."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from batos import config
from batos.client.line import Find, Line, Patience
from batos.client.wire import server_address, server_life
from batos.protocol.errors import NoServer


def line_to(
    home: Path | str | None = None, *, server: str | None = None, patience: Patience | None = None, starts: bool = True
) -> Line:
    """Return a line to the server of a home, or to a named one; without either to that of the settings.

    A home's server is started where none runs, unless the setting `server` is `never` or `starts` is False.
    """
    if home is None:
        settings = config.load().settings
        home, server = settings.home, server or settings.named_server
    folder, named = Path(home).absolute(), server
    if named:
        return Line(lambda: server_address.setting_address(named, folder), patience)
    find: Find = partial(server_address.home_address, folder)
    return Line(find, patience, partial(_start, folder) if starts else None)


def _start(home: Path) -> None:
    """Start the home's server, if its settings let that be. Raises: BatosError: what keeps it from starting."""
    settings = config.load(flags={"home": home}).settings
    if not server_life.may_start(settings, os.environ):
        return
    try:
        server_life.ensure(home)
    except OSError as error:
        raise NoServer(f"no server can be started for the home {home}: {error.strerror}") from error
