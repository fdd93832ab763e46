"""A person's own source for an intent: audited and tried like a coder's, with checks that a person or a coder wrote."""

from __future__ import annotations

from collections.abc import Sequence

from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import clean
from batos.protocol.errors import CovenantViolation, GenerationFailed, UsageError
from batos.protocol.method_documents import MethodProvenance
from batos.records.candidates import Candidate

_REMEDY = (
    "Correct it, or bring checks of your own with --checks FILE: `batos method show NAME --checks` prints those that "
    "bind it now, to begin from."
)


async def handwritten_candidate(
    deps: GenerationDeps, wanted: MethodSpec, source: str, checks: Sequence[Check], by: str
) -> Candidate:
    """Return a candidate of this source.

    Raises: UsageError: there are no checks. CovenantViolation: the guardian refuses the source. GenerationFailed: the
    source fails its checks.
    """
    if not checks:
        raise UsageError(
            f"{wanted.selector!r} of {wanted.name} has no checks yet",
            field="checks",
            remedy="Give at least two with the source; `batos help generation` shows what one is.",
        )
    trial = deps.trial(wanted)
    judged = await trial.source(clean(source), checks)
    what = f"this source for {wanted.selector!r} of {wanted.name}"
    if judged.refused:
        raise CovenantViolation(f"the guardian refuses {what}: {'; '.join(judged.faults)}", faults=judged.refused)
    if judged.faults:
        raise GenerationFailed(f"{what} does not pass: {'; '.join(judged.faults)}", remedy=_REMEDY)
    made = MethodProvenance(generation="", model="", model_digest="", prompt_digest="", trust="user", by=by)
    return await deps.candidate(wanted, trial, judged, made)
