"""The verbs by which a person decides about methods: approvals, approve, reject."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import click

from batos.cli.completions import approval_ids
from batos.cli.declared import ask_once
from batos.cli.doors.door import Opened, open_door
from batos.cli.render.approval_texts import approved_text, listing_text, whole_text, woken_lines
from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import UsageError
from batos.protocol.method_documents import ApprovalList
from batos.verbs.approval_verbs import APPROVALS

STATUSES = ("asked", "approved", "rejected", "expired", "outdated")


@click.command()
@click.argument("approval", type=given_name, required=False, shell_complete=approval_ids)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--status", type=click.Choice(STATUSES), help="Only those of this status.")
@with_server
def approvals(called: VerbCall, approval: str | None, limit: int, status: str | None) -> int:
    """List the methods that wait for approval, then those that were answered. With APPROVAL show all of one.

    That is: its source, the guardian's verdict, its checks and how many broken variants they find, and the difference
    to the revision that it would replace. APPROVAL is its id, an unambiguous beginning of it, or `last`
    for the newest, `last-1` for the one before. -v lists ids in full, with the digests of the sources.
    """
    if approval is not None:
        found = run(ask_once(open_door(called, reads=True), APPROVALS, {"approval": approval}))
        _write(called, found, whole_text)
        return 0
    args = {"limit": limit, **({} if status is None else {"status": status})}
    found = cast("ApprovalList", run(ask_once(open_door(called, reads=True), APPROVALS, args)))
    if found["approvals"] or called.console.as_json:
        _write(called, found, partial(listing_text, whole=called.verbose))
    else:
        called.console.say("There is no such approval." if status else "Nothing waits for approval.")
    return 0


def _write(called: VerbCall, found: Mapping[str, object], text: Any) -> None:
    if called.console.as_json:
        called.console.document(found)
    else:
        called.console.write(text(found))


@click.command()
@click.argument("names", metavar="[APPROVAL]...", type=given_name, nargs=-1, shell_complete=approval_ids)
@click.option("--all", "every", is_flag=True, help="All that wait and match --matching.")
@click.option(
    "--matching", metavar="PATTERN", help="With --all: over OBJECT.SELECTOR, with * and ?; '*' is everything."
)
@with_server
def approve(called: VerbCall, names: tuple[str, ...], every: bool, matching: str | None) -> int:
    """Approve methods by APPROVAL (an id, its beginning, `last`), or --all --matching PATTERN.

    Methods are installed at once, and missions that wait for them continue. Approved methods are shown; exit 4 when one
    of them could not be, because it was answered before, has expired, or its slot has changed.
    """
    if every != (matching is not None) or every == bool(names):
        raise UsageError(
            "name approvals, or give both --all and --matching PATTERN",
            field="approvals",
            remedy="`batos approvals` lists them; --all --matching '*' approves everything that waits.",
        )
    args = {"matching": matching} if every else {"approvals": list(names)}
    told, served = run(_decide(open_door(called), "approve", {**args, "user": called.settings.asker}))
    if called.console.as_json:
        called.console.document(told)
    else:
        called.console.write(approved_text(told, served=served))
    return 4 if told["refused"] else 0


@click.command()
@click.argument("approval", type=given_name, shell_complete=approval_ids)
@click.option("--why", required=True, metavar="TEXT", help="The reason that its missions are told.")
@with_server
def reject(called: VerbCall, approval: str, why: str) -> int:
    """Reject a method by APPROVAL (an id, its beginning, `last`): missions that wait for it fail with your reason."""
    args = {"approval": approval, "why": why, "user": called.settings.asker}
    told, served = run(_decide(open_door(called), "reject", args))
    if called.console.as_json:
        called.console.document(told)
    else:
        what = told["rejected"]
        lines = [f"{what['id']} is rejected: {what['object']}.{what['selector']} is not installed."]
        called.console.write("\n".join([*lines, *woken_lines(told["woken"], served=served)]))
    return 0


async def _decide(opened: Opened, verb: str, args: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    async with opened as way:
        return await way.call(verb, args), way.served
