"""Candidates for tests: a method as a generation would hand it in, with a verdict on exactly its source."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, cast

from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.method_documents import MethodProvenance
from batos.records import methods
from batos.records.approval_subjects import Candidate

AT = "2026-11-22T10:00:00.000Z"
CODER = "c0de" * 16


def provenance(missions: Sequence[str] = ("m-1",), trust: str = "model", **also: str) -> MethodProvenance:
    """What every method says of where it comes from; `also` has an approval."""
    made = MethodProvenance(
        generation="g-1",
        missions=list(missions),
        model="coder",
        model_digest=CODER,
        prompt_digest="p",
        at=AT,
        trust=trust,
    )
    return cast("MethodProvenance", {**made, **also})


def candidate(holder: UvmObject | str, selector: str, intent: Intent, source: str, /, **also: Any) -> Candidate:
    """A candidate that is accepted; `also` replaces any of its fields."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    fields: dict[str, Any] = {
        "holder": holder if isinstance(holder, str) else reference(holder),
        "selector": selector,
        "intent": methods.digest_of(intent),
        "source": source,
        "verdict": {"accepted": True, "faults": [], "policy": "test", "digest": digest},
        "checks": ({"call": "self.say_()", "result": 1},),
        "provenance": provenance(),
    }
    return Candidate(**{**fields, **also})


def standing(root: Any, holder: UvmObject, selector: str) -> Intent:
    """The intent that the slot serves."""
    lineage = methods.lineage_of(root, holder, selector)
    value = own_slots(holder)[selector] if lineage is None else lineage.intent
    assert isinstance(value, Intent)
    return value


def install(root: Any, holder: UvmObject, selector: str, source: str, /, **also: Any) -> Method:
    """A source as the next revision of a slot that holds an intent, or a method made from it."""
    return methods.install(root, candidate(holder, selector, standing(root, holder, selector), source, **also), AT)
