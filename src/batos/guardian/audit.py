"""The audit: checks one source under one policy, as text and as a tree, and returns a verdict with every fault."""

from __future__ import annotations

import ast
import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from batos.guardian import parsing
from batos.guardian.covenant.effects import TooIntricate
from batos.guardian.covenant.statements import StatementFlow
from batos.guardian.forms import Forms
from batos.guardian.parsing import parse
from batos.guardian.policy import SHIPPED, GuardianPolicy, SlotUse, SourceFault, Verdict
from batos.guardian.tidying import marking
from batos.guardian.tidying.tidy import find_method, tidy

#: The declaration of another encoding (PEP 263), which Python reads in the first two lines.
_COOKIE: Final = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)")
_UTF_8: Final = frozenset({"utf-8", "utf8", "utf_8"})
_QUOTED: Final = r"\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"
_STRINGS: Final = re.compile(_QUOTED, re.DOTALL)
#: Strings, comments and brackets, so that what stands within the first two is not counted.
_LEXEMES: Final = re.compile(_QUOTED + r"|[()\[\]{}]", re.DOTALL)
#: Operators in a row, which nest without brackets and so would exhaust the parser: `----x`, `lambda: lambda: x`.
_PREFIXES: Final = re.compile(r"(?:[-+~][ \t\\\n]*){24}|(?:\b(?:not|await|yield|lambda[^:\n]{0,80}:)[ \t\\\n(]*){24}")
_NO_BRACKET: Final = re.compile(r"[^()\[\]{}]+")
_WORD: Final = re.compile(r"[^\W\d]\w*")
_JOINERS: Final = frozenset("\u200c\u200d")
_PLAIN_CONTROLS: Final = frozenset("\n\t")


@dataclass(frozen=True, slots=True)
class SourceText:
    """A source as text (empty where it is none), the SHA-256 of its bytes, and what is wrong with it before parsing."""

    source: str
    digest: str
    faults: tuple[SourceFault, ...]


def read_source(source: str | bytes, policy: GuardianPolicy) -> SourceText:
    """Decode and look over a source; it may be parsed if there are no faults."""
    raw = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else bytes(source)
    digest = hashlib.sha256(raw).hexdigest()
    if len(raw) > policy.bounds.bytes:
        why = f"the source has {len(raw)} bytes, at most {policy.bounds.bytes} are read"
        return SourceText("", digest, (SourceFault(0, 0, "bounds", why, "write a shorter method"),))
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        why = "the source is not UTF-8"
        return SourceText(
            "", digest, (SourceFault(line, 0, "text", why, "write it in UTF-8, without half surrogates"),)
        )
    text = text.replace("\r\n", "\n")
    faults = (*_characters(text), *_cookies(text), *_bounds(text, policy))
    return SourceText(text, digest, faults)


def _characters(text: str) -> Iterator[SourceFault]:
    """Yield a fault for each control character (also a lone CR) and each that changes what a reader sees."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return
    for number, line in enumerate(text.split("\n"), 1):
        for column, character in enumerate(line):
            kind = unicodedata.category(character)
            hidden = kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
            if hidden and character not in _JOINERS and character not in _PLAIN_CONTROLS:
                why = f"the character U+{ord(character):04X} cannot be seen, and may hide what the source does"
                yield SourceFault(number, column, "text", why, "leave it out, or write it as an escape in a string")
                break


def _cookies(text: str) -> Iterator[SourceFault]:
    for number, line in enumerate(text.split("\n", 2)[:2], 1):
        found = _COOKIE.match(line)
        if found is not None and found[1].lower() not in _UTF_8:
            why = f"the comment declares the encoding {found[1]!r}: a source is read as UTF-8 and nothing else"
            yield SourceFault(number, 0, "text", why, "leave the declaration out")


def _bounds(text: str, policy: GuardianPolicy) -> Iterator[SourceFault]:
    """Yield faults for sizes and depths at which Python's own parser would fail or take too long."""
    bounds = policy.bounds
    lines = text.split("\n")
    if len(lines) > bounds.lines:
        yield _over(0, f"the source has {len(lines)} lines, at most {bounds.lines} are read")
    for number, line in enumerate(lines, 1):
        if len(line) > bounds.line_length:
            yield _over(number, f"the line has {len(line)} characters, at most {bounds.line_length} are read")
    deepest, where = _brackets(text, bounds.brackets)
    if deepest > bounds.brackets:
        yield _over(
            text.count("\n", 0, where) + 1, f"{deepest} brackets are open at once, at most {bounds.brackets} may be"
        )
    found = _PREFIXES.search(text)
    if found is not None:
        yield _over(text.count("\n", 0, found.start()) + 1, "24 operators follow each other without an operand")


