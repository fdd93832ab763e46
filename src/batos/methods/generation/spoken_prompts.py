"""The prompt of a facet or protocol that a model wrote: the text that it is sent, and its intent, are put in by rule.

A small model leaves the question out of its prompt in half of its first tries, and says of its intent only the name.
Asked again it does the same again; what lacks is known, and no call is needed to add it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from batos.gate import languages
from batos.guardian.policy import SHIPPED
from batos.memory.segmentation import stems, terms
from batos.methods.generation.coder_replies import tree_of
from batos.methods.generation.method_spec import MethodSpec, parameter_names
from batos.methods.generation.written_source import WrittenSource

#: The message by which a method asks the model.
ASK: Final = "infer_"
#: The share of an intent's words that a prompt has at least; its numbers it has all.
KEPT: Final = 0.9
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


def complete(written: WrittenSource, wanted: MethodSpec) -> WrittenSource:
    """Return a method whose prompts, each of them, hold the text that it is sent and the words of its intent."""
    names = parameter_names(wanted.signature)
    tree = tree_of(written.source)
    asked = list(_find_prompts(tree)) if tree is not None and wanted.speaks and len(names) == 1 else []
    if tree is None or not asked:
        return written
    before, after, changes = "", "", []
    lacking = missing_words(wanted.text, " ".join((*_texts(tree), *names)))
    if lacking:
        before = f"{_literal(wanted.text)} + "
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


def _literal(intent: str) -> str:
    """Write an intent on one line as a text of Python, with a gap behind it."""
    return repr(f"{' '.join(intent.split())}\n\n")


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
