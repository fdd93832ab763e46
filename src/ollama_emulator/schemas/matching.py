"""Regular expressions matched in linear time, by following all ways through an automaton at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from re import IGNORECASE, MULTILINE, VERBOSE, _parser, error  # type: ignore[attr-defined]  # the only parser of Python's patterns
from typing import Any

from ollama_emulator.remembering import short

_KEPT = 2000  # longest pattern that is cached, in characters
_LONGEST = 20_000  # longest pattern that is parsed, in characters
_STATES = 4000  # of one automaton, in which counted repeats are written out
_STEPS = 200_000  # of one search
_ENDLESS = _parser.MAXREPEAT
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


class _Unsupported(Exception):
    """Raised for a pattern that no automaton of a bounded size can match."""


@dataclass(slots=True)
class _State:
    """A state of an automaton: with a `test` it consumes one character, with an `anchor` it checks the place."""

    following: list[int]
    test: Callable[[str], bool] | None = None
    anchor: str = ""


@dataclass(slots=True)
class Automaton:
    """A pattern as a nondeterministic automaton; state 0 accepts and `start` is where matching begins."""

    states: list[_State] = field(default_factory=list)
    start: int = 0

    def found_in(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text; False also if that takes too many steps."""
        steps = 0
        active: set[int] = set()
        for at in range(len(text) + 1):
            active = self._reachable({*active, self.start}, text, at)
            if 0 in active:
                return True
            steps += len(active) + 1
            if steps > _STEPS or at == len(text):
                return False
            letter = text[at]
            active = {
                target
                for place in active
                if (test := self.states[place].test) is not None and test(letter)
                for target in self.states[place].following
            }
        return False

    def _reachable(self, places: set[int], text: str, at: int) -> set[int]:
        """Return these states and all that follow from them without a character, at the offset `at` of the text."""
        waiting = list(places)
        while waiting:
            state = self.states[waiting.pop()]
            if state.test is not None or (state.anchor and not _anchor_holds(state.anchor, text, at)):
                continue
            for target in state.following:
                if target not in places:
                    places.add(target)
                    waiting.append(target)
        return places

    def add(self, following: Iterable[int], test: Callable[[str], bool] | None = None, anchor: str = "") -> int:
        """Add a state that leads to the states `following`; return its number.

        Raises: _Unsupported: there are too many.
        """
        if len(self.states) >= _STATES:
            raise _Unsupported
        self.states.append(_State([*following], test, anchor))
        return len(self.states) - 1

    def all(self, items: Iterable[Any], end: int) -> int:
        """Add the states for a sequence of parsed elements that leads to the state `end`; return the first state."""
        for kind, value in reversed(list(items)):
            end = self._add_element(str(kind), value, end)
        return end

    def _add_element(self, kind: str, value: Any, end: int) -> int:
        """Add the states for one parsed element. Raises: _Unsupported: an automaton cannot match it."""
        if kind in REPEATS:
            return self._repeat(value, end)
        if kind == "BRANCH":
            return self.add([self.all(part, end) for part in value[1]])
        if kind == "SUBPATTERN":
            if value[1] or value[2]:  # the group sets flags
                raise _Unsupported
            return self.all(value[3], end)
        if kind == "ATOMIC_GROUP":
            return self.all(value, end)
        if kind == "AT":
            return self.add([end], anchor=str(value))
        return self.add([end], _character_test(kind, value))

    def _repeat(self, value: Any, end: int) -> int:
        """Add the states for a repeat: its least number of copies, then a loop or optional copies."""
        fewest, most, inner = value
        if fewest > _STATES or (most is not _ENDLESS and most > _STATES):
            raise _Unsupported
        if most is _ENDLESS:
            loop = self.add([end])
            self.states[loop].following.append(self.all(inner, loop))
            first = loop
        else:
            first = end
            for _ in range(int(most) - fewest):
                first = self.add([self.all(inner, first), end])
        for _ in range(fewest):
            first = self.all(inner, first)
        return first


def _character_test(kind: str, value: Any) -> Callable[[str], bool]:
    """Return the test for one character of a parsed element. Raises: _Unsupported: there is none."""
    if kind == "LITERAL":
        return lambda letter: ord(letter) == value
    if kind == "NOT_LITERAL":
        return lambda letter: ord(letter) != value
    if kind == "ANY":
        return lambda letter: letter != "\n"
    if kind == "IN":
        return lambda letter: in_class(value, letter)
    raise _Unsupported


def _anchor_holds(anchor: str, text: str, at: int) -> bool:
    """Return whether an anchor holds at an offset of a text."""
    if anchor.startswith("AT_BEGINNING"):
        return at == 0
    if anchor == "AT_END":
        return at == len(text) or (at == len(text) - 1 and text[at] == "\n")
    if anchor == "AT_END_STRING":
        return at == len(text)
    before = at > 0 and _is_word_character(text[at - 1])
    after = at < len(text) and _is_word_character(text[at])
    return (before != after) == (anchor == "AT_BOUNDARY")


def _is_word_character(letter: str) -> bool:
    return letter.isalnum() or letter == "_"


def in_class(items: Iterable[Any], letter: str) -> bool:
    """Return whether a character belongs to a parsed character class."""
    negated = inside = False
    for kind, value in items:
        name = str(kind)
        if name == "NEGATE":
            negated = True
        elif name == "LITERAL":
            inside = inside or ord(letter) == value
        elif name == "RANGE":
            inside = inside or value[0] <= ord(letter) <= value[1]
        elif name == "CATEGORY":
            inside = inside or _in_category(str(value), letter)
    return inside != negated


def _in_category(name: str, letter: str) -> bool:
    """Test if a character is in a category of `re`, such as `CATEGORY_NOT_DIGIT`."""
    bare = name.replace("NOT_", "")
    inside = {
        "CATEGORY_DIGIT": letter.isdigit(),
        "CATEGORY_SPACE": letter.isspace(),
        "CATEGORY_WORD": _is_word_character(letter),
    }.get(bare, False)
    return inside != ("NOT_" in name)


@short(256, _KEPT)
def parse(pattern: str) -> Any:
    """Return the parse tree of a pattern by Python's `re`, or None.

    None stands for a pattern that is invalid or too long; as in the runner, any string then fits.
    """
    if len(pattern) > _LONGEST:
        return None
    try:
        return _parser.parse(pattern)
    except (error, OverflowError):
        return None


@short(256, _KEPT)
def machine(pattern: str) -> Automaton | None:
    """Return the automaton of a pattern, or None.

    None stands for a pattern with lookarounds, back references or flags, and for one that is too large.
    """
    tree = parse(pattern)
    if tree is None or tree.state.flags & (IGNORECASE | MULTILINE | VERBOSE):
        return None
    made = Automaton()
    made.add([])
    try:
        made.start = made.all(tree, 0)
    except (_Unsupported, RecursionError):
        return None
    return made


def found(pattern: str, text: str) -> bool:
    """Return whether a pattern matches within a text: True if it is invalid, False if it is not supported."""
    if parse(pattern) is None:
        return True
    known = machine(pattern)
    return known is not None and known.found_in(text)
