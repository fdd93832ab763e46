"""Adapters that come, change and go while a process holds the image act at its next mission, or refuse it."""

from __future__ import annotations

import shutil

import pytest
from tests.genesis.loras import gguf_adapter, lora
from tests.genesis.stages import Stage, models_of

from batos.genesis.adapters import repository
from batos.genesis.reconcile import Reconciler
from batos.protocol.errors import AdapterError


async def test_a_new_adapter_acts_at_the_next_mission(stage: Stage) -> None:
    """A folder that is put there becomes a model with it; other content under its name becomes another."""
    plain = await stage.ask()
    folder = stage.home / "adapters" / "robin" / "warm"
    gguf_adapter(folder)
    warm = await stage.ask()
    gguf_adapter(folder, lora(alpha=16.0))
    warmer = await stage.ask()
    families = [models_of(each)[0].partition(":")[0] for each in (plain, warm, warmer)]
    assert families == ["batos-robin", "batos-robin-warm", "batos-robin-warm"]
    assert models_of(warm) != models_of(warmer)
    assert models_of(await stage.ask("BABS"))[0].startswith("batos-babs:")
    with stage.uvm.image.snapshot() as root:
        assert repository.proxies(root)["ROBIN/warm"]["model"] == models_of(warmer)[0]
    assert (stage.home / "modelfiles" / "batos-robin-warm.Modelfile").exists()


async def test_an_adapter_that_does_not_fit_is_left_out(stage: Stage) -> None:
    """Nobody was given it: nothing of it is sent, missions go on as before, and the audit says why."""
    wide = {"blk.0.attn_q.weight.lora_a": (128, 4), "blk.0.attn_q.weight.lora_b": (4, 128)}
    gguf_adapter(stage.home / "adapters" / "robin" / "wide", lora(wide))
    assert models_of(await stage.ask())[0].startswith("batos-robin:")
    assert not any(each["path"].startswith("/api/blobs") for each in stage.emulator.requests)
    report = await stage.uvm.readiness.genesis()
    assert [finding.id for finding in report.findings if not finding.ok] == ["adapters.files"]
    assert report.done == ()
    another = await staged_anew(stage).run()
    assert another.plan.steps
    assert (another.done, another.changes) == ((), ())
    assert await stage.asked_for(stage.ask()) == ["GET /api/tags"]


async def test_a_chosen_adapter_that_does_not_fit_refuses(stage: Stage) -> None:
    """Whole files that the base would not load are no reason to think with the bare base in silence either."""
    folder = stage.home / "adapters" / "robin" / "warm"
    gguf_adapter(folder)
    await stage.ask()
    gguf_adapter(folder, lora({"blk.0.attn_q.weight.lora_a": (128, 4), "blk.0.attn_q.weight.lora_b": (4, 128)}))
    for _ in range(2):
        with pytest.raises(AdapterError, match="ROBIN/warm"):
            await stage.ask()
    with pytest.raises(AdapterError, match="ROBIN/warm"):
        await staged_anew(stage).run()
    gguf_adapter(folder)
    assert models_of(await stage.ask())[0].startswith("batos-robin-warm:")


def staged_anew(stage: Stage) -> Reconciler:
    """What another process would begin with, that has refused nothing yet."""
    uvm = stage.uvm
    return Reconciler(uvm.settings, uvm.image, uvm.bridge, uvm.events, uvm.clock, uvm.reconciler.auditing)


async def test_a_plan_leaves_out_what_does_not_fit(stage: Stage) -> None:
    """The plan is what genesis would do: nothing is said to be made of an adapter that it would leave out."""
    wide = {"blk.0.attn_q.weight.lora_a": (128, 4), "blk.0.attn_q.weight.lora_b": (4, 128)}
    gguf_adapter(stage.home / "adapters" / "robin" / "wide", lora(wide))
    found = await stage.uvm.reconciler.plan()
    assert found.steps == ()
    assert [fault.label for fault in found.inventory.faults] == ["ROBIN/wide"]


async def test_an_adapter_that_is_gone_is_written_down(stage: Stage) -> None:
    """One that nobody thought with is no more said to be there, from the next mission on."""
    for name in ("a", "b"):
        gguf_adapter(stage.home / "adapters" / "robin" / name)
    await stage.ask()
    shutil.rmtree(stage.home / "adapters" / "robin" / "b")
    await stage.ask()
    with stage.uvm.image.snapshot() as root:
        present = {label: proxy["present"] for label, proxy in repository.proxies(root).items()}
    assert present == {"ROBIN/a": True, "ROBIN/b": False}


async def test_a_chosen_adapter_that_is_broken_refuses_the_next_mission(stage: Stage) -> None:
    """A file that is damaged after it was chosen is no reason to think with the bare base in silence."""
    folder = stage.home / "adapters" / "robin" / "warm"
    gguf_adapter(folder)
    await stage.ask()
    gguf_adapter(folder, lora()[:-64])
    with pytest.raises(AdapterError, match="ROBIN/warm") as refused:
        await stage.ask()
    assert refused.value.remedy.endswith("Until then: `batos adapters use ROBIN none`.")
    folder.rename(folder.with_name("Warm"))  # capitals do not count in its name
    with pytest.raises(AdapterError, match="ROBIN/Warm"):
        await stage.ask()
    folder.with_name("Warm").rename(folder)
    gguf_adapter(folder)
    assert models_of(await stage.ask())[0].startswith("batos-robin-warm:")
