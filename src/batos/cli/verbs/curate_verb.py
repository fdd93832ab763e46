"""The verb that folds memories into summaries, and brings back what a summary stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from batos.cli.declared import ask
from batos.cli.doors.choosing import open_door
from batos.cli.render.curation_texts import curated_text, unfolded_text
from batos.cli.shared_options import given_options
from batos.cli.verb_options import VerbCall, run, with_server
from batos.protocol.errors import UsageError
from batos.protocol.memory_documents import CuratedPage, UnfoldedPage
from batos.terminal.console import count_text
from batos.verbs.memory_verbs import CURATE


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be folded.")
@click.option("--undo", metavar="SUMMARY", help="Bring back what this summary stands for, byte for byte.")
@click.option(
    "--cold-after",
    type=click.FloatRange(0, 36_500),
    help="Days without a recall after which memories are cold (default: the setting cold_days).",
)
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 100_000), help="Most regions.")
@click.option("--rule", is_flag=True, help="Ask no model: a rule writes the summaries.")
@with_server
def curate(called: VerbCall, undo: str | None, cold_after: float | None, **how: Any) -> int:
    """Fold memories that nobody recalls, or that say the same, into summaries.

    A model writes what nobody recalls in short, where one answers; only what the memories carry of it is kept.

    The texts go to an archive: `recall --all` and `--history` still find them, and --undo brings them back.
    """
    if undo is not None and (others := given_options("dry_run", "cold_after", "limit", "rule")):
        raise UsageError(f"--undo goes with no {others[0]}", field="undo", remedy="Give it alone.")
    args: dict[str, Any] = {"user": called.settings.asker}
    if undo is not None:
        args["undo"] = undo
    else:
        args |= how
        args |= {} if cold_after is None else {"cold_days": cold_after}
    called.answer(run(_curate(called, args)), _outcome_text)
    return 0


def _outcome_text(told: CuratedPage | UnfoldedPage) -> str:
    return curated_text(told) if "regions" in told else unfolded_text(told)


async def _curate(called: VerbCall, args: Mapping[str, Any]) -> CuratedPage | UnfoldedPage:
    """Ask for it, and tell how far it is."""
    folded: list[int] = []

    def on_event(_event: str, told: Mapping[str, Any]) -> None:
        folded.append(told["documents"])
        if told["written_by"] == "model" or len(folded) % _TOLD_REGIONS == 0:
            called.note(f"{count_text(sum(folded), 'document')} in {count_text(len(folded), 'region')} so far")

    async with open_door(called) as way:
        return await ask(way, CURATE, args, on_event)


#: A line is told after so many regions.
_TOLD_REGIONS = 20
