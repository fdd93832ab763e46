"""Examples of the dialect for a small coder: one method of each kind, with calls that check it.

Each is accepted by the guardian and passes its checks in a cell, which a test holds. A small model writes in the form
of the example that it has seen, far more than in the form of a rule that it was told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from batos.methods.generation.method_spec import IDENTITY, MethodSpec


@dataclass(frozen=True, slots=True)
class CoderExample:
    """A method as it is asked for and written: the task, the first line, the source and the lines of its checks."""

    task: str
    signature: str
    source: str
    checks: str = ""
    #: The slots that the task names, each with its type.
    slots: tuple[tuple[str, str], ...] = ()
    arguments: tuple[str, ...] = ()


PLAIN: Final = CoderExample(
    "Return how often the letter stands in the text.",
    "count_letter_(self, text, letter)",
    """def count_letter_(self, text, letter):
    total = 0
    for sign in text:
        if sign == letter:
            total += 1
    return total
""",
    """count_letter_("banana", "a") == 3
count_letter_("tree", "x") == 0
""",
    arguments=("str", "str"),
)

LISTING: Final = CoderExample(
    "Return the even ones of the numbers.",
    "evens_(self, numbers)",
    """def evens_(self, numbers):
    return [number for number in numbers if number % 2 == 0]
""",
    """evens_([1, 2, 4]) == [2, 4]
evens_([3]) == []
""",
    arguments=("list",),
)

KEEPING: Final = CoderExample(
    "Add the visitors to those of the day, and return how many there are.",
    "add_visitors_(self, visitors)",
    """def add_visitors_(self, visitors):
    self.visits = self.visits + visitors
    total = self.visits
    self._p_changed = True
    return total
""",
    """self.visits = 2
add_visitors_(3) == 5
self.visits == 5

self.visits = 0
add_visitors_(1) == 1
self.visits == 1
""",
    (("visits", "int"),),
    ("int",),
)

FACET: Final = CoderExample(
    "The Elder Brother: Answer the query as a careful brother who warns of what can go wrong, in two sentences.",
    "brother_facet_(self, query)",
    """async def brother_facet_(self, query):
    who = "You are a careful brother who warns of what can go wrong."
    prompt = f"{who} Answer in two sentences: {query}"
    return await self.infer_(prompt)
""",
    arguments=("str",),
)

PROTOCOL: Final = CoderExample(
    "The Plain Word: Write the answer again in short words.",
    "plain_word_protocol_(self, answer)",
    """async def plain_word_protocol_(self, answer):
    prompt = f"Write this again in short words: {answer}"
    return await self.infer_(prompt)
""",
    arguments=("str",),
)

EXAMPLES: Final = (PLAIN, LISTING, KEEPING, FACET, PROTOCOL)


def example_for(wanted: MethodSpec) -> CoderExample:
    """Return the example that fits a method: of its kind, and with slots if the method may keep something in its own.

    A tool keeps nothing.
    """
    if wanted.kind == "facet":
        return FACET
    if wanted.kind == "protocol":
        return PROTOCOL
    return KEEPING if kept_slots(wanted) else PLAIN


def kept_slots(wanted: MethodSpec) -> tuple[tuple[str, str], ...]:
    """Return the slots with plain data that the intent of a method names; a tool has none of its own."""
    if wanted.kind != "method":
        return ()
    named = set(wanted.text.replace("`", " ").replace(".", " ").replace(",", " ").split())
    mine = [each for each in wanted.slots if each[0] not in IDENTITY and each[0] not in wanted.protected]
    return tuple(each for each in mine if each[0] in named and each[1] != "object")
