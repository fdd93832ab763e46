"""Authors of methods: a good one, and others that each make one known mistake, to test how BAT OS handles it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ollama_emulator.speech.authoring import hostile, orders
from ollama_emulator.speech.authoring.computing import compute
from ollama_emulator.speech.authoring.orders import Order, PlainOrder
from ollama_emulator.speech.authoring.thinking import about, think
from ollama_emulator.speech.authoring.wish_texts import MethodCheck, MethodWish, WrittenMethod, method

GOOD: Final = "good"
#: Authors who break the reply as a whole and not the method in it.
BROKEN, ENDLESS = "broken_json", "endless"
_RUBBISH: Final = "Zarquon Vell counted 41,977 of them in 1876, and nobody asked again."
_ROUNDS: Final = 3  # times that the wasteful author repeats its question
_MARKER: Final = "self._p_changed = True"

Author = Callable[[MethodWish, int], WrittenMethod]


def good(wish: MethodWish, number: int = 0) -> WrittenMethod:
    """Write a method within dialect and covenant, with two checks that a method without effect fails."""
    return compute(wish) or think(wish)


def no_marker(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method that changes its object without marking it as changed (`_p_changed`)."""
    made = good(wish)
    lines = made.source.splitlines()
    if any(_MARKER in line for line in lines):
        return replace(made, source="\n".join(line for line in lines if _MARKER not in line) + "\n")
    return _prepend_lines(made, [f'self.last_call = "{wish.selector}"'])


def failing_check(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a good method with one check that it fails."""
    made = good(wish)
    wrong, *others = made.checks
    never = "nothing of the kind"
    spoilt = replace(wrong, after=dict.fromkeys(wrong.after, never)) if wrong.after else replace(wrong, result=never)
    return replace(made, checks=(spoilt, *others))


def empty_checks(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method without checks."""
    return replace(good(wish), checks=())


def null_checks(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method with checks that a method without effect passes too."""
    made = good(wish)
    if not wish.parameters:
        return WrittenMethod(
            method(wish, ["return None"], about(wish)), tuple(MethodCheck(slots=check.slots) for check in made.checks)
        )
    name = wish.parameters[0].lstrip("*")
    more = made.checks[0].arguments[1:]
    checks = tuple(MethodCheck((nothing, *more)) for nothing in ("", 0))
    return replace(_prepend_lines(made, [f"if not {name}:", "    return None"]), checks=checks)


def raises_later(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method that passes its checks and raises ValueError for any other first argument."""
    return _unchecked_method(wish, [f'raise ValueError("{wish.selector} knows only what it was checked with")'])


def rubbish(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method that passes its checks and returns invented figures and names for any other first argument."""
    return _unchecked_method(wish, [f"return {_RUBBISH!r}"])


def wasteful(wish: MethodWish, number: int) -> WrittenMethod:
    """Write a method that passes its checks, and for any other first argument asks the model three more times.

    A method that asks no model counts in a long loop instead.
    """
    made = good(wish)
    if "await" not in made.source:
        return _unchecked_method(wish, ["for turn in range(20000):", "    pass"])
    again = f'await self.infer_("Once more, in full, round " + str(turn) + ": " + str({wish.parameters[0]}))'
    return _unchecked_method(wish, [f"for turn in range({_ROUNDS}):", f"    {again}"])


def _prepend_lines(made: WrittenMethod, lines: Sequence[str]) -> WrittenMethod:
    """Return the method with these lines put at the beginning of its body."""
    head, mark, rest = made.source.partition('"""\n')
    return replace(made, source=head + mark + "".join(f"    {line}\n" for line in lines) + rest)


def _unchecked_method(wish: MethodWish, lines: Sequence[str]) -> WrittenMethod:
    """Return the good method with lines that run if its first argument is in none of its checks.

    A method without a positional argument stays good.
    """
    made = good(wish)
    if not wish.parameters or wish.parameters[0].startswith("*"):
        return made
    known = [check.arguments[0] for check in made.checks]
    return _prepend_lines(made, [f"if {wish.parameters[0]} not in {known!r}:", *(f"    {line}" for line in lines)])


def _hostile(kind: str = "") -> Author:
    """Return an author of one kind of attack, or of one chosen by the request's number."""

    def author(wish: MethodWish, number: int) -> WrittenMethod:
        kinds = tuple(hostile.ATTACKS)
        attack = hostile.ATTACKS[kind or kinds[number % len(kinds)]]
        return replace(good(wish), source=attack.source(wish))

    return author


#: Every author by name; `hostile` varies the kind of attack with the request, `hostile-KIND` keeps to one.
AUTHORS: Final[Mapping[str, Author]] = {
    GOOD: good,
    "no_marker": no_marker,
    "failing_check": failing_check,
    "empty_checks": empty_checks,
    "null_checks": null_checks,
    "raises_later": raises_later,
    "rubbish": rubbish,
    "wasteful": wasteful,
    BROKEN: good,
    ENDLESS: good,
    "hostile": _hostile(),
    **{f"hostile-{kind}": _hostile(kind) for kind in hostile.ATTACKS},
}


#: The lines that the endless author repeats.
_AGAIN: Final = ("\\n", "    total", " =", " total", " +", " 1")


@dataclass(frozen=True, slots=True)
class AuthorReply:
    """The reply of an author; `again` is repeated after it, by an author that never ends."""

    text: str
    again: tuple[str, ...] = ()


def write(author: str, order: Order, drawn: dict[str, Any], number: int) -> AuthorReply:
    """Return an author's reply to a request for code; of several methods only the last has the author's mistake.

    `drawn` is an instance of the request's schema; the methods replace its own. `number` varies with the request.
    """
    first = [good(wish) for wish in order.wishes[:-1]]
    whole = orders.fill_reply(order, [*first, AUTHORS[author](order.wishes[-1], number)], drawn)
    return _spoil(author, json.dumps(whole, ensure_ascii=False))


def write_plain(author: str, order: PlainOrder, number: int) -> AuthorReply:
    """Return an author's reply to a request in plain words."""
    return _spoil(author, orders.plain_reply(order, AUTHORS[author](order.wish, number)))


def _spoil(author: str, text: str) -> AuthorReply:
    """Return a reply as a whole, or as the authors that break it leave it."""
    if author == BROKEN:
        return AuthorReply(text[: len(text) // 2])
    if author == ENDLESS:
        return AuthorReply(text[: text.rindex("return")] if "return" in text else text[:-2], _AGAIN)
    return AuthorReply(text)


@dataclass(slots=True)
class Roster:
    """The order in which authors take requests: each of `sequence` once, then the last for all others."""

    sequence: Sequence[str] = (GOOD,)
    taken: int = 0

    def next(self) -> str:
        """Return the name of the next author, and count it as taken."""
        author = self.sequence[min(self.taken, len(self.sequence) - 1)]
        self.taken += 1
        return author
