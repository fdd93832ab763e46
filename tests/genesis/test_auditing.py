"""The audit opens a genesis and closes it: an argument, called before anything is written and after all of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.image.open_image import dump

from batos.config import Settings
from batos.events import Events
from batos.genesis import integrity
from batos.genesis.codex.codex import Codex
from batos.genesis.integrity import Finding
from batos.genesis.plan import Plan
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams, open_uvm


class Watching:
    """An audit that remembers what the image and the daemon held whenever it was called."""

    def __init__(self, uvm: UVM, bridge: ScriptedBridge) -> None:
        self.uvm, self.bridge = uvm, bridge
        self.met: list[tuple[dict[bytes, bytes], set[str]]] = []
        uvm.reconciler.auditing = replace(uvm.reconciler.auditing, audit=self)

    def __call__(
        self, root: Any, codex: Codex, plan: Plan | None, profile: str = "default", extra: Sequence[Finding] = ()
    ) -> tuple[Finding, ...]:
        """Audit as ever."""
        self.met.append((dump(self.uvm.image), set(self.bridge.rows)))
        return integrity.audit(root, codex, plan, profile, extra)


async def test_it_opens_and_closes(tmp_path: Path) -> None:
    """The first is of the empty image, before a model is made; the second of all that is there then."""
    bridge = ScriptedBridge()
    async with open_uvm(Settings(home=tmp_path, user="tester"), Events(log=False), Seams(bridge=bridge)) as uvm:
        image, models = dump(uvm.image), set(bridge.rows)
        watching = Watching(uvm, bridge)
        report = await uvm.readiness.genesis()
        assert watching.met[0] == (image, models)
        (_, closing) = watching.met
        assert closing[1] == set(bridge.rows) > models
        assert {"codex.digest", "image.root", "models.create"} <= {each.id for each in report.faults}
        assert all(finding.ok for finding in report.findings)
        again = await uvm.readiness.genesis()
        assert (again.faults, again.changes) == ((), ())
        assert again.as_dict()["found"] == []


async def test_what_it_met_is_told(tmp_path: Path) -> None:
    """A persona that lost a pillar and a model that is gone are found first, and mended."""
    bridge = ScriptedBridge()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await uvm.image.writer.apply(lambda root: delattr(root["robin_prototype_obj"], "sage_facet_"))
        del bridge.rows[next(name for name in bridge.rows if name.startswith("batos-brick"))]
        told = (await uvm.readiness.genesis()).as_dict()
        assert {"persona.robin", "models.create"} <= {each["id"] for each in told["found"]}
        assert "sage_facet_ is missing" in str(told["found"])
        assert all(each["ok"] for each in told["audit"])
