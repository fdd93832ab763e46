"""The audit: checks one source under one policy and returns a verdict with every fault. The audit never raises."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from batos.guardian import shape, text
from batos.guardian.covenant.effects import TooIntricate
from batos.guardian.covenant.statements import StatementFlow
from batos.guardian.forms import Forms
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED, GuardianPolicy
from batos.guardian.text import SourceText
from batos.guardian.tidying import marking
from batos.guardian.tidying.gathering import find_method
from batos.guardian.tidying.tidy import tidy
from batos.guardian.verdict import SlotUse, SourceFault, Verdict

_FLAT = "write shorter code with less nesting"


@dataclass(frozen=True, slots=True)
class Context:
    """The expectations of an audit: the selector and the signature that the method must have (empty: any), and the
    policy.
    """

    selector: str = ""
    signature: str = ""
    policy: GuardianPolicy = SHIPPED


#: Any selector, any signature, the policy that ships.
ANY = Context()


def audit(source: str | bytes, context: Context = ANY) -> Verdict:
    """Test if a source may become a method, and what it does with slots and messages; never raises."""
    read = text.read(source, context.policy)
    if read.faults:
        return _refuse(read, context, *read.faults)
    try:
        return _judge(read, context)
    except (RecursionError, MemoryError):
        return _refuse(read, context, SourceFault(0, 0, "bounds", "the source is nested too deeply", _FLAT))


def _refuse(read: SourceText, context: Context, *faults: SourceFault) -> Verdict:
    return Verdict(False, tuple(sorted(faults)), context.policy.version, read.digest)


def _judge(read: SourceText, context: Context) -> Verdict:
    tree = _parse_or_fault(read.source)
    if isinstance(tree, SourceFault):
        return _refuse(read, context, tree)
    policy = context.policy
    if context.selector:
        tree = tidy(tree, context.selector, policy.receiver)
    forms = Forms(policy)
    method = find_method(tree, context.selector, policy.receiver)
    forms.method = method.name if method is not None else ""
    whole = forms.walk(tree)
    faults = set(forms.faults)
    for line, column, word in text.foreign_letters(read.source):
        why = f"the name `{ascii(word)[1:-1]}` is not ASCII: it may look like another"
        faults.add(SourceFault(line, column, "name", why, "use ASCII letters in names; texts may hold any"))
    faults.update(shape.faults_of(tree, method, policy))
    if method is None or not whole:
        return _refuse(read, context, *faults)
    faults.update(shape.check_expected(method, context.selector, context.signature))
    mutates: frozenset[str] = frozenset()
    try:
        if forms.may_change:
            broken, mutates = covenant_of(method, forms, policy, tidy=bool(context.selector))
            faults |= broken
        faults |= {shape.kernels(slot, method) for slot in mutates & policy.kernel_slots}
    except TooIntricate:
        faults.add(SourceFault(method.lineno, 0, "bounds", "the method has too many paths to follow", _FLAT))
    writes = frozenset(forms.writes)
    slots = SlotUse(frozenset(forms.reads), writes, mutates, frozenset(forms.deletes))
    return Verdict(
        accepted=not faults,
        faults=tuple(sorted(faults)),
        policy=policy.version,
        digest=read.digest,
        selector=method.name,
        parameters=shape.parameters_of(method),
        is_async=isinstance(method, ast.AsyncFunctionDef),
        slots=slots,
        sends=frozenset(forms.sends),
    )


def _parse_or_fault(source: str) -> ast.Module | SourceFault:
    try:
        return parse(source)
    except SyntaxError as error:
        why = f"this is not Python: {error.msg}"
        return SourceFault(error.lineno or 0, max((error.offset or 1) - 1, 0), "parse", why, "correct the syntax")
    except ValueError as error:
        return SourceFault(0, 0, "parse", f"this is not Python: {error}", "correct the syntax")


# -- the covenant of one method, checked literally first, then with common forms of the marker read as they are meant


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
