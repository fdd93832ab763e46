"""The trial of a reply: parses, audits and rehearses it, and holds its checks against broken variants."""

from __future__ import annotations

import ast
import asyncio
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeAlias

from batos.cell import program as programs
from batos.cell.cell import Cell
from batos.cell.program import Program
from batos.cell.values import Plain
from batos.events import Events
from batos.guardian.audit import Context, audit
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED, Verdict
from batos.methods.generation import method_checks as checking
from batos.methods.generation.coder_replies import beside, wish_checks
from batos.methods.generation.fault_lines import complete_prompt, fault_lines, missing_return
from batos.methods.generation.method_checks import REPLY, Check, Rehearsal, ScriptedHost, display
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.written_source import read_source
from batos.protocol.errors import CellMissing, DecisionInvalid, InternalError, MethodFailed
from batos.protocol.event_payloads import GUARDIAN_VERDICT, GuardianVerdict
from batos.protocol.method_documents import MutantsDocument

#: The most mutants of one method.
MOST_MUTANTS: Final = 12

#: Changes the node that it was made for in place.
Change: TypeAlias = Callable[[], None]

_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
}


def mutants(source: str) -> list[str]:
    """Return at most MOST sources that differ from the given one in one place each, spread over the method.

    No mutant equals another or the original. The marker `_p_changed` is never changed: the guardian itself refuses a
    method without it.

    Raises: SyntaxError, RecursionError: the source cannot be parsed.
    """
    tree = parse(source)
    nodes = list(ast.walk(tree))
    marked = {part for node in nodes if isinstance(node, ast.Assign) and _is_marker(node) for part in ast.walk(node)}
    places = [
        (index, number)
        for index, node in enumerate(nodes)
        if node not in marked
        for number, _ in enumerate(_changes(node))
    ]
    original = ast.unparse(tree)
    found: list[str] = []
    for index, number in _spread(places):
        copy = deepcopy(tree)
        change = list(_changes(list(ast.walk(copy))[index]))[number]
        change()
        text = ast.unparse(ast.fix_missing_locations(copy))
        if text != original and text not in found:
            found.append(text)
    return found


