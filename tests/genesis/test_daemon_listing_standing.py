"""What the daemon says of itself within a moment, and what keeps a question from being answered."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from tests.waiting import HANG

from batos.genesis import daemon_listing
from batos.inference.ollama.catalogue import ModelRow, RunnerRow
from batos.protocol.errors import DiskFull, OllamaUnreachable
from batos.protocol.mission_documents import ErrorDocument
from batos.protocol.server_documents import DaemonDocument, MindStatus
from batos.testing import ScriptedBridge

MODELS = {"BRICK": "batos-brick:1", "BABS": "batos-babs:1"}


class Away(ScriptedBridge):
    """Does not answer."""

    async def version(self) -> str:
        """Never."""
        raise OllamaUnreachable("nobody is at home")


class Slow(ScriptedBridge):
    """Never answers, and does not say so."""

    async def version(self) -> str:
        """Too late."""
        await asyncio.Event().wait()
        return "0.33.0"


class Has(ScriptedBridge):
    """Has models on disk and in memory."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    async def list(self) -> Sequence[ModelRow]:
        """These models."""
        return [ModelRow(name=name, digest="d", size=1, modified_at=None) for name in self.names]

    async def ps(self) -> Sequence[RunnerRow]:
        """The first of them."""
        return [RunnerRow(name, "d", 10, 10, 4096, None) for name in self.names[:1]]


async def said(
    bridge: ScriptedBridge, models: dict[str, str] = MODELS, before: Sequence[ErrorDocument] = ()
) -> tuple[DaemonDocument, list[str]]:
    """What is said, and the codes of what is in the way."""
    patience = 0.05 if isinstance(bridge, Slow) else HANG  # any pace: only what never answers is not waited for
    mind = cast("MindStatus", {"models": models, "ollama": {"host": "here"}})
    found = await daemon_listing.add_standing(mind, bridge, before, patience)
    assert found["ready"] is not bool(found["reasons"])
    return found["ollama"], [each["code"] for each in found["reasons"]]


async def test_a_daemon_with_all_models_is_ready() -> None:
    """Its version, and what is in memory now."""
    found, codes = await said(Has("batos-brick:1", "BATOS-BABS:1"))
    assert (found["answers"], found["missing"], codes) == (True, [], [])
    assert [(each["model"], each["where"]) for each in found["loaded"]] == [("batos-brick:1", "card")]
    assert found["version"]


async def test_what_is_in_the_way_is_an_error_with_its_remedy() -> None:
    """Away, too slow, without a model, before genesis: each by its code; nothing is said to lie in memory then."""
    for bridge, models, code in (
        (Away(), MODELS, "ollama_unreachable"),
        (Slow(), MODELS, "ollama_timeout"),
        (Has("batos-brick:1"), MODELS, "model_missing"),
        (Has("batos-brick:1"), {}, "model_missing"),
    ):
        found, codes = await said(bridge, models)
        assert codes == [code]
        assert found["error"] is not None
        assert found["error"]["remedy"]
        assert found["answers"] is (code == "model_missing")
        assert bool(found["loaded"]) is found["answers"]
    found, _ = await said(Has("batos-brick:1"))
    assert found["missing"] == ["batos-babs:1"]


async def test_an_image_that_takes_nothing_comes_first() -> None:
    """What was asked would be refused there."""
    _, codes = await said(Away(), before=[DiskFull("there is no room").as_dict()])
    assert codes == ["disk_full", "ollama_unreachable"]
