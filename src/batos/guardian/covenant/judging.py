"""The covenant of one method, checked literally first, then with common forms of the marker read as they are meant."""

from __future__ import annotations

import ast

from batos.guardian.covenant.statements import StatementFlow
from batos.guardian.forms import Forms
from batos.guardian.policy import GuardianPolicy
from batos.guardian.tidying import marking
from batos.guardian.verdict import SourceFault

_LAST = "covenant-last"


def covenant_of(
    method: ast.FunctionDef | ast.AsyncFunctionDef, forms: Forms, policy: GuardianPolicy, *, tidy: bool
) -> tuple[set[SourceFault], frozenset[str]]:
    """Return the faults against the covenant, and the slots that are changed in place.

    With `tidy` two forms are read as they are meant. Statements after the marker that only compute or report are no
    fault. A marker under a flag counts if two things hold: the flag is set on every path that changes something before
    the path ends, and every such path reaches the place where the flag is tested.

    Raises: TooIntricate: the method cannot be followed.
    """
    faults, mutates = _follow(method, forms, policy)
    if not tidy or not faults:
        return faults, mutates
    if {fault.rule for fault in faults} == {_LAST}:
        return _faults_with_sunk_markers(method, forms, policy) or set(), mutates
    flag = marking.Flag(method, policy)
    if not flag.found:
        return faults, mutates
    with flag.as_marker():
        untold = {fault for fault in _follow(method, forms, policy)[0] if fault.rule != _LAST}
    with flag.mark_at_guards():
        missed = _faults_with_sunk_markers(method, forms, policy)
    return (faults if untold or missed else set()), mutates


def _follow(
    method: ast.FunctionDef | ast.AsyncFunctionDef, forms: Forms, policy: GuardianPolicy
) -> tuple[set[SourceFault], frozenset[str]]:
    covenant = StatementFlow(policy, forms)
    covenant.method(method)
    return covenant.faults, frozenset(covenant.mutates)


def _faults_with_sunk_markers(
    method: ast.FunctionDef | ast.AsyncFunctionDef, forms: Forms, policy: GuardianPolicy
) -> set[SourceFault]:
    """Return the faults that remain when each marker stands behind what only speaks or computes."""
    with marking.sink_markers(method, policy):
        return _follow(method, forms, policy)[0]
