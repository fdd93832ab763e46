"""Plans of missions as lines that a person reads and edits: sub-questions, with the calls and effects of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from batos.memory import segmentation
from batos.protocol import brief_checks
from batos.protocol.brief_checks import plain_json
from batos.protocol.errors import BriefError

#: The most calls for a question, and the most characters of a sub-question and of a whole plan.
MOST_CALLS, MOST_QUERY, MOST_TEXT = 3, 1_000, 64 * 1024
_WORDS: Final = "each line begins with `part`, `call`, `effect`, or # for a remark"


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call of a tool, or an effect, with its arguments; of an effect those are left out that the answer gives."""

    name: str
    arguments: Mapping[str, Any]

    def as_line(self, word: str) -> str:
        """Return the call as the line of a plan."""
        return f"{word} {self.name} {json.dumps(dict(self.arguments), ensure_ascii=False)}"

    def is_same(self, other: PlannedCall) -> bool:
        """Test if two calls are the same as JSON, where 1 is not true."""
        one, two = (json.dumps([each.name, dict(each.arguments)], sort_keys=True) for each in (self, other))
        return one == two


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A sub-question with its calls; the one without a name is the question itself."""

    name: str
    query: str
    calls: tuple[PlannedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class MissionPlan:
    """The parts of a plan, the question first, and its effects."""

    parts: tuple[PlannedPart, ...]
    effects: tuple[PlannedCall, ...] = ()

    def as_text(self, remarks: Iterable[str] = ()) -> str:
        """Return the lines of the plan below some remarks; `read_plan` reads them back."""
        lines = [f"# {_one_line(each)}" for each in remarks]
        for part in self.parts:
            lines += [f"part {part.name}: {_one_line(part.query)}"] if part.name else []
            lines += [each.as_line("call") for each in part.calls]
        return "\n".join([*lines, *(each.as_line("effect") for each in self.effects)])

    def has_call(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Test if exactly this call stands in the plan."""
        wanted = PlannedCall(name, arguments)
        return any(each.is_same(wanted) for part in self.parts for each in part.calls)

    def calls_for(self, query: str) -> list[PlannedCall]:
        """Return the calls for a question."""
        return [each for part in self.parts if part.query == query for each in part.calls]


@dataclass(slots=True)
class _PlanReading:
    """The reading of a plan's lines, with what is wrong with them."""

    frame: Mapping[str, Any]
    parts: dict[str, PlannedPart] = field(default_factory=dict)
    effects: list[PlannedCall] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    part: str = ""

    def take(self, number: int, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        reads = {"part": self._part, "call": self._call, "effect": self._effect}.get(word)
        faults = [f"{word[:40]!r} begins no line of a plan: {_WORDS}"] if reads is None else reads(rest.strip())
        self.faults += [f"line {number}: {each}" for each in faults]

    def _part(self, rest: str) -> Iterator[str]:
        name, colon, query = (each.strip() for each in rest.partition(":"))
        self.part = name
        if name not in self.frame["parts"]:
            yield f"there is no part {name[:80]!r}: the parts are {_names(self.frame['parts'])}"
        elif name in self.parts:
            yield f"the part {name!r} stands here for the second time"
        elif not colon or not query:
            yield f"the part {name!r} has no question: write `part {name}: QUESTION`"
        elif len(query) > MOST_QUERY:
            yield f"the question has {len(query):,} characters, at most {MOST_QUERY:,} are taken"
        self.parts.setdefault(name, PlannedPart(name, query))

    def _call(self, rest: str) -> Iterator[str]:
        part = self.parts.get(self.part) or PlannedPart(self.part, "")
        call = yield from self._read(rest, "tool", self.frame["tools"])
        if call is not None and any(map(call.is_same, part.calls)):
            yield f"the call of {call.name} stands here for the second time"
        elif len(part.calls) == MOST_CALLS:
            yield f"there are more than {MOST_CALLS} calls for one question"
        elif call is not None:
            self.parts[self.part] = PlannedPart(part.name, part.query, (*part.calls, call))

    def _effect(self, rest: str) -> Iterator[str]:
        call = yield from self._read(rest, "effect", self.frame["effects"])
        if call is not None and self.effects:
            yield "a plan has one effect at most"
        elif call is not None:
            self.effects.append(call)

    def _read(self, rest: str, kind: str, known: Mapping[str, Any]) -> Any:
        """Yield what is wrong with a call, and return it; None where something is."""
        name, _, given = rest.partition(" ")
        if name not in known:
            yield f"there is no {kind} {name[:80]!r} for this question: there are {_names(known)}"
            return None
        try:
            arguments: Any = plain_json(json.loads(given or "{}"))
        except (ValueError, RecursionError) as error:
            yield f"the arguments of {name} are no JSON: {error}"
            return None
        faults = [
            *brief_checks.find_faults({"type": "object", **known[name], "additionalProperties": False}, arguments)
        ]
        yield from (f"the arguments of {name}: {each}" for each in faults)
        return None if faults else PlannedCall(name, arguments)


def read_plan(text: str, frame: Mapping[str, Any]) -> MissionPlan:
    """Return the plan that some lines are.

    `frame` is what they may name: {question, parts, tools, effects}, the last two with the schemas of arguments.

    Raises: BriefError: lines are wrong; it names each and the remedy.
    """
    reading = _PlanReading(frame)
    if len(text) > MOST_TEXT:
        what = f"plan: it has {len(text):,} characters, at most {MOST_TEXT:,} are taken"
        raise BriefError(what, field="plan", remedy="Take lines out.")
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            reading.take(number, line)
    missing = [each for each in frame["parts"] if each not in reading.parts]
    reading.faults += [f"the part {each!r} has no line: add `part {each}: QUESTION`" for each in missing]
    if reading.faults:
        first, *others = reading.faults
        raise BriefError(f"plan: {first}", field="plan", remedy="Correct the line, or take it out.").add_faults(others)
    whole = PlannedPart("", frame["question"], reading.parts.pop("", PlannedPart("", "")).calls)
    return MissionPlan((whole, *reading.parts.values()), tuple(reading.effects))


def _names(known: Iterable[str]) -> str:
    return ", ".join(sorted(known)) or "none"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def mark(text: str, words: Sequence[str]) -> str:
    """Return a text with some of its words in brackets, as a person is shown what asks.

    >>> mark("tide marmalade", ["marmalade"])
    'tide [marmalade]'
    """
    marked = [each if frozenset(words).isdisjoint(segmentation.words(each)) else f"[{each}]" for each in text.split()]
    return " ".join(marked)
