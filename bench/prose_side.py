"""The rules of a docstring, for the bench that counts them and the test that holds them."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | Function
#: A file's text, or its tree where the same file is looked at more than once.
Source = str | ast.Module

#: Verbs that a function's docstring may begin with, in the imperative. A new one is a word that says what happens.
VERBS = frozenset(
    """
    abort accept acknowledge acquire add adopt align allow announce answer append apply approve archive arrange ask
    assert assign attach audit await balance begin bind blank block bound break bring build cache calculate call cancel
    capitalise carry change check choose classify clear clip close collect combine commit compact compare compile
    complete compose compress compute connect consider construct consume continue convert copy correct count create cut
    deal decide declare decline decode decrease decrypt deduce defer define delay delegate delete deliver derive
    describe detach detect determine discard dispatch display divide do doom download drain draw drop dump echo edit
    embed emit empty enable encode encrypt end enforce enlarge ensure enter erase escape estimate evaluate evict
    examine exclude execute exit expand expect expire explain export expose extend extract fail feed fetch fill filter
    find finish fit fix flatten flush fold follow forbid force forget fork format forward free freeze fulfil gather
    generate get give go grant group guard guess hand handle hash hide hold identify ignore import include increase
    index infer inherit initialise insert inspect install interpret interrupt invalidate invoke iterate join judge keep
    kill label lay learn leave lend let lift limit link list listen load lock log look lower make map mark match
    measure merge migrate mirror move multiply name narrow normalise note notify number observe offer omit open order
    organise output override own pack pad parse pass pause pay perform permit pick place plan point poll post predict
    prefer prefix prepare present preserve prevent print produce project promote propagate prove provide prune publish
    pull push put quantise query queue quote raise rank reach read rebuild recall receive recognise recompute record
    recover redefine redirect reduce refer refresh refuse register reject release reload remember remove rename render
    reopen repair repeat replace replay reply report request require reread reserve reset resolve respond restart
    restore restrict resume retire retry return reverse revert revoke rewind rewrite rotate round route run sample save
    say scale scan schedule score search see select send separate serialise serve set settle shield shorten show
    shuffle shut sign simulate skip sleep sort speak split stamp start state stop store stream strip submit subscribe
    subtract sum summarise supply suspend swap sweep switch take talk tell terminate test think throw tidy time
    tokenise touch trace track train transfer transform translate traverse treat trim truncate try turn type undo unite
    unlock unpack update upload use validate verify veto view visit wait wake walk warn watch weave weigh withdraw wrap
    write yield
    """.split()
)
#: Headings that are a name: a verb of the command line, and the part of a page that a newcomer looks for.
HEADINGS = frozenset(("why", "How do I"))
#: Words that no sentence begins with: a riddle, or a pronoun whose noun stands elsewhere.
RIDDLES = frozenset("what whether who whom whose why how which it one he they".split())

_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_BREAK = re.compile(r"(?:^|(?<=[.!?])|(?<=[.!?][)\"'`*])|(?<=[.!?]\*\*))\s+(?=[\"'`(*]*[A-Z])")
_LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\n]*)\)")
_CELL = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"[A-Za-z]+")
#: A line that may have such a comment: most files have none, and need not be cut into tokens.
_SUSPECT = re.compile(rf"#(?:[^\n]*[.!?|])?[^A-Za-z\n]*\b(?:{'|'.join(sorted(RIDDLES))})\b", re.IGNORECASE)


class Entry(NamedTuple):
    """A module, class or function of a file: its name within the file, its docstring and if others may use it."""

    path: Path
    line: int
    name: str
    node: Documented
    text: str | None
    public: bool


def parse(source: Source) -> ast.Module:
    """Return the tree of a source, or the tree that was parsed before."""
    return ast.parse(source) if isinstance(source, str) else source


def all_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all under it, as `ast.walk` does, but operators and contexts, which have no parts."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                waiting += [each for each in part if isinstance(each, ast.AST)]
            elif isinstance(part, ast.AST) and part._fields:
                waiting.append(part)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all that stands under a node but expressions, in which no statement stands, and their parts."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


def entries(path: Path, source: Source) -> Iterator[Entry]:
    """Yield a file's module, classes and functions, nested ones too, in the order in which they stand."""
    tree = parse(source)
    hidden = any(part.startswith("_") and not part.startswith("__") for part in path.with_suffix("").parts)
    yield Entry(path, 1, "", tree, ast.get_docstring(tree), not hidden)
    yield from _inside(path, tree, (), not hidden)


