"""Where Ollama has its models: in memory (hot) or only on disk (cold)."""

from __future__ import annotations

from typing import Any

from batos.config import Settings
from batos.inference import opening
from batos.inference.placement import Bases, where_of


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
    hot = [
        {
            "name": each.name,
            "size": each.size,
            "size_vram": each.size_vram,
            "where": where_of(each, runners),
            "context_length": each.context_length,
            "serves": serves[each.name],
        }
        for each in runners
    ]
    return hot, cold
