"""The faults of a source in a line each for its author, corrected where computable; and prompts mended by rule.

A correction is offered only if the guardian, asked again, no longer finds the fault and finds no other one.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from batos.gate import languages
from batos.guardian.audit import Context, audit
from batos.guardian.policy import SHIPPED, SourceFault, Verdict
from batos.guardian.tidying import marking
from batos.guardian.tidying.marking import Def
from batos.memory.segmentation import stems, terms
from batos.methods.generation.coder_replies import tree_of
from batos.methods.generation.method_spec import MethodSpec, parameter_names
from batos.methods.generation.written_source import WrittenSource

_MARKER: Final = f"{SHIPPED.receiver}.{SHIPPED.marker} = True"
#: Words of other languages that mean one of Python's.
_FOREIGN: Final = {"null": "None", "nil": "None", "undefined": "None", "true": "True", "false": "False"}
_PRINT: Final = re.compile(r"^(\s*)print[ \t]+(.+)$")
_ELSE_IF: Final = re.compile(r"^(\s*)else[ \t]+if\b")
_BLOCK: Final = re.compile(r"^\s*(?:async[ \t]+)?(?:def|if|elif|else|for|while|try|except|finally)\b.*[^:\s]\s*$")
#: So many corrections of a fault are tried.
_MOST: Final = 8


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction: a line in place of another, before it, or in place of nothing; `new` is "" for a line left out."""

    line: int
    new: str
    inserts: bool = False

    def apply(self, source: str) -> str:
        """Return the source with the correction."""
        lines = source.split("\n")
        lines[self.line - 1 : self.line - (1 if self.inserts else 0)] = [self.new] if self.new or self.inserts else []
        return "\n".join(lines)

    def describe(self, source: str) -> str:
        """Return the correction as an order."""
        lines = [*source.split("\n"), ""]
        old = lines[self.line - 1].strip()
        if self.inserts:
            place = f"before `{old}`" if old else f"after `{lines[self.line - 2].strip()}`"
            return f"write `{self.new.strip()}` {place}"
        return f"write `{self.new.strip()}` instead of `{old}`" if self.new else f"leave out `{old}`"


def fault_lines(source: str, verdict: Verdict, context: Context) -> tuple[str, ...]:
    """Return the faults of a verdict, a line each."""
    return tuple(_fault_line(source, fault, verdict, context) for fault in verdict.faults)


def _fault_line(source: str, fault: SourceFault, verdict: Verdict, context: Context) -> str:
    """Return `line 3: write ... instead of ...: why`, or without a correction the line, the reason and the remedy."""
    found = correct(source, fault, verdict, context)
    if found is not None:
        return f"line {found.line}: {found.describe(source)}: {fault.why}"
    lines = source.split("\n")
    text = lines[fault.line - 1].strip() if 0 < fault.line <= len(lines) else ""
    shown = f", `{text}`" if text else ""
    where = f"line {fault.line}{shown}" if fault.line else "the source"
    return f"{where}: {fault.why}; {fault.remedy}"


def missing_return(source: str, selector: str) -> str:
    """Return the line that lacks its `return`, if a method returns nothing anywhere; "" for any other source.

    >>> missing_return("def size_(self, text):\\n    size = len(text)\\n", "size_")
    'line 2: write `return size` after `size = len(text)`: the method returns nothing'
    """
    tree = tree_of(source)
    method = (
        next((node for node in tree.body if isinstance(node, Def) and node.name == selector), None) if tree else None
    )
    if method is None or any(isinstance(node, ast.Return) and node.value for node in ast.walk(method)):
        return ""
    last, text = method.body[-1], source.split("\n")[method.body[-1].lineno - 1].strip()
    if isinstance(last, ast.Assign | ast.AugAssign | ast.AnnAssign):
        target = last.targets[0] if isinstance(last, ast.Assign) else last.target
        if isinstance(target, ast.Name):
            return f"line {last.lineno}: write `return {target.id}` after `{text}`: the method returns nothing"
    if isinstance(last, ast.Expr):
        printed = isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "print"
        value = last.value.args[0] if isinstance(last.value, ast.Call) and printed and last.value.args else last.value
        return (
            f"line {last.lineno}: write `return {ast.unparse(value)}` instead of `{text}`: the method returns nothing"
        )
    return f"line {method.lineno}: the method returns nothing; write `return` and the result as its last line"


def correct(source: str, fault: SourceFault, verdict: Verdict, context: Context) -> Correction | None:
    """Return the first correction by which the guardian finds one fault less and no other one, or None."""
    lines = source.split("\n")
    if not 0 < fault.line <= len(lines):
        return None
    before = {(each.rule, each.why) for each in verdict.faults}
    for number, candidate in enumerate(_candidates(source, lines, fault, context)):
        if number >= _MOST:
            return None
        after = audit(candidate.apply(source), context).faults
        left = {(each.rule, each.why) for each in after}
        if left < before or (fault.rule == "parse" and all(each.rule != "parse" for each in after)):
            return candidate
    return None


