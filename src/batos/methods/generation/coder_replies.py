"""Find in a model's reply the code, fenced or not, and checks written as lines of Python.

The form is `size_("abc") == 3`, with or without `assert`. `self.count = 2` before a call sets a slot, `self.count == 3`
behind it compares one. Lines of another form are passed over: only literals are read, and nothing is run.

Checks that stand in the wish itself are right whoever writes the method, because they were asked for, and no model has
to write others.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED
from batos.methods.generation.method_checks import Check, display, equal
from batos.methods.generation.method_spec import MethodSpec, parameter_names
from batos.protocol.errors import UsageError

PROSE: Final = "text around the code was left out"
INDENTED: Final = "the lines after the first were indented"
COLON: Final = "`:` was put at the end of the first line"
HEADED: Final = "the first line was put before the body"

_FENCE: Final = re.compile(r"^[ \t]*(`{3,}|~{3,})[^\n`]*\n(.*?)(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARK: Final = re.compile(r"[ \t]*(?:`{3,}|~{3,})")
_DEF: Final = re.compile(r"^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)[ \t]*\(", re.MULTILINE)
_CLASS: Final = re.compile(r"^[ \t]*class[ \t]+\w+", re.MULTILINE)
#: A line with which code begins that stands without a fence.
_BEGIN: Final = re.compile(
    r"(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]|@\w"
    r"|import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?(?:[ \t]*,[ \t]*[\w.]+)*[ \t]*(?:#.*)?$"
    r"|from[ \t]+[\w.]+[ \t]+import[ \t]+[\w(*])"
)
_HEADER: Final = re.compile(r"^((?:async[ \t]+)?def[ \t]+\w+[ \t]*\([^#\n]*\))[ \t]*$", re.MULTILINE)
_PROMPT: Final = re.compile(r"^(?:>>>|\.\.\.)(?: |$)", re.MULTILINE)
#: A line that is code at the wrong indentation, and no prose: what stands there may belong to the function.
_CODE: Final = re.compile(
    r"(?:(?:else|elif|except|finally|try|for|while|if|with)\b[^\n]*:[ \t]*(?:#.*)?"
    r"|(?:return|yield|raise)\b[ \t]*[^\w\s].*"
    r"|(?:return|yield|raise)[ \t]+[\w.]+(?:[ \t]*[^\w\s'].*)?|pass|break|continue|\w+[ \t]*[-+*/]?=[^=].*)$"
)
#: So many ends of the code are tried before it is taken as it is.
_MOST_CUTS: Final = 40


@dataclass(frozen=True, slots=True)
class CodeText:
    """The code of a reply, and what was changed to have it, as short sentences."""

    code: str
    changes: tuple[str, ...] = ()


def find_code(text: str, selector: str, header: str = "") -> CodeText:
    r"""Return the code of a reply: the block with the function of that name, else the first with any function.

    Code that is no Python is mended only where nothing else can be meant: prose behind it is cut off, a body without
    indentation is indented, a missing colon is written. `header` is put before a body that stands alone.

    >>> find_code("Sure!\n```python\ndef f_(self):\n    return 1\n```\nIt works.", "f_").code
    'def f_(self):\n    return 1\n'
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    blocks = [found[2] for found in _FENCE.finditer(text)]
    chosen = _choose(blocks, selector)
    if chosen is None:
        found = _code_in_prose(text, blocks, header)
    else:
        outside = _FENCE.sub("", text).strip() or len(blocks) > 1
        found = CodeText(chosen, (PROSE,) if outside else ())
    code = _without_prompts(found.code)
    mended = _mend(_tidy_ends(code), found.changes)
    return CodeText(f"{mended.code}\n" if mended.code else "", mended.changes)


def _choose(blocks: list[str], selector: str) -> str | None:
    """Return the block that defines the function, else the first that defines any; None if none does."""
    named = [block for block in blocks if any(found[1] == selector for found in _DEF.finditer(block))]
    return next(iter(named or [block for block in blocks if _DEF.search(block)]), None)


def _code_in_prose(text: str, blocks: list[str], header: str) -> CodeText:
    """Return the code of a text in which no fence holds a function."""
    if _DEF.search(text) and _is_python(text):
        return CodeText(text)
    lines = text.split("\n")
    begin = next((place for place, line in enumerate(lines) if _BEGIN.match(line.strip())), None)
    if begin is not None:
        before = any(line.strip() and not _MARK.match(line) for line in lines[:begin])
        kept = [line for line in lines[begin:] if not _MARK.match(line)]
        return CodeText("\n".join(kept), (PROSE,) if before else ())
    body = _body_alone(blocks[0] if blocks else text)
    if header and body:
        outside = bool(blocks) and bool(_FENCE.sub("", text).strip())
        return CodeText(f"{header}\n{body}", (*((PROSE,) if outside else ()), HEADED))
    return CodeText("\n".join(line for line in lines if not _MARK.match(line)))


