"""The dialect: what a method may be written in, in the words that a model is told, made from the policy's data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from batos.guardian.policy import SHIPPED, Policy

_RULES = """
A method is one function, `def` or `async def`, whose first parameter is `self`; imports stand before it, nothing else \
does. No decorators, no classes, no `global`, no `with`, no `del` of a variable, no comments needed. `self` is the \
object: `self.name` reads its slot `name`, `self.name = value` writes it, `del self.name` removes it. Slots hold plain \
data: None, bool, int, float, str, list, dict with str keys. The method returns plain data.

The covenant: a method that changes a slot (also in place, as `self.items.append(x)` does) ends with \
`self._p_changed = True`, on every path that returns after a change. After the marker may come only a `return` of an \
expression that neither changes nor sends. A method that changes nothing has no marker.

Messages: `await self.selector_(argument)` in an `async def` sends a message to the object itself. \
`await self.infer_(prompt)` asks the model and answers a text; \
`await self.recall_(query, 2000)` answers a list of texts; \
`self.log_("info", text)` writes a line of the log. What was changed before any other message is marked before it.

Names: none begins with an underscore but the marker and a lone `_`, and none is spelled in look-alike letters. No \
`exec`, `eval`, `open`, no files, no network, no clock but `datetime.now()`. \
Call `getattr`, `setattr` and `hasattr` only on `self` and with a literal name.
"""


def text(policy: Policy = SHIPPED) -> str:
    """The dialect under a policy: the same for the same policy, short enough for a small window."""
    return "\n\n".join((_RULES.strip(), *_lists(policy)))


def _lists(policy: Policy) -> Iterator[str]:
    yield f"Functions: {_words(policy.functions)}."
    yield f"Exceptions: {_words(policy.exceptions)}."
    yield f"Modules: {', '.join(sorted(policy.modules))}."
    bounds = policy.bounds
    yield f"At most {bounds.lines} lines, nothing nested deeper than a page can show."


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
