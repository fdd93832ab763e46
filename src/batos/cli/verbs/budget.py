"""The verb `budget`: the memory of the codex's models on the card, row by row, and the window that fits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import click

from batos.cli.verb_options import VerbCall, common, run
from batos.cli.verbs.system_verbs import topic
from batos.genesis import budget_check, home_files
from batos.genesis.codex import codex
from batos.genesis.daemon_listing import look
from batos.genesis.plan import Plan
from batos.inference import model_names
from batos.inference.ollama import opening
from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.catalogue import RunnerRow

#: The words where the daemon was seen to use no card.
_WITHOUT: Final = (
    "The loaded models are wholly in main memory: the daemon uses no card here. The card above is what the "
    "settings say; set `usable` in batos.toml to the memory that models may have."
)


@click.command()
@click.option("--vram", metavar="SIZE", help="The card's memory: 8, 8GiB, 6500MiB; a bare number is GiB.")
@click.option("--usable", metavar="SIZE", help="The part of it for models (default: vram less 1.5 GiB).")
@click.option("--reserve", metavar="SIZE", help="The part of that which other programs take.")
@click.option("--parallel", metavar="N", help="The daemon's OLLAMA_NUM_PARALLEL.")
@click.option("--kv-type", metavar="TYPE", help="The daemon's OLLAMA_KV_CACHE_TYPE: f16, q8_0 or q4_0.")
@common
def budget(called: VerbCall) -> int:
    """Show the memory that the codex's models take on the card; exit 4 when they do not fit."""
    return run(_budget(called))


async def _budget(called: VerbCall) -> int:
    settings = called.settings
    async with opening.bridge(settings) as bridge:
        plan = await _plan(called, bridge)
        table = await budget_check.table_of(plan, settings, bridge)
        seen = [] if table.fits is False else await bridge.ps()
        over = await budget_check.refusal(plan, settings, bridge) if table.fits is False else None
    if over is not None:
        raise over
    if called.console.as_json:
        called.console.document({**table.as_dict(), "no_card_seen": _no_card(plan, seen)})
        return 0
    called.console.write("\n".join(table.lines()))
    if _no_card(plan, seen):
        called.console.write(_WITHOUT)
    if table.largest:
        called.console.write(
            f"The largest num_ctx that fits is {table.largest}. See `batos help {topic('vram.budget')}`."
        )
    if not table.fits and not called.quiet:
        called.console.say("Not every size is known yet: `batos genesis` checks again before it makes anything.")
    return 0


def _no_card(plan: Plan, runners: Sequence[RunnerRow]) -> bool:
    """Test if models are in memory that would be on a card, and nothing of them is; the embedder never is."""
    embedder = plan.codex.profile(plan.profile).embedder
    others = [each for each in runners if not model_names.same(each.name, embedder)]
    return bool(others) and not any(each.size_vram for each in runners)


async def _plan(called: VerbCall, bridge: Bridge) -> Plan:
    """Make the plan by codex, adapters and the image's choices; the image may be open elsewhere, or not be there."""
    settings = called.settings
    found, _ = await asyncio.to_thread(codex.standing, settings.home / "codex")
    whole, listed = found.sound(), await look(bridge)
    inventory = await home_files.check_inventory(settings, whole, listed, bridge)
    return await asyncio.to_thread(home_files.make_plan, settings, whole, listed, inventory)
