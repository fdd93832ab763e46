"""The verb `stop`: it ends the home's server."""

from __future__ import annotations

import click

from batos.cli.verb_options import VerbCall, common
from batos.client.wire import server_life


@click.command()
@common
def stop(called: VerbCall) -> int:
    """Stop the home's server: running missions go back to the queue, and the next server continues them.

    The next verb that needs a server starts one. A second `batos stop` meanwhile stops it at once.
    """
    ended = server_life.stop(called.settings.home)
    if called.console.as_json:
        called.console.document({"stopped": ended is not None, "pid": None if ended is None else ended.pid})
    elif not called.quiet:
        called.console.write("No server runs." if ended is None else f"The server (process {ended.pid}) has stopped.")
    return 0
