"""The audit: one source under one policy becomes a verdict, with every fault there is; it never raises."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from batos.guardian import text
from batos.guardian.policy import SHIPPED, Policy
from batos.guardian.verdict import Fault, SlotUse, Verdict


@dataclass(frozen=True, slots=True)
class Context:
    """What a source is audited for: the selector and the signature that it must have (empty: any), and the policy."""

    selector: str = ""
    signature: str = ""
    policy: Policy = SHIPPED


def audit(source: str | bytes, context: Context = Context()) -> Verdict:
    """Say whether a source may become a method, and what it does with slots and messages; never raises."""
    policy = context.policy
    read = text.read(source, policy)
    if read.faults:
        return Verdict(False, read.faults, policy.version, read.digest)
    try:
        tree = ast.parse(read.source)
    except SyntaxError as error:
        fault = Fault(
            error.lineno or 0, error.offset or 0, "parse", f"it is no Python: {error.msg}", "correct the syntax"
        )
        return Verdict(False, (fault,), policy.version, read.digest)
    reads: set[str] = set()
    writes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == policy.receiver:
            (reads if isinstance(node.ctx, ast.Load) else writes).add(node.attr)
    method = tree.body[-1] if tree.body else None
    if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
        fault = Fault(0, 0, "shape", "the source has no method", "write one `def`")
        return Verdict(False, (fault,), policy.version, read.digest)
    slots = SlotUse(frozenset(reads), frozenset(writes - {policy.marker}), frozenset(reads))
    is_async = isinstance(method, ast.AsyncFunctionDef)
    return Verdict(True, (), policy.version, read.digest, method.name, ast.unparse(method.args), is_async, slots)
