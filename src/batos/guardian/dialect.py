"""The dialect in which a method may be written, in the words of the coder's prompt, generated from the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from batos.guardian.policy import SHIPPED, GuardianPolicy

_RULES = """
A method is one function, `def` or `async def`, whose first parameter is `self`; imports stand before it, nothing else \
does. No decorators, no classes, no `global`, no `with`, no comments needed; after `del name` a variable is None. \
`self` is the object: `self.name` reads its slot `name`, `self.name = value` writes it, `del self.name` removes it. \
Slots hold plain data: None, bool, int, float, str, list, dict with str keys. The method returns plain data.

The covenant: a method that changes a slot (also in place, as `self.items.append(x)` does) ends with \
`self._p_changed = True`, on every path that returns after a change. After the marker may come only a `return` of an \
expression that neither changes nor sends. A method that changes nothing has no marker.

Messages: `await self.selector_(argument)` in an `async def` sends a message to the object itself. \
`await self.infer_(prompt)` asks the model and answers a text; \
`await self.recall_(query, 2000)` answers a list of texts; \
`await self.embed_(texts)` answers a list of vectors; `await self.index_document_(title, text)` adds to memory; \
`self.log_("info", text)` writes a line of the log. What was changed before any other message is marked before it.

Names: none begins with an underscore but the marker and a lone `_`, and none is spelled in look-alike letters. No \
`exec`, `eval`, `open`, no files, no network, no clock but `datetime.now()`. \
Call `getattr`, `hasattr` and `setattr` with a literal name, and `setattr` only on `self`.
"""


def text(policy: GuardianPolicy = SHIPPED) -> str:
    """Return the dialect under a policy as text, short enough for a small context window."""
    return "\n\n".join((_RULES.strip(), *_lists(policy)))


def document(policy: GuardianPolicy = SHIPPED) -> str:
    """Return the whole dialect as Markdown: the text of the coder's prompt, and every name and number of the policy."""
    parts = [
        f"Policy `{policy.version}`. The coder's prompt has:",
        "\n".join(f"> {line}".rstrip() for line in text(policy).splitlines()),
        "### Syntax",
        f"Statements: {_code(policy.statements)}.",
        f"Expressions: {_code(policy.expressions)}.",
        f"Parts of them: {_code(policy.parts)}.",
        f"A `case` may name these classes, with one pattern in it: {_code(policy.pattern_classes)}.",
        "### Names",
        f"Builtins: {_code(policy.builtins)}. Only called, never passed on: {_code(policy.called_only)}.",
        f"Refused in every position of a name: matches of `{policy.protected}`, and {_code(policy.introspection)}.",
        f"Selectors that no method sends: matches of `{policy.kernel_selectors}`.",
        f"Messages before which a change need not be marked: {_code(policy.primitives)}.",
        f"Words of annotations, which are never evaluated: {_code(policy.annotations)}.",
        "### Modules",
        *(f"- `{module}`: {_code(names)}" for module, names in sorted(policy.modules.items())),
        "### Methods of plain values",
        *(f"- {kind}: {_code(names)}" for kind, names in sorted(policy.methods.items())),
        f"Of these and similar methods, the following change their object: {_code(policy.mutators)}.",
        *(f"Used on a type: {_code(f'{kind}.{name}' for name in names)}." for kind, names in policy.unbound.items()),
        "### Bounds",
        *(f"- {name}: {value}" for name, value in sorted(asdict(policy.bounds).items())),
    ]
    return "".join(_space_paragraphs(parts))


def _space_paragraphs(parts: list[str]) -> Iterator[str]:
    """Yield paragraphs with a blank line between them, except between the items of a list."""
    for index, part in enumerate(parts):
        listed = part.startswith("- ") and index + 1 < len(parts) and parts[index + 1].startswith("- ")
        yield part + ("\n" if listed or index + 1 == len(parts) else "\n\n")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _lists(policy: GuardianPolicy) -> Iterator[str]:
    yield f"Functions: {_words(policy.functions)}."
    yield f"Exceptions: {_words(policy.exceptions)}."
    yield f"Modules: {', '.join(sorted(policy.modules))}."
    yield f"Slots that a method reads and never changes: {_words(policy.kernel_slots)}."
    bounds = policy.bounds
    yield f"At most {bounds.lines} lines, nothing nested deeper than a page can show."


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
