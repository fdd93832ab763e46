"""Questions for tests: a candidate as it would be asked about, and moments to ask and answer at."""

from __future__ import annotations

import hashlib
from typing import Any

from tests.image.installing import provenance

from batos.cognition.generating.candidate import Candidate
from batos.image import methods
from batos.image.approvals import Question, kept
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, reference

NAME = "a-01JCZXM2M9QW0S1H5N8X0V4T7A"
AT, LATER, UNTIL, AFTER = (f"2026-11-{day}T10:00:00.000Z" for day in (22, 23, 29, 30))


def made(holder: UvmObject | str, selector: str, intent: Intent, source: str, **also: Any) -> Candidate:
    """A candidate as the generation hands it in; `also` replaces any of its fields."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    fields: dict[str, Any] = {
        "holder": holder if isinstance(holder, str) else reference(holder),
        "selector": selector,
        "intent": methods.digest_of(intent),
        "source": source,
        "verdict": {"accepted": True, "faults": [], "policy": "test", "digest": digest},
        "checks": ({"call": "self.say_()", "result": 1},),
        "provenance": provenance(),
        "mutants": {"made": 4, "killed": 3},
    }
    return Candidate(**{**fields, **also})


def asking(candidate: Candidate, mission: str | None = None, name: str = NAME, at: str = AT) -> Question:
    """The question about a candidate, open for a week."""
    return Question(name, kept(candidate), at, UNTIL, mission)
