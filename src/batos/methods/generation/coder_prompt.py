"""The prompt for a coder: the dialect, the object, the intent, and the task at the end.

docs/generation.md describes the format line by line, for the authors of the emulator too. Stable text stands first, so
that generations share the runner's prompt cache; a repair only appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from batos.methods.generation.method_spec import MethodSpec
from batos.minds.prompt import Message, with_guide
from batos.objects.method import IntentKind

HEAD: Final = "You write one method for an object of BAT OS."
REFUSED: Final = "The method is not accepted:"
_AGAIN: Final = "Give the whole reply again, with these mended."
#: The most faults of an attempt that the coder is told, and the most characters of a fault.
FAULTS: Final = 10
FAULT: Final = 320

_KINDS: Final[dict[IntentKind, str]] = {
    "facet": (
        "It is sent one question as text and answers with text: what the persona above says to it, in that voice. "
        "It thinks with `await self.infer_(prompt)`, which answers a text; the prompt tells who speaks, how, and the "
        "question itself. It is no function that computes an answer: its voice is in how it asks."
    ),
    "protocol": (
        "It is sent the text of an answer and returns the whole text as it is after the protocol. It thinks with "
        "`await self.infer_(prompt)`, which answers a text; the prompt tells what to do, in the voice above, and holds "
        "the answer itself."
    ),
    "tool": "It takes and returns plain data, as its intent says, and does one thing.",
}

_PLAIN: Final = "It takes and returns plain data, as its intent says."

CHECKS: Final = (
    "Each check is one call of the method, and its fields are JSON, written as text: "
    'with `arguments` ["why?"], `replies` {"infer_": ["Because."]}, `result` "Because." and the others empty, '
    "the method is called with why?, the first `infer_` it sends is answered Because., and it must return that. "
    "Nothing is really asked: what a method sends is answered from `replies` alone. "
    'A slot that must be gone afterwards is {"$gone": true} in `slots`. Every slot that the method changes is compared '
    "in `slots` of a check. At least two checks must fail against a method that returns None and changes nothing. "
    "`name`, `core_identity` and `core_method` are there in every check as they are. "
    "It is always 2026-01-01T12:00:00Z in a check."
)


def messages(wanted: MethodSpec, dialect: str, guide: str) -> tuple[Message, ...]:
    """Return the messages of the first request; `guide` is the reply's schema in prose."""
    sections = [
        _section("Owner", wanted.owner),
        _head_lines(wanted),
        _section("Intent", wanted.text),
        _list_section("Examples", wanted.examples),
        _list_section("Slots", [f"{name}: {kind}" for name, kind in wanted.slots]),
        _list_section("Messages", wanted.messages),
        _section("Task", with_guide(task(wanted), guide)),
    ]
    asked = "\n\n".join(section for section in sections if section)
    system = f"{HEAD}\n\n{dialect.strip()}"
    return ({"role": "system", "content": system}, {"role": "user", "content": asked})


def task(wanted: MethodSpec) -> str:
    """Return the task: the arguments and result of a method of this kind, and the form of its checks."""
    what = (
        f"Write the method `{wanted.selector}` so that it does what its intent says. {_KINDS.get(wanted.kind, _PLAIN)}"
    )
    return f"{what}\n{CHECKS}"


def repair(text: str, faults: Sequence[str]) -> tuple[Message, ...]:
    """Return the messages to append after a failed attempt: the reply as the model gave it, and its faults."""
    told = "\n".join(f"- {shorten(each)}" for each in faults[:FAULTS])
    asked = f"{REFUSED}\n{told}\n{_AGAIN}"
    return ({"role": "assistant", "content": text or "{}"}, {"role": "user", "content": asked})


def _head_lines(wanted: MethodSpec) -> str:
    """Return the lines that name the receiver, selector, signature, kind and arguments."""
    lines = [
        f"Receiver: {wanted.name}",
        f"Selector: {wanted.selector}",
        f"Signature: {wanted.signature}",
        f"Kind: {wanted.kind}",
        f"Name: {wanted.title}" if wanted.title else "",
        f"Inspiration: {wanted.inspiration}" if wanted.inspiration else "",
        f"Arguments: {', '.join(wanted.arguments)}" if wanted.arguments else "",
    ]
    return "\n".join(line for line in lines if line)


def _section(heading: str, text: str) -> str:
    """Return a section of the prompt; "" if its text is empty."""
    return f"{heading}:\n{text.strip()}" if text.strip() else ""


def _list_section(heading: str, lines: Sequence[str]) -> str:
    """Return a section with a list; "" if the list is empty."""
    return _section(heading, "\n".join(f"- {line}" for line in lines))


def shorten(text: str) -> str:
    """Return a fault on one line of at most FAULT characters, without control characters.

    The fault may quote a model's text, which could otherwise move a cursor.
    """
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    text = " ".join(text.split())
    return text if len(text) <= FAULT else f"{text[: FAULT - 3]}..."
