"""The models that Ollama has in memory (hot), and those that are only on disk (cold)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

from batos.config import Settings
from batos.genesis.integrity import Finding
from batos.image.roots import Root
from batos.inference.ollama import opening
from batos.inference.ollama.bridge import Bridge
from batos.inference.ollama.catalogue import RunnerRow
from batos.inference.vram.placement import Bases, Where, place_of
from batos.missions import reports
from batos.protocol.errors import ModelMissing
from batos.protocol.mission_documents import MissionDocument, ProvenanceDocument

#: Answered missions that are looked at, the newest ones, of those that could tell; and calls that say enough.
_MISSIONS, _CALLS = 5, 4
#: Missions that are read for that, the newest ones.
_LOOKED_AT: Final = 100
#: A share of calls that loaded their model anew from which something is wrong.
_TOO_MANY: Final = 0.5
_RELOADED: Final = (
    "Let the daemon keep its models: start it without OLLAMA_KEEP_ALIVE=0 and with OLLAMA_MAX_LOADED_MODELS for those "
    "that fit (`batos budget`), and let no other program load models beside; `batos ps` shows what stays."
)


def reloads(root: Root) -> Finding:
    """Judge by the newest answered missions whether the daemon keeps a model between two calls.

    Of a mission's calls each model's first may load it; every other load is one too many. Missions in which no call was
    a model's second tell nothing.
    """
    ended = (reports.mission_report(name, *parts) for name, parts in islice(reports.newest(root), _LOOKED_AT))
    seen = list(islice((pair for pair in map(_seconds, ended) if pair[0]), _MISSIONS))
    calls, again = sum(pair[0] for pair in seen), sum(pair[1] for pair in seen)
    if calls >= _CALLS and again >= _TOO_MANY * calls:
        what = f"in the newest {len(seen)} missions that tell, {again} of {calls} calls loaded again what had answered"
        return Finding("models.loads", False, f"{what} before: the daemon does not keep its models", _RELOADED)
    if calls < _CALLS:
        return Finding("models.loads", True, "too few calls yet to tell whether the daemon keeps its models")
    return Finding("models.loads", True, f"the daemon keeps its models: {again} of {calls} calls loaded one again")


def _seconds(mission: MissionDocument) -> tuple[int, int]:
    """Count a mission's calls beside each model's first, and how many of them loaded their model."""
    if "cost" not in mission:
        return 0, 0
    cost, firsts = mission["cost"], max(1, len(mission.get("provenance", ProvenanceDocument()).get("models", {})))
    beside = cost["calls"] - firsts
    return (beside, min(beside, max(0, cost["loads"] - firsts))) if beside > 0 else (0, 0)


async def models(settings: Settings) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the runners in memory, each with the models that it serves, and the models that are only on disk."""
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
    """Return where a runner lies.

    An embedder with nothing on the card was asked for there (`num_gpu: 0`), and is no spill.
    """
    where = place_of(row, runners)
    if where != "spilled" or row.size_vram:
        return where
    try:
        return "processor" if (await bridge.show(row.name)).capabilities == ("embedding",) else where
    except ModelMissing:  # deleted while its runner lives on
        return where
