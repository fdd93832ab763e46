"""A verb that fails as no verb should, and a command line that has it beside the others."""

from __future__ import annotations

import click

from batos.cli import entry
from batos.cli.verb_options import VerbCall, common


@click.command()
@common
def broken(called: VerbCall) -> int:
    """Fail."""
    raise ZeroDivisionError(f"no part of {called.settings.missions} is left")


if __name__ == "__main__":
    entry.VERBS["broken"] = ("tests.cli.failing_verb", "Fail.")
    entry.main()
