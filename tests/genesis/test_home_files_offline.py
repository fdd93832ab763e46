"""The plan as it is seen without holding the image: nothing is changed, and whoever holds it is not minded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from tests.genesis.loras import gguf_adapter
from tests.genesis.stages import staged

from batos.config import Settings
from batos.genesis import home_files
from batos.genesis.adapters import repository
from batos.genesis.codex import codex as codices
from batos.genesis.daemon_listing import DaemonModels, look


def files(home: Path) -> Mapping[str, bytes]:
    """Every file of a home."""
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


async def test_beside_whoever_holds_the_image(tmp_path: Path) -> None:
    """The plan is that of the process that has it open, with what the image chose, and no byte is changed."""
    home = tmp_path / "home"
    async with staged(home) as stage:
        gguf_adapter(home / "adapters" / "robin" / "a")
        gguf_adapter(home / "adapters" / "robin" / "b")
        for path in (home / "adapters").rglob("*.gguf"):
            os.utime(path, (0, 0))  # what is new may still be written to, and its digest is not yet kept
        await stage.ask()
        await stage.uvm.image.writer.apply(lambda root: repository.choose(root, "ROBIN", "b"))
        await stage.uvm.mission_memory.write()  # else in the background, between the two looks
        before = files(home)
        codex, listed = stage.uvm.reconciler.codex(), await look(stage.other)
        inventory = await home_files.check_inventory(stage.uvm.settings, codex, listed, stage.other)
        found = home_files.make_plan(stage.uvm.settings, codex, listed, inventory)
        assert files(home) == before
        assert found == await stage.uvm.reconciler.plan()
        assert found.models["ROBIN"].startswith("batos-robin-b:")


def test_where_nothing_is(tmp_path: Path) -> None:
    """Without home, image and adapters there is a plan too, of the codex that ships."""
    settings = Settings(home=tmp_path / "absent")
    codex = codices.standing(settings.home / "codex")[0].sound()
    found = home_files.make_plan(settings, codex, DaemonModels("0.33.0", ()), home_files.read_inventory(settings))
    assert [step.kind for step in found.steps] == ["pull", *["create"] * 4, "pull"]
    assert not settings.home.exists()


def test_an_image_that_cannot_be_read(tmp_path: Path) -> None:
    """Whoever needs the image says what is wrong with it; here it is as if it knew nothing."""
    settings = Settings(home=tmp_path)
    (tmp_path / "live_image.fs").write_bytes(b"no image")
    assert home_files.read_offline(settings, lambda root: root) is None
