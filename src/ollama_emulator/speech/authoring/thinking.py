"""Write methods that think: they ask the model a question built from their intent and return its answer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from ollama_emulator.speech.authoring.wish_texts import MethodCheck, MethodWish, WrittenMethod, literal, method
from ollama_emulator.speech.sources import cut

#: Characters: of the longest source, of the intent in it (the first that makes it fit), and of the longest name.
_LONGEST: Final = 1_950
_ROOMS: Final = (900, 400, 100)
_NAME: Final = 60
_SHAPE: Final = re.compile(r"\{\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\}")
_LISTED: Final = re.compile(r"\blist of\s*\{", re.IGNORECASE)
_ADDRESSES: Final = frozenset(("url", "uri", "link", "href", "address"))
_SAID: Final = ("A place where ships lie.", "First the lamp, then the gate.")
_ASKED: Final = ("What is a harbour?", "Is the lamp lit before the gate is shut?")


def think(wish: MethodWish) -> WrittenMethod:
    """Write a method that asks the model: a facet, a protocol, or one whose intent calls for no known computation."""
    return next(filter(None, (_write_within(wish, room) for room in _ROOMS)))


def _write_within(wish: MethodWish, room: int) -> WrittenMethod | None:
    """Write the method with at most `room` characters of its intent.

    Return None if it is too long and a smaller room is left to be tried.
    """
    wish = replace(wish, told=cut(" ".join(wish.intent.split()), room))
    made = None if wish.speaks else _write_shaped(wish)
    if made is None:
        body = [*voice(wish), f"return {question_expression(wish)}"]
        checks = tuple(MethodCheck(arguments(wish, at), (said,), said) for at, said in enumerate(_SAID))
        made = WrittenMethod(method(wish, body, about(wish), thinks=True), checks)
    return made if len(made.source) <= _LONGEST or room == _ROOMS[-1] else None


def voice(wish: MethodWish) -> list[str]:
    """Return the lines of source that set `voice`, the system prompt with the role and the intent."""
    who = cut(wish.title or wish.selector, _NAME)
    after = f", after {cut(wish.inspiration, _NAME)}" if wish.inspiration else ""
    head = f"Think now only as {who}{after}."
    if wish.kind == "protocol":
        head = f"Apply {who} to the answer below{after}. Give the whole answer as it then reads."
    return ["voice = (", *(f"    {line}" for line in literal(f"{head}\n{wish.told}")), ")"]


def question_expression(wish: MethodWish) -> str:
    """Return the expression that asks the model: a subject with every argument, and the system prompt."""
    given = [name.lstrip("*") for name in wish.parameters]
    about = "This is your answer so far:" if wish.kind == "protocol" else "Your part of the question:"
    parts = [f'"{about}\\n"']
    parts += [f"str({given[0]})"] if len(given) == 1 else [f'"{name}: " + str({name}) + "\\n"' for name in given]
    return f"await self.infer_({' + '.join(parts)}, system=voice)"


def about(wish: MethodWish) -> str:
    """Return the text of a method's docstring: its title, without characters that would end a docstring."""
    return re.sub(r'["\\\x00-\x1f]', " ", cut(wish.title or wish.selector, _NAME)) + ", by template."


def arguments(wish: MethodWish, at: int) -> tuple[object, ...]:
    """Return the arguments of the check with the number `at`: a question first, then numbers and names."""
    more = (2 + at, "plain", f"part {at + 1}")
    return tuple(_ASKED[at % 2] if place == 0 else more[(place - 1) % 3] for place in range(len(wish.parameters)))


def _write_shaped(wish: MethodWish) -> WrittenMethod | None:
    """Write a method that returns a dict with the keys that the intent names (`{title, text}`), or a list of such.

    A key with an argument's name gets that argument, an address stays empty, and any other key gets the model's answer.
    Return None if the intent names no keys.
    """
    found = _SHAPE.search(wish.intent)
    if found is None or not wish.parameters:
        return None
    keys = [key.strip() for key in found[1].split(",")]
    many = bool(_LISTED.search(wish.intent))
    text = "line" if many else "reply"
    held = {key: key if key in wish.parameters else '""' if key in _ADDRESSES else text for key in keys}
    pairs = ", ".join(f'"{key}": {what}' for key, what in held.items())
    body = [*voice(wish), f"reply = {question_expression(wish)}"]
    if many:
        limit = f"[:{wish.parameters[1]}]" if len(wish.parameters) > 1 else ""
        body.append(f"return [{{{pairs}}} for line in reply.splitlines() if line.strip()]{limit}")
    else:
        body.append(f"return {{{pairs}}}")
    checks = []
    for at, said in enumerate(_SAID):
        given = dict(zip(wish.parameters, arguments(wish, at), strict=True))
        made = {key: given.get(key, "" if key in _ADDRESSES else said) for key in keys}
        checks.append(MethodCheck(tuple(given.values()), (said,), [made] if many else made))
    return WrittenMethod(method(wish, body, about(wish), thinks=True), tuple(checks))
