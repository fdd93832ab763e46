"""Read checks from lines of Python: a call with the value that it returns, and the slots before and after it.

The form is `size_("abc") == 3`, with or without `assert`. `self.count = 2` before a call sets a slot, `self.count == 3`
behind it compares one. Lines of another form are passed over: only literals are read, and nothing is run.

Checks that stand in the wish itself are right whoever writes the method, because they were asked for, and no model has
to write others.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.guardian.policy import SHIPPED
from batos.methods.generation.code_text import tree_of
from batos.methods.generation.method_checks import Check, display, equal
from batos.methods.generation.method_spec import MethodSpec, parameter_names
from batos.protocol.errors import UsageError

#: The most checks that are read, and the most of a wish.
MOST: Final = 4
MOST_WISHED: Final = 8
_MARK: Final = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_CALL: Final = re.compile(r"^(?:assert[ \t]+)?(?:not[ \t]+)?(\w+)\(", re.MULTILINE)
_BUILTINS: Final = frozenset(dir(builtins))
_PROMPT: Final = re.compile(r"^[ \t]*(?:>>>[ \t]*|[-*][ \t]+|\d+[.)][ \t]+)")
_SHOWN: Final = re.compile(r"^print\((?P<call>.*)\)[ \t]*#[ \t]*(?:->|=>|==|=|[A-Za-z ]{0,20}:)?[ \t]*(?P<value>.+)$")
_ARROW: Final = re.compile(r"^(?P<call>\w+\(.*\))[ \t]*(?:->|=>|#[ \t]*(?:->|=>|returns)?)[ \t]*(?P<value>.+)$")

#: A call at a prompt of Python, and its result on the next line.
_PROMPTED: Final = re.compile(r"^[ \t]*>>>[ \t]*(.+\))[ \t]*\n[ \t]*(?!>>>)(\S.*)$", re.MULTILINE)


@dataclass(slots=True)
class _Draft:
    """A check that is being read."""

    before: dict[str, Any] = field(default_factory=dict)
    call: tuple[list[Any], Any] | None = None
    slots: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        arguments, result = self.call or ([], None)
        return {"arguments": arguments, "before": self.before, "result": result, "slots": self.slots}


def parse_lines(
    text: str, selector: str, parameters: tuple[str, ...] = (), most: int = MOST
) -> tuple[tuple[Check, ...], list[str]]:
    """Return the checks of a text, at most `most`, and the faults of those that cannot be checks.

    `parameters` are the names of the method's parameters behind the receiver, for calls that name them.
    """
    checks: list[Check] = []
    faults: list[str] = []
    for draft in _drafts(text, selector, parameters):
        try:
            check = Check.from_dict(_plain(draft.as_dict()))
        except (UsageError, ValueError) as error:
            faults.append(str(getattr(error, "message", error)))
            continue
        checks.append(check)
    joined = join_checks(checks)
    if len(joined) < len({_key(check) for check in checks}):
        faults.append("a call has two results")
    return joined[:most], faults


def wish_checks(wanted: MethodSpec) -> tuple[Check, ...]:
    """Return the calls with results in the examples and the text of a wish, each on a line of its own.

    A call with two results is left out, because the wish contradicts itself there. A facet or protocol has none.
    """
    if wanted.speaks:
        return ()
    said = _PROMPTED.sub(r"\1 == \2", "\n".join((wanted.text, *wanted.examples)))
    call = f"{wanted.selector.strip('_')}("
    lines = [line.strip() for line in said.splitlines() if call in line.replace("_(", "(") or "self." in line]
    return parse_lines("\n".join(lines), wanted.selector, tuple(parameter_names(wanted.signature)), MOST_WISHED)[0]


def join_checks(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return each check once; calls with two results are left out, because neither is known to be right."""
    found: dict[str, list[Check]] = {}
    for check in checks:
        found.setdefault(_key(check), []).append(check)
    return tuple(
        same[0]
        for same in found.values()
        if all(
            equal(same[0].result, other.result) and equal(dict(same[0].slots), dict(other.slots)) for other in same[1:]
        )
    )


