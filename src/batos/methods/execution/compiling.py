"""Compilation of methods: the source, audited by today's policy and lowered to the program that the cell runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from batos.cell.program import Program, prepare
from batos.concurrency.threads import offload
from batos.guardian.audit import Context, audit
from batos.objects.method import Method
from batos.protocol.errors import CovenantViolation

#: The number of cached programs.
_KEPT: Final = 512
#: The work of auditing and lowering a character, as a multiple of reading one.
_WORK: Final = 8


async def program_of(method: Method) -> Program:
    """Return the program of a method for the cell.

    Programs are cached in memory by source, and never stored in the image.

    The verdict that is stored with a method records the policy of the day on which it was made. This function audits
    the source again, so only methods that the guardian accepts now are run.

    Raises: CovenantViolation: the guardian refuses the source now. MethodFailed: the source cannot be lowered to a
    program.
    """
    source, selector = method.source, method.selector
    return await offload(_WORK * len(source), lambda: _program(source, selector))


@lru_cache(maxsize=_KEPT)
def _program(source: str, selector: str) -> Program:
    """Audit and lower a source. Raises: CovenantViolation; MethodFailed."""
    verdict = audit(source, Context(selector=selector))
    if not verdict.accepted:
        faults = tuple(fault.as_dict() for fault in verdict.faults)
        raise CovenantViolation(
            f"the guardian refuses the method {selector!r}: {verdict.faults[0]}",
            faults=faults,
            remedy="It was accepted by another policy: generate it again, or roll back (`batos method rollback`).",
        )
    return prepare(source, verdict.slots, selector)
