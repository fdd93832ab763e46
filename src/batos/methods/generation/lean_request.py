"""The request to a small coder: an example as an earlier exchange, then the task and the first line of the method.

A small model continues what it sees. With the example in place of rules SmolLM2-135M writes Python in 20 of 20 methods;
with the rules of the dialect and a schema in none (decision 0017).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from batos.methods.generation.coder_prompt import shorten
from batos.methods.generation.method_spec import IDENTITY, MethodSpec, parameter_names
from batos.minds.prompt import Message

HEAD: Final = "You write one Python method. Answer with the code alone."
CHECKS_HEAD: Final = "You write calls of a function and what they return."
AGAIN: Final = "Write the whole method again."
#: The most faults of an attempt that a small coder is told.
FAULTS: Final = 3


def method_messages(wanted: MethodSpec) -> tuple[Message, ...]:
    """Return the messages that ask for the method alone."""
    example = example_for(wanted)
    return (
        {"role": "system", "content": HEAD},
        {"role": "user", "content": _method_task(_task_lines(example), example.signature, wanted)},
        {"role": "assistant", "content": fence(example.source)},
        {"role": "user", "content": _method_task(_wanted_lines(wanted), wanted.signature, wanted)},
    )


def check_messages(wanted: MethodSpec) -> tuple[Message, ...]:
    """Return the messages that ask for calls which check the method; its source is not shown."""
    shown = (PLAIN, KEEPING) if example_for(wanted) is KEEPING else (PLAIN, LISTING)
    exchanges = [
        message
        for example in shown
        for message in (
            {"role": "user", "content": _call_task(_task_lines(example), example.signature)},
            {"role": "assistant", "content": example.checks.strip()},
        )
    ]
    asked = _call_task(_wanted_lines(wanted), wanted.signature)
    return ({"role": "system", "content": CHECKS_HEAD}, *exchanges, {"role": "user", "content": asked})


def repair(source: str, faults: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages to append after a method with faults: the method as it was read, and its faults."""
    told = "\n".join(shorten(each) for each in faults[:FAULTS])
    return (
        {"role": "assistant", "content": fence(source)},
        {"role": "user", "content": f"{told}\n{AGAIN}"},
    )


def fence(code: str) -> str:
    """Return code in a fence, as models write it."""
    return f"```python\n{code.strip()}\n```"


def _method_task(lines: str, signature: str, wanted: MethodSpec) -> str:
    """Return the task with the first line of the method last."""
    start = "async def" if wanted.speaks else "def"
    return f"{lines}\n\n{start} {signature}:"


def _call_task(lines: str, signature: str) -> str:
    """Return the task of writing calls, with the function first, as a reader of its page sees it."""
    return f"def {_call_form(signature)}\n{lines}"


def _task_lines(example: CoderExample) -> str:
    """Return the task of an example, with its arguments and slots."""
    return _lines(example.task, example.signature, example.arguments, example.slots)


def _wanted_lines(wanted: MethodSpec) -> str:
    """Return the task of a method, with its arguments and slots."""
    title = f"{wanted.title}: " if wanted.title and wanted.speaks else ""
    task = " ".join(f"{title}{wanted.text}".split())
    return _lines(task, wanted.signature, wanted.arguments, kept_slots(wanted))


def _lines(task: str, signature: str, arguments: Sequence[str], slots: Sequence[tuple[str, str]]) -> str:
    """Return a task on one line, and on another one what the method is given and keeps, where that is known."""
    named = zip(parameter_names(signature), arguments, strict=False)
    given = [f"{name} ({kind})" for name, kind in named if kind != "None"]
    kept = [f"self.{name} ({kind})" for name, kind in slots]
    return f"{task}\nGiven: {', '.join((*given, *kept))}" if given or kept else task


def _call_form(signature: str) -> str:
    """Return a signature as a call is written, without the receiver.

    >>> _call_form("size_(self, text)"), _call_form("tick_(self)")
    ('size_(text)', 'tick_()')
    """
    inside = signature.partition("(")[2].rpartition(")")[0]
    return f"{signature.partition('(')[0]}({inside.partition(',')[2].strip()})"


# -- examples of the dialect: one method of each kind, with calls that check it
#    Each is accepted by the guardian and passes its checks in a cell, which a test holds.


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