def beside(given: Sequence[Check], checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the given checks, and those of the others that are about other calls: what is given is right."""
    known = {_key(check) for check in given}
    return (*given, *(check for check in checks if _key(check) not in known))


def _drafts(text: str, selector: str, parameters: tuple[str, ...]) -> Iterator[_Draft]:
    """Yield each check of a text: a call, with the slots that are set before it and compared behind it."""
    draft = _Draft()
    selector = _called_name(text, selector)
    for line in _MARK.sub("", text).replace("\r", "\n").split("\n"):
        found = _statement(_PROMPT.sub("", line).strip())
        if found is None:
            continue
        slot = _slot_value(found)
        call = _call_value(found, selector, parameters)
        if draft.call is not None and (call is not None or (slot is not None and isinstance(found, ast.Assign))):
            yield draft
            draft = _Draft()
        if call is not None:
            draft.call = call
        elif slot is not None:
            (draft.before if isinstance(found, ast.Assign) else draft.slots)[slot[0]] = slot[1]
    if draft.call is not None:
        yield draft


def _called_name(text: str, selector: str) -> str:
    """Return the name by which the lines of a text call the method: its own, or the only other one."""
    called: set[str] = {found for found in _CALL.findall(text) if found not in _BUILTINS}
    if any(each.strip("_") == selector.strip("_") for each in called) or len(called) != 1:
        return selector
    return called.pop()


def _statement(line: str) -> ast.stmt | None:
    """Return a line as a statement; a call that shows its value becomes an `assert`."""
    shown = _SHOWN.match(line) or _ARROW.match(line)
    for text in (f"assert {shown['call']} == {shown['value']}" if shown else line, line):
        tree = tree_of(text)
        if tree is not None:
            return tree.body[0] if len(tree.body) == 1 else None
    return None


def _slot_value(node: ast.stmt) -> tuple[str, Any] | None:
    """Return name and value of `self.name = value` or `self.name == value`; None for another statement."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _pair(node.targets[0], node.value)
    test = node.test if isinstance(node, ast.Assert) else node.value if isinstance(node, ast.Expr) else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        return _pair(test.left, test.comparators[0])
    return None


def _pair(target: ast.expr, value: ast.expr) -> tuple[str, Any] | None:
    """Return the slot that a target names, with its literal."""
    named = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    if not isinstance(target, ast.Attribute) or not named or ast.unparse(target.value) != SHIPPED.receiver:
        return None
    try:
        return target.attr, ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _call_value(node: ast.stmt, selector: str, parameters: tuple[str, ...]) -> tuple[list[Any], Any] | None:
    """Return arguments and result of a line that calls the method with literals; None for another line."""
    test = node.test if isinstance(node, ast.Assert) else node.value if isinstance(node, ast.Expr) else None
    call, value = test, None
    try:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
            call, value = test.left, ast.literal_eval(test.comparators[0])
        elif isinstance(node, ast.Assert):
            negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
            call, value = test.operand if isinstance(test, ast.UnaryOp) and negated else test, not negated
        if isinstance(call, ast.Await):
            call = call.value
        if not isinstance(call, ast.Call) or not _is_method(call.func, selector):
            return None
        return _arguments(call, parameters), value
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None


def _arguments(call: ast.Call, parameters: tuple[str, ...]) -> list[Any]:
    """Return the literal arguments of a call in their order. Raises: ValueError: one is none, or has no place."""
    given = [ast.literal_eval(each) for each in call.args]
    named = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    rest = parameters[len(given) : len(given) + len(named)]
    if set(rest) != set(named):
        raise ValueError("an argument has no place")
    return [*given, *(named[name] for name in rest)]


def _is_method(called: ast.expr, selector: str) -> bool:
    """Test if a call is of the method: by its name, with or without the underscore, of any object."""
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return bool(name) and name.strip("_") == selector.strip("_")


def _plain(value: object) -> Any:
    """Return a literal with lists for tuples, as plain data has them."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _key(check: Check) -> str:
    return display([list(check.arguments), dict(check.before)])