def _candidates(source: str, lines: Sequence[str], fault: SourceFault, context: Context) -> Iterator[Correction]:
    """Yield the corrections that may be meant, the likeliest first."""
    line = lines[fault.line - 1]
    if fault.rule == "parse":
        yield from _syntax(line, fault.line)
        return
    tree = tree_of(source)
    if tree is None:
        return
    if fault.rule in ("selector", "shape") and context.signature:
        yield from _header(lines, fault.line, context.signature)
    if fault.rule == "async":
        yield from _async(tree, lines, fault)
    if fault.rule in ("unknown-name", "import"):
        yield from _names(tree, line, fault)
    if fault.rule in ("covenant", "covenant-last", "write-before-send", "marker"):
        yield from _markers(tree, lines, fault)
    if fault.rule == "annotation":
        yield from _annotations(tree, lines, fault)
    if fault.rule in ("import", "decorator", "shape", "rebound") and any(isinstance(node, Def) for node in tree.body):
        yield Correction(fault.line, "")


def _syntax(line: str, at: int) -> Iterator[Correction]:
    """Yield a line as Python, as other languages and small models write it."""
    if _BLOCK.match(line):
        yield Correction(at, f"{line.rstrip()}:")
    for opening, closing in ("()", "[]", "{}"):
        missing = line.count(opening) - line.count(closing)
        if missing > 0:
            tail = ":" if line.rstrip().endswith(":") else ""
            yield Correction(at, f"{line.rstrip().removesuffix(tail)}{closing * missing}{tail}")
        elif missing < 0 and line.rstrip().endswith(closing):
            yield Correction(at, line.rstrip()[:missing])
    for changed in (
        _ELSE_IF.sub(r"\1elif", line),
        _PRINT.sub(r"\1print(\2)", line),
        line.replace("&&", "and").replace("||", "or"),
        re.sub(r"(\w+)\+\+\s*;?$", r"\1 += 1", line),
        re.sub(r"^(\s*(?:el)?if\b[^=]*[^=!<>])=([^=])", r"\1==\2", line),
        line.rstrip().removesuffix(";"),
    ):
        if changed != line:
            yield Correction(at, changed)


def _header(lines: Sequence[str], at: int, signature: str) -> Iterator[Correction]:
    """Yield the first line with the name and the parameters that are wanted."""
    line = lines[at - 1]
    found = re.match(r"^(\s*(?:async[ \t]+)?def[ \t]+).*:\s*$", line)
    if found:
        yield Correction(at, f"{found[1]}{signature}:")


def _async(tree: ast.Module, lines: Sequence[str], fault: SourceFault) -> Iterator[Correction]:
    """Yield `async def` for the function that awaits, or the answer of a message that is returned or kept."""
    around = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and _holds(node, fault.line)]
    for node in sorted(around, key=lambda each: each.lineno, reverse=True):
        head = lines[node.lineno - 1]
        yield Correction(node.lineno, re.sub(r"\bdef\b", "async def", head, count=1))
    line = lines[fault.line - 1]
    indent, rest = line[: len(line) - len(line.lstrip())], line.strip().removeprefix("await ")
    if rest.startswith(f"{SHIPPED.receiver}."):
        last = not any(each.strip() for each in lines[fault.line :])
        yield Correction(fault.line, f"{indent}{'return' if last else 'answer ='} await {rest}")


def _names(tree: ast.Module, line: str, fault: SourceFault) -> Iterator[Correction]:
    """Yield an import of the name, or the line with the name that is nearest to it."""
    quoted = re.findall(r"`([\w.]+)`", fault.why)
    name = quoted[0] if quoted else ""
    if fault.rule == "unknown-name":
        if name in _FOREIGN:
            yield Correction(fault.line, _replace(line, name, _FOREIGN[name]))
        if name in SHIPPED.modules:
            yield Correction(1, f"import {name}", inserts=True)
        homes = [module for module, names in SHIPPED.modules.items() if name in names]
        if len(homes) == 1:
            yield Correction(1, f"from {homes[0]} import {name}", inserts=True)
        if name in SHIPPED.primitives or f"{name}_" in SHIPPED.primitives:
            message = name if name in SHIPPED.primitives else f"{name}_"
            yield Correction(fault.line, _replace(line, name, f"{SHIPPED.receiver}.{message}"))
    modules = SHIPPED.modules
    # A fault names last the module that lacks a name, or no module that there is.
    imported = set(modules.get(quoted[-1], modules)) if quoted else set()
    known = _visible_names(tree) if fault.rule == "unknown-name" else imported
    for near in difflib.get_close_matches(name, sorted(known - {name}), n=3, cutoff=0.75):
        yield Correction(fault.line, _replace(line, name, near))


def _visible_names(tree: ast.Module) -> set[str]:
    """Return the names that a source binds, and the builtins that it may use."""
    bound: set[str] = set(SHIPPED.builtins & set(dir(builtins)))
    for node in ast.walk(tree):
        if isinstance(node, Def):
            bound |= marking.bound_by(node) - {SHIPPED.receiver}
    return bound