def _over(line: int, why: str) -> SourceFault:
    return SourceFault(line, 0, "bounds", why, "write shorter code with less nesting")


def _brackets(text: str, most: int) -> tuple[int, int]:
    """Return the largest number of open brackets, and its position; 0 and 0 if it is at most `most`.

    Two quick counts come first, without strings and with everything taken for code: mostly they are enough. Each string
    counts by itself, because an f-string is parsed by itself.
    """
    if (
        _nesting_depth(_NO_BRACKET.sub("", _STRINGS.sub("", text))) <= most
        and _nesting_depth(_NO_BRACKET.sub("", text)) <= most
    ):
        return 0, 0
    depth = deepest = where = 0
    for found in _LEXEMES.finditer(text):
        lexeme = found[0]
        if lexeme in "([{":
            depth += 1
            if depth > deepest:
                deepest, where = depth, found.start()
        elif lexeme in ")]}":
            depth -= 1
        elif lexeme[0] != "#":
            inner = max(lexeme.count("("), lexeme.count("["), lexeme.count("{"))
            if inner > deepest and _nesting_depth(lexeme) > deepest:
                deepest, where = _nesting_depth(lexeme), found.start()
    return deepest, where


def _nesting_depth(string: str) -> int:
    """Return the largest number of open brackets within a string, taken for code because it may be an f-string."""
    depth = deepest = 0
    for character in string:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}" and depth:
            depth -= 1
    return deepest


def foreign_letters(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (line, column, word) for words in code that are not ASCII: they may look like others."""
    if text.isascii():
        return
    start = 0
    pieces: list[str] = []
    for found in _LEXEMES.finditer(text):
        if found[0][0] in "\"'#":
            pieces.append(text[start : found.start()])
            pieces.append("".join("\n" if one == "\n" else " " for one in found[0]))
            start = found.end()
    pieces.append(text[start:])
    for number, line in enumerate("".join(pieces).split("\n"), 1):
        for word in _WORD.finditer(line):
            if not word[0].isascii():
                yield number, word.start(), word[0]


_FLAT = "write shorter code with less nesting"


@dataclass(frozen=True, slots=True)
class Context:
    """The expectations of an audit: the method's selector and signature (empty: any), and the policy."""

    selector: str = ""
    signature: str = ""
    policy: GuardianPolicy = SHIPPED


#: Any selector, any signature, the policy that ships.
ANY = Context()


def audit(source: str | bytes, context: Context = ANY) -> Verdict:
    """Test if a source may become a method, and what it does with slots and messages; never raises."""
    read = read_source(source, context.policy)
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
    for line, column, word in foreign_letters(read.source):
        why = f"the name `{ascii(word)[1:-1]}` is not ASCII: it may look like another"
        faults.add(SourceFault(line, column, "name", why, "use ASCII letters in names; texts may hold any"))
    faults.update(parsing.faults_of(tree, method, policy))
    if method is None or not whole:
        return _refuse(read, context, *faults)
    faults.update(parsing.check_expected(method, context.selector, context.signature))
    mutates: frozenset[str] = frozenset()
    try:
        if forms.may_change:
            broken, mutates = covenant_of(method, forms, policy, tidy=bool(context.selector))
            faults |= broken
        faults |= {parsing.kernels(slot, method) for slot in mutates & policy.kernel_slots}
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
        parameters=parsing.parameters_of(method),
        is_async=isinstance(method, ast.AsyncFunctionDef),
        slots=slots,
        sends=frozenset(forms.sends),
        capabilities=frozenset(forms.capabilities),
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
