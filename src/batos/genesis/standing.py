"""Asks the daemon within a moment for its state: if it answers, which models are in memory, and which are missing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from batos.genesis import daemon_listing as daemons
from batos.genesis.daemon_listing import GenesisDaemon, Runners
from batos.inference.vram.placement import place_of
from batos.protocol.errors import BatosError, ModelMissing, OllamaTimeout
from batos.protocol.image_documents import StandingDocument
from batos.protocol.mission_documents import ErrorDocument, LoadedModel
from batos.protocol.server_documents import MindStatus, StandingStatus

#: Seconds that the daemon has to answer in.
PATIENCE: Final = 1.5


async def ask_standing(
    daemon: GenesisDaemon, models: Mapping[str, str], patience: float = PATIENCE
) -> StandingDocument:
    """Ask the daemon for {answers, version, loaded, missing, error}, held against the models that personas use.

    `models` has a model's name for each persona, and is empty before genesis. `error` is why it cannot be thought with,
    None if it can.
    """
    try:
        async with asyncio.timeout(patience):
            listed, runners = await daemons.look(daemon), await daemon.ps()
    except TimeoutError:
        late = OllamaTimeout("reply", patience)
        return {"answers": False, "version": None, "loaded": [], "missing": [], "error": late.as_dict()}
    except BatosError as error:
        return {"answers": False, "version": None, "loaded": [], "missing": [], "error": error.as_dict()}
    missing = sorted({name for name in models.values() if listed.row(name) is None})
    lacks = _lacks(models, missing)
    return {
        "answers": True,
        "version": listed.version,
        "loaded": loaded_models(runners),
        "missing": missing,
        "error": None if lacks is None else lacks.as_dict(),
    }


def loaded_models(runners: Runners) -> list[LoadedModel]:
    """List what is in memory, and where, as samples have it."""
    return [
        {
            "model": each.name,
            "where": place_of(each, runners),
            "size": each.size,
            "size_vram": each.size_vram,
            "context_length": each.context_length,
        }
        for each in runners
    ]


def _lacks(models: Mapping[str, str], missing: list[str]) -> BatosError | None:
    if not models:
        return ModelMissing("", "the mind's models are not made yet", remedy="Run `batos genesis`.")
    if missing:
        return ModelMissing(missing[0], f"Ollama lacks {', '.join(missing)}")
    return None


async def add_standing(
    found: MindStatus, daemon: GenesisDaemon, before: Sequence[ErrorDocument] = (), patience: float = PATIENCE
) -> StandingStatus:
    """Add what the daemon says now, and what keeps a question from being answered, with what does so `before`."""
    said = await ask_standing(daemon, found["models"], patience)
    reasons = [*before, *([] if said["error"] is None else [said["error"]])]
    return {**found, "ollama": {**found["ollama"], **said}, "ready": not reasons, "reasons": reasons}
