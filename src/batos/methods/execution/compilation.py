"""What a method is when it runs: its source, audited by today's policy, and lowered to what the cell runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from batos.cell.program import Program, prepare
from batos.concurrency.offload import offload
from batos.errors import CovenantViolation
from batos.guardian.audit import Context, audit
from batos.objects.method import Method

#: How much more work it is to audit and lower a character than to read it.
_WORK: Final = 8
#: How many programs are kept.
_KEPT: Final = 512


async def program_of(method: Method) -> Program:
    """The method as the cell runs it: made once for each source, and never stored.

    The verdict that is stored with a method says what was known when it was made; what runs is what the guardian
    accepts now. CovenantViolation: it does not. MethodFailed: the cell has no way to run it.
    """
    source, selector = method.source, method.selector
    return await offload(_WORK * len(source), lambda: _program(source, selector))


@lru_cache(maxsize=_KEPT)
def _program(source: str, selector: str) -> Program:
    verdict = audit(source, Context(selector=selector))
    if not verdict.accepted:
        faults = tuple(fault.as_dict() for fault in verdict.faults)
        raise CovenantViolation(
            f"the guardian refuses the method {selector!r}: {verdict.faults[0]}",
            faults=faults,
            remedy="It was accepted by another policy: generate it again, or roll back (`batos method rollback`).",
        )
    return prepare(source, verdict.slots, selector)
