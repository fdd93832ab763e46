"""An adapter's file that changes without its stat telling, under a genesis that believed the stat."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.genesis.loras import gguf_adapter, lora
from tests.genesis.test_convergence import models_of, staged

from batos.errors import RequestRejected

OLD = 10**18  # ns: long ago, so that digests are believed


async def test_a_digest_that_is_believed_wrongly_is_found_by_the_upload(tmp_path: Path) -> None:
    """Ollama refuses what is not what was announced; then every file is read anew, and the next mission has it."""
    async with staged(tmp_path / "home") as stage:
        await stage.ask()
        place = gguf_adapter(stage.home / "adapters" / "robin" / "warm")
        os.utime(place / "lora.gguf", ns=(OLD, OLD))
        assert stage.uvm.convergence.shelf().adapters[0].alpha == 8.0
        with (place / "lora.gguf").open("r+b") as same:  # its inode stays
            same.write(lora(alpha=16.0))
        os.utime(place / "lora.gguf", ns=(OLD, OLD))
        with pytest.raises(RequestRejected, match="digest mismatch") as told:
            await stage.ask()
        assert "changed" in told.value.remedy
        (model,) = models_of(await stage.ask())
        assert model.startswith("batos-robin-warm:")
        assert len((await stage.other.show(model)).adapters) == 1
