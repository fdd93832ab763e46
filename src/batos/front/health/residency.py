"""Where Ollama has its models: in memory (hot) or only on disk (cold)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from batos.config import Settings
from batos.errors import ModelMissing
from batos.inference import opening
from batos.inference.bridge import Bridge
from batos.inference.catalogue import RunnerRow
from batos.inference.placement import Bases, Where, where_of


async def models(settings: Settings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What is in memory, with the models that each runner serves, and what is only on disk."""
    async with opening.bridge(settings) as bridge:
        runners, rows = await bridge.ps(), await bridge.list()
        bases = Bases(bridge)
        serves: dict[str, list[str]] = {each.name: [] for each in runners}
        cold = []
        for row in rows:
            runner = await bases.runner(row.name, row.digest, runners)
            if runner is None:
                cold.append({"name": row.name, "size": row.size})
            else:
                serves[runner.name].append(row.name)
        places = [await _place(bridge, each, runners) for each in runners]
    hot = [
        {
            "name": each.name,
            "size": each.size,
            "size_vram": each.size_vram,
            "where": where,
            "context_length": each.context_length,
            "serves": serves[each.name],
        }
        for each, where in zip(runners, places, strict=True)
    ]
    return hot, cold


async def _place(bridge: Bridge, row: RunnerRow, runners: Sequence[RunnerRow]) -> Where:
    """Where a runner lies; an embedder with nothing on the card was asked for there (`num_gpu: 0`), and is no spill."""
    where = where_of(row, runners)
    if where != "spilled" or row.size_vram:
        return where
    try:
        return "processor" if (await bridge.show(row.name)).capabilities == ("embedding",) else where
    except ModelMissing:  # deleted while its runner lives on
        return where
