"""Questions for tests: a candidate as it would be asked about, and moments to ask and answer at."""

from __future__ import annotations

from typing import Any

from tests.image.installing import candidate

from batos.objects.method import Intent
from batos.objects.prototype import UvmObject
from batos.records.approval_subjects import Candidate
from batos.records.approvals import ApprovalQuestion

NAME = "a-01JCZXM2M9QW0S1H5N8X0V4T7A"
AT, LATER, UNTIL, AFTER = (f"2026-11-{day}T10:00:00.000Z" for day in (22, 23, 29, 30))


def made(holder: UvmObject | str, selector: str, intent: Intent, source: str, **also: Any) -> Candidate:
    """A candidate as the generation hands it in; `also` replaces any of its fields."""
    return candidate(holder, selector, intent, source, **{"mutants": {"made": 4, "killed": 3}, **also})


def asking(asked: Candidate, mission: str | None = None, name: str = NAME, at: str = AT) -> ApprovalQuestion:
    """The question about a candidate, open for a week."""
    return ApprovalQuestion(name, asked, at, UNTIL, mission)
