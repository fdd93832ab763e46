"""The verb `approve`: a person decides about methods by names, or about all that match."""

from __future__ import annotations

from collections.abc import Mapping

import click

from batos.cli.declared import ask_for, take, tell
from batos.cli.verb_options import VerbCall
from batos.protocol.errors import UsageError
from batos.verbs.approval_verbs import APPROVE


@take(APPROVE)
@click.option("--all", "every", is_flag=True, help="All that wait and match --matching.")
def approve(called: VerbCall, given: Mapping[str, object], every: bool) -> int:
    """Approve the methods that are named, or with --all those that match."""
    if every != ("matching" in given) or every == ("approvals" in given):
        raise UsageError(
            "name approvals, or give both --all and --matching PATTERN",
            field="approvals",
            remedy="`batos approvals` lists them; --all --matching '*' approves everything that waits.",
        )
    return tell(called, APPROVE, ask_for(called, APPROVE, given))