def _spread(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return MOST of the places at even distances, so that the end of a long method is changed too."""
    if len(places) <= MOST_MUTANTS:
        return places
    return [places[number * len(places) // MOST_MUTANTS] for number in range(MOST_MUTANTS)]


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes that a node allows."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for number, statement in enumerate(node.body):
            if _matters(statement):
                yield partial(node.body.__setitem__, number, ast.Pass())
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield partial(setattr, node, "value", ast.Constant(None))
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield partial(node.ops.__setitem__, 0, _COMPARED[type(node.ops[0])]())
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _COMPUTED:
        yield partial(setattr, node, "op", _COMPUTED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield partial(setattr, node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield partial(setattr, node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        # Texts stay unchanged: a check cannot see the wording of a prompt.
        other = not node.value if isinstance(node.value, bool) else node.value + 1
        yield partial(setattr, node, "value", other)


def _matters(statement: ast.stmt) -> bool:
    """Test if the method changes when the statement is left out.

    A docstring and the marker do not matter, and a statement without which the source does not parse is kept.
    """
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Assign | ast.AugAssign | ast.If | ast.For | ast.While) and not _is_marker(
        statement
    )


def _is_marker(statement: ast.stmt) -> bool:
    """Test if the statement assigns `_p_changed`."""
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Attribute) and target.attr == "_p_changed" for target in statement.targets
    )


_FENCE: Final = "```"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial: the `faults` in words, none if it passed.

    `refused` are the guardian's faults as plain data. `parts` are the results of each method of an object, in the order
    of its API.
    """

    faults: tuple[str, ...]
    refused: tuple[Mapping[str, object], ...] = ()
    source: str = ""
    verdict: Verdict | None = None
    checks: tuple[Check, ...] = ()
    program: Program | None = None
    parts: tuple[TrialResult, ...] = ()
    #: The changes by which the source was read from the reply, as short sentences.
    changes: tuple[str, ...] = ()
    #: False if nothing in the reply could be read as a method: there is nothing to show its author.
    is_readable: bool = True
    #: True if the coder is asked for more before the method can be judged.
    is_pending: bool = False

    def audit_verdict(self) -> Verdict:
        """Return the guardian's verdict on a source that was audited. Raises: InternalError: none was."""
        if self.verdict is None:
            raise InternalError(f"a source without a verdict was to be kept: {'; '.join(self.faults)[:200]}")
        return self.verdict


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries sources of a coder or a person for one specification."""

    wanted: MethodSpec
    cell: Cell
    events: Events

    @property
    def _rehearsal(self) -> Rehearsal:
        """Return the rehearsal for this specification."""
        return Rehearsal(self.cell, self.wanted.given, self.wanted.speaks)

    async def reply(self, text: str) -> TrialResult:
        """Try a coder's whole reply. Raises: CellMissing: there is no cell."""
        try:
            reply = REPLY.parse(text)
        except DecisionInvalid as error:
            return TrialResult((error.message,), is_readable=False)
        checks, faults = checking.parse(reply.checks)
        return await self.reply_source(reply.source, checks, faults)

    async def reply_source(self, text: str, checks: Sequence[Check], faults: Sequence[str] = ()) -> TrialResult:
        """Try a source as a model wrote it: what changes no meaning is corrected first. Raises: as `source`.

        The source must pass the checks of the wish too; those of the model about the same calls do not count.
        """
        read = await asyncio.to_thread(read_source, text, self.wanted.selector, self.wanted.signature)
        checks = beside(wish_checks(self.wanted), checks)
        return replace(await self.source(read.source, checks, faults), changes=read.changes)

    async def draft(self, text: str) -> TrialResult:
        """Audit a source as a small model wrote it, without checks; it is readable if it has a function.

        Text that a facet or protocol is sent, and its intent, are put into its prompt where the model left them out.
        """
        read = await asyncio.to_thread(read_source, text, self.wanted.selector, self.wanted.signature)
        read = complete_prompt(read, self.wanted)
        verdict = await self._audit(read.source)
        found = [
            *await self._fault_lines(read.source, verdict),
            *(self._foreign_writes(verdict) if verdict.listable else ()),
        ]
        refused = tuple(each.as_dict() for each in verdict.faults)
        readable = "def " in read.source
        return TrialResult(tuple(found), refused, read.source, verdict, changes=read.changes, is_readable=readable)

    async def source(self, source: str, checks: Sequence[Check], faults: Sequence[str] = ()) -> TrialResult:
        """Try a source with its checks; `faults` were found before. Raises: CellMissing: there is no cell."""
        verdict = await self._audit(source)
        found = [*await self._fault_lines(source, verdict), *faults]
        if verdict.listable and not faults:
            found += checking.weaknesses(checks, verdict.slots.writes | verdict.slots.deletes)
            found += self._textless_checks(checks)
        if verdict.listable:
            found += self._foreign_writes(verdict)
        refused = tuple(each.as_dict() for each in verdict.faults)
        judged = TrialResult(tuple(found), refused, source, verdict, tuple(checks))
        return judged if found else await self._rehearse(judged, verdict)

    async def agree(self, one: TrialResult, other: TrialResult) -> bool:
        """Test if two sources that passed their checks do the same in further calls too.

        A call that either of them fails is not counted, and too few others are no agreement.
        """
        if one.source == other.source:
            return True
        alike = 0
        for call in further_calls(one.checks):
            try:
                mine, its = [
                    await self._rehearsal.outcome(each.program, call, ScriptedHost(call.replies))
                    for each in (one, other)
                    if each.program is not None
                ]
            except CellMissing:
                raise
            except MethodFailed:
                continue
            if not (checking.equal(mine[0], its[0]) and checking.equal(mine[1], its[1])):
                return False
            alike += 1
        return alike >= LEAST

    async def worth(self, judged: TrialResult) -> MutantsDocument:
        """Return {made, killed}: the number of mutants of an accepted method, and of those that its checks detect."""
        verdict = judged.audit_verdict()
        made = killed = 0
        for text in await asyncio.to_thread(mutants, judged.source):
            try:
                program = await self._prepare(text, verdict)
            except MethodFailed:  # not a method at all, so no check is needed to detect it
                continue
            made += 1
            killed += await self._kills(program, judged.checks)
        return {"made": made, "killed": killed}

    async def _audit(self, source: str) -> Verdict:
        """Audit the source in a thread, and emit the guardian's verdict."""
        context = Context(selector=self.wanted.selector, signature=self.wanted.signature)
        verdict = await asyncio.to_thread(audit, source, context)
        self.events.emit(
            GUARDIAN_VERDICT,
            GuardianVerdict(
                selector=self.wanted.selector,
                accepted=verdict.accepted,
                faults=[fault.rule for fault in verdict.faults],
                policy=verdict.policy,
                digest=verdict.digest,
            ),
        )
        return verdict

    async def _fault_lines(self, source: str, verdict: Verdict) -> tuple[str, ...]:
        """Return the guardian's faults for the author, a line each; corrections are computed in a thread."""
        if not verdict.faults:
            return ()
        context = Context(selector=self.wanted.selector, signature=self.wanted.signature)
        return await asyncio.to_thread(fault_lines, source, verdict, context)

    def _foreign_writes(self, verdict: Verdict) -> list[str]:
        """Return a fault for each slot that the source changes and only the codex and the kernel may write."""
        slots = verdict.slots
        # The guardian itself refuses writes to slots that are the kernel's in every object.
        own = self.wanted.protected - SHIPPED.kernel_slots
        taken = sorted((slots.writes | slots.mutates | slots.deletes) & own)
        return [f"it changes `{name}`, which only the codex and the kernel write" for name in taken]

    def _textless_checks(self, checks: Sequence[Check]) -> list[str]:
        """Return a fault for each check of a facet or protocol whose expected result is no text."""
        if not self.wanted.speaks:
            return []
        return [
            f"check {number}: a {self.wanted.kind} answers with text, not with {checking.display(check.result)}"
            for number, check in enumerate(checks, 1)
            if not isinstance(check.result, str)
        ]

    async def _rehearse(self, judged: TrialResult, verdict: Verdict) -> TrialResult:
        """Run the checks on a source without faults, and return the result."""
        try:
            program = await self._prepare(judged.source, verdict)
        except MethodFailed as error:
            return TrialResult((error.message,), (), judged.source, verdict, judged.checks)
        faults = await self._rehearsal.all(program, judged.checks)
        unreturned = missing_return(judged.source, self.wanted.selector) if faults else ""
        if unreturned:
            faults.insert(0, unreturned)
        return TrialResult(tuple(faults), (), judged.source, verdict, judged.checks, program)

    async def _prepare(self, source: str, verdict: Verdict) -> Program:
        """Lower the source in a thread: for a hundred lines this takes most of the time that a callback may use."""
        return await asyncio.to_thread(programs.prepare, source, verdict.slots, self.wanted.selector)

    async def _kills(self, program: Program, checks: Sequence[Check]) -> bool:
        """Test if any of the checks fails against the program."""
        for check in checks:
            if await self._rehearsal.one(program, check):
                return True
        return False


def clean(source: str) -> str:
    r"""Return a source without the wrapping that models add: a code fence, an indentation, blank lines at both ends.

    >>> clean("```python\n  def f_(self):\n      return 1\n```\n")
    'def f_(self):\n    return 1\n'
    """
    lines = source.split("\n")
    while lines and (not lines[0].strip() or lines[0].strip().startswith(_FENCE)):
        lines.pop(0)
    while lines and (not lines[-1].strip() or lines[-1].strip() == _FENCE):
        lines.pop()
    return textwrap.dedent("\n".join(lines)) + "\n"


# -- makes further calls of a method from those of its checks, of the same types, to compare two methods by


#: The most further calls, and the fewest that must be answered alike by two methods.
MOST: Final = 12
LEAST: Final = 3


def further_calls(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return calls that no check makes, each with one argument changed, at most MOST.

    >>> [list(call.arguments) for call in further_calls([Check(["ab", 2])])]
    [['ab ab', 2], ['ba', 2], ['aab', 2], ['ab', 3], ['ab', 7]]
    """
    known = {display(list(check.arguments)) for check in checks}
    found: list[Check] = []
    for check in checks:
        for arguments in _variants(check.arguments):
            if display(arguments) not in known:
                known.add(display(arguments))
                found.append(Check(arguments, check.before, check.replies))
    return tuple(found[:: max(1, -(-len(found) // MOST))])


def _variants(arguments: Sequence[Plain]) -> Iterator[list[Plain]]:
    """Yield the arguments with one of them changed."""
    for place, value in enumerate(arguments):
        for other in _values_beside(value):
            yield [*arguments[:place], other, *arguments[place + 1 :]]


def _values_beside(value: Plain) -> Iterable[Plain]:
    """Return values of the same type, made of the same parts."""
    if isinstance(value, bool) or not value:
        return ()
    if isinstance(value, str):
        return f"{value} {value}", value[::-1], value[:1] + value
    if isinstance(value, int | float):
        return value + 1, value * 3 + 1
    if isinstance(value, list):
        return value[::-1], value[1:], [*value, value[0], value[-1]], [*value[1:], *value, *value]
    return ()
