"""A process that is killed while it learns: the next one pays for nothing that was answered, and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.image.open_image import child, heard
from tests.methods.generation.learning import MESSAGE, learning

from batos.objects.method import Method
from batos.testing import wanted_selector


async def killed(home: Path, answered: int, until: str) -> None:
    """Run a process that learns, let so many of its coder's calls be answered, and kill it when it says `until`."""
    with child(Path(__file__).with_name("script_learn.py"), home) as process:
        assert process.stdin is not None
        process.stdin.write("go\n" * answered)
        process.stdin.flush()
        line = "begun"
        while line not in ("", until):
            line = await heard(process)
        assert line == until


@pytest.mark.parametrize(("answered", "until", "left"), [(1, "asked 1", 1), (2, "method.installed", 0)])
async def test_what_was_answered_is_not_paid_again(tmp_path: Path, answered: int, until: str, left: int) -> None:
    """Killed between two answers, or just when its method was installed: only what was not answered is asked."""
    await killed(tmp_path, answered, until)
    async with learning(tmp_path, memory=False) as mind:
        (mission,) = await mind.uvm.missions.recover()
        done = await mind.uvm.missions.run(mission)
        assert done["status"] == "done"
        assert done["provenance"]["methods"][0]["as"].startswith("method")
        assert mind.slot("guide_facet_") is Method
        coded = [request for request in mind.bridge.history if wanted_selector(request)]
        assert len(coded) == left
        # What goes on is the dialogue that was begun: with the reply that was wrong, and what was said of it.
        assert [len(request.messages) for request in coded] == [2 + 2 * answered] * left
        assert (await mind.uvm.missions.ask(MESSAGE))["status"] == "done"
        assert len([request for request in mind.bridge.history if wanted_selector(request)]) == left
