"""Faults on order: which request they strike, and what becomes of its reply.

A fault is {"match": {"path", "method", "model", "selector", "nth", "every"}, "do": NAME, "times": N, and what NAME
takes}. All of `match` is optional; `nth` counts from 1 among the requests that fit the rest; `times` (1 where there is
neither nth nor every) limits how often it strikes. Without a path it strikes where it means something: words in
answers, and so on. docs/emulator.md shows each with an example.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.speech.authoring.authors import AUTHORS

_ANSWERS = ("/api/chat", "/api/generate", "/v1/chat/completions", "/v1/completions")
_LOADS = (*_ANSWERS, "/api/embed", "/api/embeddings", "/v1/embeddings")
_STREAMS = (*_ANSWERS, "/api/pull", "/api/create")
_LARGE = 10**9  # the largest number of tokens, lines or seconds
_TAKES_ALL = frozenset(("match", "do", "times"))


@dataclass(frozen=True, slots=True)
class Value:
    """The values that a key of a fault may have: a description, and a test."""

    words: str
    fits: Callable[[Any], bool]


def _whole_number_field(least: int, most: int = _LARGE) -> Value:
    """Describe a field that takes whole numbers within these bounds."""
    words = f"a whole number of at least {least}" if most == _LARGE else f"a whole number from {least} to {most}"

    def fits(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Value(words, fits)


def _number_field(least: float, most: float = _LARGE) -> Value:
    """Describe a field that takes numbers within these bounds."""
    words = f"a number of at least {least:g}" if most == _LARGE else f"a number from {least:g} to {most:g}"

    def fits(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

    return Value(words, fits)


_TEXT = Value("a text", lambda value: isinstance(value, str))
_AUTHOR = Value(f"one of {', '.join(AUTHORS)}", lambda value: isinstance(value, str) and value in AUTHORS)
_AFTER = _whole_number_field(0)
_SECONDS = _number_field(0)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: a description, the paths to which it applies (all if empty), its keys, and those required.

    With `codes` it applies only to requests that ask for code.
    """

    says: str
    paths: tuple[str, ...] = ()
    takes: Mapping[str, Value] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    codes: bool = False


@dataclass(frozen=True, slots=True)
class FaultTarget:
    """A request, as faults match it; `selectors` are the methods that it asks code for."""

    method: str
    path: str
    model: str = ""
    selectors: Sequence[str] = ()


KINDS: dict[str, Kind] = {
    "status": Kind(
        'the request is refused: "status" (500), "error" (its text)',
        takes={"status": _whole_number_field(400, 599), "error": _TEXT},
    ),
    "cut": Kind('the connection closes after "after" lines (1; 0 before any reply)', _STREAMS, {"after": _AFTER}),
    "no_done": Kind("the last line never comes (a whole reply says done: false)", _STREAMS),
    "error_line": Kind(
        'after "after" lines (1) comes {"error": "error"} and the end; a whole reply is refused with "status" (500)',
        _STREAMS,
        {"after": _AFTER, "error": _TEXT, "status": _whole_number_field(400, 599)},
    ),
    "bad_line": Kind('after "after" lines (1) comes a line that is no JSON', _STREAMS, {"after": _AFTER}),
    "stall": Kind(
        'after "after" lines (0) nothing for "seconds" (60)', _STREAMS, {"after": _AFTER, "seconds": _SECONDS}
    ),
    "nel": Kind("the answer holds a raw U+0085", _ANSWERS),
    "blanks": Kind("the answer is blanks until num_predict", _ANSWERS),
    "repeat": Kind("the answer is one word until num_predict", _ANSWERS),
    "broken_json": Kind("the answer stops being JSON half way", _ANSWERS),
    "text": Kind('the answer is "text"', _ANSWERS, {"text": _TEXT}, ("text",)),
    "author": Kind(
        'the method that is asked for is written by "author"', _ANSWERS, {"author": _AUTHOR}, ("author",), codes=True
    ),
    "truncate": Kind(
        'of the prompt no more than "tokens" (256) are read, and nothing says so',
        _ANSWERS,
        {"tokens": _whole_number_field(1)},
    ),
    "overflow": Kind(
        'the prompt is said not to fit: "n_prompt_tokens", "n_ctx"',
        _ANSWERS,
        {"n_prompt_tokens": _whole_number_field(1), "n_ctx": _whole_number_field(1)},
    ),
    "kill_answer": Kind('the runner is killed after "after" lines (1)', _ANSWERS, {"after": _AFTER, "error": _TEXT}),
    "kill_load": Kind('the runner dies while it loads, with "error" as its words', _LOADS, {"error": _TEXT}),
    "oom": Kind(
        'the load runs out of memory, "attempts" times (2: the daemon tries again once by itself)',
        _LOADS,
        {"attempts": _whole_number_field(1)},
    ),
    "slow_load": Kind('the next load is silent for "seconds" (1) more', _LOADS, {"seconds": _SECONDS}),
    "spill": Kind(
        'the load finds only "share" (0.5) of its memory on the card', _LOADS, {"share": _number_field(0, 1)}
    ),
}
_MATCH: dict[str, Value] = {
    "path": _TEXT,
    "method": _TEXT,
    "model": _TEXT,
    "selector": _TEXT,
    "nth": _whole_number_field(1),
    "every": _whole_number_field(1),
}