def _markers(tree: ast.Module, lines: Sequence[str], fault: SourceFault) -> Iterator[Correction]:
    """Yield the marker at the end of a path: before a return or a message, or behind the last statement."""
    line = lines[fault.line - 1]
    indent = line[: len(line) - len(line.lstrip())]
    if fault.rule == "marker":
        yield Correction(fault.line, f"{indent}{_MARKER}")
    yield Correction(fault.line, f"{indent}{_MARKER}", inserts=True)
    yield Correction(fault.line + 1, f"{indent}{_MARKER}", inserts=True)
    for node in ast.walk(tree):
        if isinstance(node, Def) and _holds(node, fault.line) and node.end_lineno is not None:
            yield Correction(node.end_lineno + 1, f"{' ' * node.body[0].col_offset}{_MARKER}", inserts=True)


def _annotations(tree: ast.Module, lines: Sequence[str], fault: SourceFault) -> Iterator[Correction]:
    """Yield the line without its annotations."""
    line = lines[fault.line - 1]
    for node in ast.walk(tree):
        if isinstance(node, Def) and node.lineno == fault.line and line.rstrip().endswith(":"):
            for each in [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]:
                each.annotation = None
            node.returns = None
            start = re.match(r"^\s*(?:async[ \t]+)?def[ \t]+", line)
            yield Correction(fault.line, f"{start[0] if start else 'def '}{node.name}({ast.unparse(node.args)}):")
        if isinstance(node, ast.AnnAssign) and node.lineno == fault.line and node.value is not None:
            indent = line[: len(line) - len(line.lstrip())]
            yield Correction(fault.line, f"{indent}{ast.unparse(node.target)} = {ast.unparse(node.value)}")


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno) + 1


def _replace(line: str, old: str, new: str) -> str:
    """Replace a name in a line, where it stands as a whole word and behind no dot."""
    return re.sub(rf"(?<![\w.]){re.escape(old)}(?!\w)", lambda _: new, line)


#: The message by which a method asks the model.
ASK: Final = "infer_"
#: The share of an intent's words that a prompt has at least; its numbers it has all.
KEPT: Final = 0.9
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


def complete_prompt(written: WrittenSource, wanted: MethodSpec) -> WrittenSource:
    """Return a method whose prompts, each of them, hold the text that it is sent and the words of its intent."""
    names = parameter_names(wanted.signature)
    tree = tree_of(written.source)
    asked = list(_find_prompts(tree)) if tree is not None and wanted.speaks and len(names) == 1 else []
    if tree is None or not asked:
        return written
    before, after, changes = "", "", []
    lacking = missing_words(wanted.text, " ".join((*_texts(tree), *names)))
    if lacking:
        before = repr(f"{' '.join(wanted.text.split())}\n\n") + " + "
        changes.append(f"the intent was put before its prompt, which lacked {', '.join(lacking[:5])}")
    if not any(isinstance(node, ast.Name) and node.id == names[0] for node in _loads(tree)):
        after = f' + "\\n\\n" + {names[0]}'
        changes.append(f"`{names[0]}` was put behind its prompt, which left it out")
    source = written.source
    for prompt in sorted(asked, key=lambda each: (each.lineno, each.col_offset), reverse=True) if changes else ():
        source = _wrap(source, prompt, before, after)
    return WrittenSource(source, (*written.changes, *changes))


def missing_words(intent: str, said: str) -> list[str]:
    """List the words of an intent that a prompt lacks, where these are too many or a number is among them.

    >>> missing_words("Warn of three risks.", "You warn of risks."), missing_words("Warn of risks.", "Risks: warn!")
    (['three'], [])
    """
    held = frozenset(stems(said))
    words = {stem: word for word in terms(intent) for stem in stems(word) if word not in languages.SMALL_WORDS}
    lacking = [word for stem, word in words.items() if stem not in held]
    counts = [word for word in lacking if _NUMBER.fullmatch(word) or word in _NUMERALS]
    return lacking if counts or len(lacking) > (1 - KEPT) * len(words) else []


_NUMERALS: Final = frozenset("one two three four five six seven eight nine ten twelve once twice".split())


def _find_prompts(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the prompt of each message to the model, but of those within another prompt or a format."""
    within = {id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in within:
            continue
        named = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == ASK
        if isinstance(node, ast.Call) and named and node.args and _is_receiver(node.func):
            within.update(map(id, ast.walk(node.args[0])))
            yield node.args[0]


def _is_receiver(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == SHIPPED.receiver


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a method without its documentation."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def _loads(tree: ast.Module) -> Iterator[ast.AST]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


def _wrap(source: str, prompt: ast.expr, before: str, after: str) -> str:
    """Put something before and behind an expression."""
    lines = source.split("\n")
    for line, column, text in (
        (prompt.end_lineno, prompt.end_col_offset, f"){after}"),
        (prompt.lineno, prompt.col_offset, f"{before}("),
    ):
        at = (line or prompt.lineno) - 1
        raw = lines[at].encode()
        lines[at] = f"{raw[:column].decode()}{text}{raw[column:].decode()}"
    return "\n".join(lines)
