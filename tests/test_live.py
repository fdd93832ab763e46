"""Genesis, missions and adapters on a person's own daemon, with a model that it has; what was made there is deleted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.living import WINDOW, found_model
from tests.model_files.building import lora

from batos.config import Settings
from batos.events import Events
from batos.genesis import persona_models
from batos.genesis.codex import codex as codices
from batos.inference.ollama.bridge import Bridge
from batos.protocol.brief import as_file
from batos.protocol.errors import ModelMissing
from batos.testing import shipped_models
from batos.uvm import UVM, open_uvm

pytestmark = [
    pytest.mark.live,
    pytest.mark.timeout(1800),  # any pace: a person's machine loads and thinks with its own model
    pytest.mark.blocks_loop(reason="a person's machine may be busy with the model"),
]
HARBOUR = Path(__file__).resolve().parents[1] / "examples" / "harbour.txt"
#: The window is the codex's, and a small model may have been trained for less.
EXCUSED = {"models.trained"}
QUERIES = "blk.0.attn_q.weight"


@asynccontextmanager
async def mind(home: Path, window: int = WINDOW, tensor: str = "") -> AsyncGenerator[tuple[UVM, Bridge, str], None]:
    """An empty image whose codex names a model that the daemon has, whatever the card.

    What it made there is deleted, and the embedder (46 MB), if genesis had to pull it.
    """
    url = os.environ["BATOS_LIVE_OLLAMA"]
    async with Bridge(url) as bridge:
        model = await found_model(bridge, window=window, tensor=tensor)
        before = {row.name for row in await bridge.list()}
        await asyncio.to_thread(_write_codex, home / "codex", model)
        settings = Settings(home=home, user="tester", ollama_host=url, vram="256GiB", install="never")
        async with open_uvm(settings, Events(log=False)) as uvm:
            try:
                yield uvm, bridge, model
            finally:
                with uvm.image.snapshot() as root:
                    made = list(persona_models.read_record(root).models)
                for name in {*made, shipped_models()[1]} - before:
                    try:
                        await bridge.delete(name)
                    except ModelMissing:
                        pass  # it was never made, or could not be pulled


def _write_codex(folder: Path, model: str) -> None:
    """The shipped codex, with this model for everybody."""
    folder.mkdir(parents=True)
    for name, text in codices.read_shipped().items():
        lines = (
            f'default_model = "{model}"' if line.startswith("default_model") else line for line in text.splitlines()
        )
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


async def test_genesis_and_missions(tmp_path: Path) -> None:
    """Genesis passes its audit, a second one changes nothing; one call answers, and a persona over its facets with a
    file; what was paid for is not asked for again."""
    async with mind(tmp_path / "home") as (uvm, _, _):
        report = await uvm.readiness.genesis()
        assert {finding.id for finding in report.findings if not finding.ok} <= EXCUSED
        assert (await uvm.readiness.genesis()).changes == ()
        plain = await uvm.missions.ask({"text": "Name a colour of the sea.", "effort": "reflex"})
        assert (plain["status"], plain["cost"]["calls"] >= 1) == ("done", True), plain.get("reason")
        file = as_file(HARBOUR.name, await asyncio.to_thread(HARBOUR.read_bytes))
        brief = {"text": "How was the breach closed?", "effort": "cycle", "attachments": [file.ref.model_dump()]}
        whole = await uvm.missions.ask(brief, [file])
        assert whole["status"] == "done", whole.get("reason")
        assert whole["answer"]
        assert whole["provenance"]["recalled"]
        again = await uvm.missions.ask({**brief, "ancestor": whole["id"]}, [file])
        assert (again["answer"], again["cost"]["calls"]) == (whole["answer"], 0)


async def test_an_adapter_acts(tmp_path: Path) -> None:
    """A LoRA of this base, all of it zeros, is uploaded, made into a model and thought with."""
    async with mind(tmp_path / "home", 0, QUERIES) as (uvm, bridge, model):
        card = await bridge.show(model, verbose=True)
        ins, outs = card.tensors[QUERIES]
        shapes = {f"{QUERIES}.lora_a": (ins, 4), f"{QUERIES}.lora_b": (4, outs)}
        weights = lora(shapes, architecture=str(card.info["general.architecture"]))
        await asyncio.to_thread(_write_adapter, tmp_path / "home" / "adapters" / "robin" / "zeros", weights)
        report = await uvm.readiness.genesis()
        assert {finding.id for finding in report.findings if not finding.ok} <= EXCUSED
        said = await uvm.missions.ask({"text": "Name a colour of the sea.", "effort": "reflex", "persona": "ROBIN"})
        assert said["status"] == "done", said.get("reason")
        assert [name for name in said["provenance"]["models"] if name.startswith("batos-robin-zeros:")]


def _write_adapter(folder: Path, weights: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "zeros.gguf").write_bytes(weights)