def _body_alone(code: str) -> str:
    """Return the lines as the body of a function, "" if they are none that returns something."""
    lines = _tidy_ends(code).split("\n")
    if not any(line.strip().startswith("return ") for line in lines):
        return ""
    body = textwrap.indent("\n".join(lines), "    ")
    return body if _is_python(f"async def body():\n{body}\n") else ""


def _without_prompts(code: str) -> str:
    """Return code without the prompts of an interpreter, if each of its lines has one."""
    lines = [line for line in code.split("\n") if line.strip()]
    if lines and all(_PROMPT.match(line.strip()) for line in lines):
        return "\n".join(_PROMPT.sub("", line.strip()) for line in lines)
    return code


def _tidy_ends(code: str) -> str:
    """Return code without blank lines at its ends and without a common indentation."""
    lines = code.expandtabs(4).split("\n") if "\t" in code and not _is_python(f"{code}\n") else code.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    whole = textwrap.dedent("\n".join(lines))
    first = lines[0][: len(lines[0]) - len(lines[0].lstrip())] if lines else ""
    if whole[:1] not in (" ", "\t") or not first:
        return whole
    # A sentence behind the code may be less indented than the code itself.
    return "\n".join(line.removeprefix(first) for line in lines)


def _mend(code: str, changes: tuple[str, ...]) -> CodeText:
    """Return the code as Python if one of the listed changes makes it so; else as it is."""
    if _is_python(f"{code}\n"):
        return CodeText(code, changes)
    for whole, told in _mendings(code):
        for cut in _cuts(whole):
            if _is_python(f"{cut}\n"):
                more = (*told, *((PROSE,) if cut != whole else ()))
                return CodeText(cut, tuple(dict.fromkeys((*changes, *more))))
    return CodeText(code, changes)


def _mendings(code: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the code as it is, with a colon, indented, and with both, each with what was changed."""
    yield code, ()
    closed = _HEADER.sub(r"\1:", code)
    if closed != code:
        yield closed, (COLON,)
    for whole, told in ((code, ()), (closed, (COLON,))):
        indented = _indent_body(whole)
        if indented != whole and (whole is code or closed != code):
            yield indented, (*told, INDENTED)


def _indent_body(code: str) -> str:
    """Return the code with all lines after the header of its only function indented, if none of them is."""
    heads = list(_DEF.finditer(code))
    lines = code.split("\n")
    if len(heads) != 1 or _CLASS.search(code):
        return code
    at = code.count("\n", 0, heads[0].end())
    rest = lines[at + 1 :]
    first = next((line for line in rest if line.strip()), "")
    if not first or first[0] in " \t" or not lines[at].rstrip().endswith(":"):
        return code
    return "\n".join((*lines[: at + 1], *(f"    {line}" if line.strip() else line for line in rest)))


def _cuts(code: str) -> Iterator[str]:
    """Yield the code, then without its last lines: only from a line that is not indented, behind the first function.

    A line of a function's body is never left out, nor is one that may be of it and has lost its indentation.
    """
    yield code
    lines = code.split("\n")
    head = _DEF.search(code)
    if head is None:
        return
    first = code.count("\n", 0, head.end()) + 1
    places = [at for at in range(first, len(lines)) if lines[at].strip() and lines[at][0] not in " \t"]
    code_at = next((at for at in places if _CODE.match(lines[at])), len(lines))
    for at in [at for at in reversed(places) if at < code_at][:_MOST_CUTS]:
        kept = "\n".join(lines[:at]).rstrip()
        if "\n" in kept[head.end() :]:
            yield kept


def _is_python(code: str) -> bool:
    return tree_of(code) is not None


def tree_of(code: str) -> ast.Module | None:
    """Return the tree of a text that is Python; None for any other."""
    try:
        return parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


#: The most checks that are read, and the most of a wish.
MOST: Final = 4
MOST_WISHED: Final = 8
_LINE_MARK: Final = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_CALL: Final = re.compile(r"^(?:assert[ \t]+)?(?:not[ \t]+)?(\w+)\(", re.MULTILINE)
_BUILTINS: Final = frozenset(dir(builtins))
_LINE_PROMPT: Final = re.compile(r"^[ \t]*(?:>>>[ \t]*|[-*][ \t]+|\d+[.)][ \t]+)")
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
    for line in _LINE_MARK.sub("", text).replace("\r", "\n").split("\n"):
        found = _statement(_LINE_PROMPT.sub("", line).strip())
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