@dataclass(slots=True)
class InjectedFault:
    """A fault in force; `seen` counts the requests that matched, `struck` those to which it was applied."""

    do: str
    match: Mapping[str, Any] = field(default_factory=dict)
    times: int | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    seen: int = 0
    struck: int = 0

    @classmethod
    def parse(cls, described: Any, where: str = "fault") -> InjectedFault:
        """Read a fault from its JSON; `where` is its place, for the error.

        Raises: OptionError: the fault is invalid; `field` is the place and `remedy` says what is allowed.
        """
        if not isinstance(described, dict):
            raise _wrong_value(where, described, "an object", 'Write {"do": "status"}, for instance.')
        kind = KINDS.get(described.get("do", "")) if isinstance(described.get("do"), str) else None
        if kind is None:
            raise _wrong_value(
                f"{where}.do", described.get("do"), "a fault", f"It is one of {', '.join(sorted(KINDS))}."
            )
        match = described.get("match", {})
        if not isinstance(match, dict):
            raise _wrong_value(f"{where}.match", match, "an object", f"It takes {', '.join(_MATCH)}.")
        _check(match, _MATCH, f"{where}.match", "It")
        given = {key: value for key, value in described.items() if key not in _TAKES_ALL}
        _check(given, kind.takes, where, f"`{described['do']}`")
        for name in kind.needs:
            if name not in given:
                raise _wrong_value(f"{where}.{name}", None, kind.takes[name].words, f"`{described['do']}` needs it.")
        if "times" in described:
            _check({"times": described["times"]}, {"times": _whole_number_field(1)}, where, "It")
        times = described.get("times", None if "nth" in match or "every" in match else 1)
        return cls(described["do"], match, times, given)

    def strikes(self, asked: FaultTarget) -> bool:
        """Count a request if it matches; return whether the fault applies to it."""
        match, kind = self.match, KINDS[self.do]
        if asked.path not in ((match["path"],) if "path" in match else kind.paths or (asked.path,)):
            return False
        if match.get("method", asked.method) != asked.method or match.get("model", asked.model) != asked.model:
            return False
        if kind.codes and not asked.selectors:
            return False
        if "selector" in match and match["selector"] not in asked.selectors:
            return False
        self.seen += 1
        if self.times is not None and self.struck >= self.times:
            return False
        if "nth" in match and self.seen != match["nth"]:
            return False
        if "every" in match and self.seen % match["every"]:
            return False
        self.struck += 1
        return True

    def number(self, name: str, default: float) -> float:
        """Return the number under a key of the fault, or the default."""
        return float(self.given.get(name, default))

    def text(self, name: str, default: str) -> str:
        """Return the text under a key of the fault, or the default."""
        return str(self.given.get(name, default))

    def as_dict(self) -> dict[str, Any]:
        """Return the fault as JSON, with `seen` and `struck`."""
        return {
            **({"match": dict(self.match)} if self.match else {}),
            "do": self.do,
            **({"times": self.times} if self.times is not None else {}),
            **self.given,
            "seen": self.seen,
            "struck": self.struck,
        }


def _check(given: Mapping[str, Any], takes: Mapping[str, Value], where: str, who: str) -> None:
    """Check the keys and values of a fault. Raises: OptionError: a key is unknown or a value invalid."""
    for key, value in given.items():
        allowed = takes.get(key)
        if allowed is None:
            words = f"takes {', '.join(takes)}" if takes else "takes nothing"
            raise OptionError(f"{where}.{key} is not known", field=f"{where}.{key}", remedy=f"{who} {words}.")
        if not allowed.fits(value):
            raise _wrong_value(f"{where}.{key}", value, allowed.words, f"Write {allowed.words}.")


def _wrong_value(where: str, value: Any, wanted: str, remedy: str) -> OptionError:
    shown = json.dumps(value, ensure_ascii=False)
    return OptionError(f"{where} is {shown[:60]}, not {wanted}", field=where, remedy=remedy)


@dataclass(slots=True)
class FaultList:
    """The faults in force, in the order in which they were added."""

    orders: list[InjectedFault] = field(default_factory=list)

    def add(self, described: Any, where: str = "fault") -> None:
        """Add a fault or a list of faults from JSON. Raises: OptionError: one is invalid, and none was added."""
        if isinstance(described, list):
            self.orders += [InjectedFault.parse(one, f"{where}[{at}]") for at, one in enumerate(described)]
        else:
            self.orders.append(InjectedFault.parse(described, where))

    def take(self, asked: FaultTarget) -> InjectedFault | None:
        """Return the first fault that applies to a request, or None."""
        for order in self.orders:
            if order.strikes(asked):
                return order
        return None

    def clear(self) -> None:
        """Remove all faults."""
        self.orders.clear()


def read(path: Path | None) -> FaultList:
    """Read a JSON file of faults, a list or {"faults": [...]}; None gives no faults.

    Raises: OptionError: it is invalid.
    """
    faults = FaultList()
    if path is None:
        return faults
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as fault:
        raise OptionError(
            f"the faults file {path} cannot be read: {fault}",
            field="faults",
            remedy='It holds JSON: a list of faults, or {"faults": [...]}.',
        ) from fault
    if isinstance(document, dict) and "faults" in document:
        _check(document, {"faults": Value("a list", lambda value: isinstance(value, list))}, str(path), "The file")
        document = document["faults"]
    if not isinstance(document, list):
        raise _wrong_value("faults", document, "a list", 'Write a list of faults, or {"faults": [...]}.')
    faults.add(document, "faults")
    return faults
