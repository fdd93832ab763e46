"""An adapter's file whose digest was written down wrongly, under a genesis that believes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.genesis.loras import gguf_adapter
from tests.genesis.stages import models_of, staged

from batos.protocol.errors import RequestRejected

OLD = 10**18  # ns: long ago, so that digests are believed


async def test_a_digest_that_is_believed_wrongly_is_found_by_the_upload(tmp_path: Path) -> None:
    """Ollama refuses what is not what was announced; then every file is read anew, and the next mission has it."""
    async with staged(tmp_path / "home") as stage:
        await stage.ask()
        place = gguf_adapter(stage.home / "adapters" / "robin" / "warm")
        os.utime(place / "lora.gguf", ns=(OLD, OLD))
        (digest,) = stage.uvm.reconciler.inventory().adapters[0].digests.values()
        known = stage.home / "adapters.json"
        wrong = known.read_text(encoding="utf-8").replace(digest, f"sha256:{'7' * 64}")
        known.write_text(wrong, encoding="utf-8")
        with pytest.raises(RequestRejected, match="digest mismatch") as told:
            await stage.ask()
        assert "changed" in told.value.remedy
        (model,) = models_of(await stage.ask())
        assert model.startswith("batos-robin-warm:")
        assert len((await stage.other.show(model)).adapters) == 1
