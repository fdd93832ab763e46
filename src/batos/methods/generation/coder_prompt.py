"""What a coder is asked, composed in one place: the dialect, who the object is, the wish, and at the end the task.

docs/generation.md has the format, line by line: the emulator's authors read it. Stable text stands first, so that
generations share the runner's prompt cache, and a repair only appends.
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
#: Most faults of one attempt that are told, and characters of each.
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
    """The first request; `guide` is the reply's schema in prose."""
    sections = [
        _long("Owner", wanted.owner),
        _heads(wanted),
        _long("Intent", wanted.text),
        _listed("Examples", wanted.examples),
        _listed("Slots", [f"{name}: {kind}" for name, kind in wanted.slots]),
        _listed("Messages", wanted.messages),
        _long("Task", with_guide(task(wanted), guide)),
    ]
    asked = "\n\n".join(section for section in sections if section)
    system = f"{HEAD}\n\n{dialect.strip()}"
    return ({"role": "system", "content": system}, {"role": "user", "content": asked})


def task(wanted: MethodSpec) -> str:
    """What a method of this kind takes and gives, and how its checks are written."""
    what = (
        f"Write the method `{wanted.selector}` so that it does what its intent says. {_KINDS.get(wanted.kind, _PLAIN)}"
    )
    return f"{what}\n{CHECKS}"


def repair(text: str, faults: Sequence[str]) -> tuple[Message, ...]:
    """What is appended after an attempt that failed: the reply as it was given, and what is wrong with it."""
    told = "\n".join(f"- {shorten(each)}" for each in faults[:FAULTS])
    asked = f"{REFUSED}\n{told}\n{_AGAIN}"
    return ({"role": "assistant", "content": text or "{}"}, {"role": "user", "content": asked})


def _heads(wanted: MethodSpec) -> str:
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


def _long(heading: str, text: str) -> str:
    return f"{heading}:\n{text.strip()}" if text.strip() else ""


def _listed(heading: str, lines: Sequence[str]) -> str:
    return _long(heading, "\n".join(f"- {line}" for line in lines))


def shorten(text: str) -> str:
    """A fault on one line, without what could move a cursor: it may quote what a model wrote."""
    text = "".join(sign if sign.isprintable() else " " for sign in text)
    text = " ".join(text.split())
    return text if len(text) <= FAULT else f"{text[: FAULT - 3]}..."
