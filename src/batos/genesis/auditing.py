"""ALFRED's System Integrity Audit around a genesis: the faults before anything is written, and those that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from batos.config import Settings
from batos.genesis import adapter_check, budget_check, persona_models
from batos.genesis.codex.codex import Codex
from batos.genesis.daemon_listing import GenesisDaemon
from batos.genesis.integrity import Finding
from batos.genesis.plan import Plan, compare
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root


class Audit(Protocol):
    """The audit itself, which only computes."""

    def __call__(
        self, root: Root, codex: Codex, plan: Plan | None, profile: str = "default", extra: Sequence[Finding] = ()
    ) -> tuple[Finding, ...]:
        """Return the findings on codex, image and models, with `extra` after them."""
        ...


@dataclass(frozen=True, slots=True)
class Auditing:
    """Runs an audit when a genesis opens and when it closes."""

    audit: Audit
    settings: Settings
    image: LivingImage
    daemon: GenesisDaemon
    clock: Callable[[], datetime]

    def audit_before(self, found: Plan) -> tuple[Finding, ...]:
        """Audit codex and image before anything is written, asking nobody; return the faults."""
        with self.image.snapshot() as root:
            findings = self.audit(root, found.codex, found, found.profile)
        return tuple(finding for finding in findings if not finding.ok)

    async def audit_after(self, done: Plan) -> tuple[tuple[Finding, ...], str]:
        """Audit what genesis made, and keep the findings in the image if they differ from the last ones.

        Returns them with the time since when they hold.
        """
        extra = adapter_check.findings(done.inventory, done.chosen, done.adapters, done.codex, done.profile)
        extra += await budget_check.findings(done, self.settings, self.daemon)
        with self.image.snapshot() as root:
            known = persona_models.read_record(root)
            found = compare(done.codex, done.profile, done.listed, done.inventory, done.chosen, known)
            findings = self.audit(root, done.codex, found, done.profile, extra)
        shown = [finding.as_dict() for finding in findings]
        at = await self.image.shared.apply(lambda root: persona_models.keep_audit(root, shown, iso(self.clock())))
        return findings, at