def _inside(path: Path, parent: ast.AST, within: tuple[str, ...], public: bool) -> Iterator[Entry]:
    """Yield the classes and functions under a node: what stands in a function is not public."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.expr):  # no statement stands in an expression
            continue
        if not isinstance(node, ast.ClassDef | Function):
            yield from _inside(path, node, within, public)
            continue
        names = (*within, node.name)
        shown = public and not node.name.startswith("_")
        yield Entry(path, node.lineno, ".".join(names), node, ast.get_docstring(node), shown)
        yield from _inside(path, node, names, shown and isinstance(node, ast.ClassDef))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text without its code: each ends at a full stop, or with its paragraph, item or cell."""
    plain = _LINK.sub(_link_text, _CODE.sub("`x`", _FENCE.sub("", text)))
    blocks: list[list[str]] = [[]]
    for line in plain.splitlines():
        bare = line.strip()
        if bare.startswith("|"):
            blocks += [[cell.strip()] for cell in _CELL.split(bare)]
            blocks.append([])
            continue
        if not bare or line.startswith("    ") or bare.startswith(">"):
            blocks.append([])
            continue
        if bare.startswith(("- ", "* ", "#")):
            blocks.append([])
            bare = bare.lstrip("-*# ")
        blocks[-1].append(bare)
    for block in blocks:
        yield from (part for part in _BREAK.split(" ".join(block)) if part.strip())


def _link_text(link: re.Match[str]) -> str:
    """Return the text of a link, which is prose unless it is the name of the file itself."""
    return "`x`" if link[2] == link[1] else link[1]


def riddles(text: str) -> Iterator[str]:
    """Yield a fault for each sentence of a text that begins with a forbidden word."""
    for sentence in sentences(text):
        word = _WORD.search(sentence)
        if word and word.group().lower() in RIDDLES and sentence.strip() not in HEADINGS:
            yield f"a sentence begins with {word.group()!r}: {sentence[:60]}"


def comments(path: Path, text: str) -> Iterator[str]:
    """Yield a fault with its place for each comment with a sentence that begins with a forbidden word."""
    if not _SUSPECT.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            said = token.string.lstrip("#: ")
            # The middle of a sentence that goes on from the line before begins with a small letter.
            found = riddles(said) if said[:1].isupper() else riddles(said.partition(". ")[2])
            yield from (f"{path}:{token.start[0]}: comment: {fault}" for fault in found)


def faults(entry: Entry) -> Iterator[str]:
    """Yield what an entry's docstring breaks. A missing docstring breaks the rules where the entry is public."""
    if entry.text is None:
        if entry.public:
            yield "no docstring"
        return
    opening = entry.text.partition("\n")[0]
    if isinstance(entry.node, ast.Module) and not opening.endswith("."):
        yield "a module opens with one sentence on one line"
    if isinstance(entry.node, Function):
        word = _WORD.match(opening)
        if word is None or word.group().lower() not in VERBS:
            yield f"begins with no verb of the list: {opening[:60]}"
    yield from riddles(entry.text)


def list_faults(found: Sequence[Entry]) -> list[str]:
    """List every fault of these entries with its place."""
    places = [(entry, f"{entry.path}:{entry.line}: {entry.name or 'module'}") for entry in found]
    return [f"{place}: {fault}" for entry, place in places for fault in faults(entry)]


def shares(found: Sequence[Entry]) -> tuple[float, float]:
    """Return the share of public entries that hold the rules, and that share among those with a docstring."""
    public = [entry for entry in found if entry.public]
    written = [entry for entry in public if entry.text is not None]
    plain = sum(not any(faults(entry)) for entry in written)
    return round(plain / max(len(public), 1), 4), round(plain / max(len(written), 1), 4)
