"""Levers: a closed table of what the mind may change of itself, with the values that are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias, cast

from batos.autotelic import slot_kinds, slot_values
from batos.autotelic.slot_values import Changes, SlotPlace, SlotWrite
from batos.genesis import state_steps
from batos.genesis.state_steps import BoundValue, Steps
from batos.image.roots import Root
from batos.objects.prototype import own_slots
from batos.records.redefinitions import Value

#: 1: kept by itself when it is better; 2: the same, announced; 3: kept by a person alone.
Risk: TypeAlias = Literal[1, 2, 3]
#: Makes the values to be tried of slots as they are, and of the models that Ollama has beside the codex's.
Vary: TypeAlias = Callable[[Sequence[SlotPlace], Sequence[str]], Iterator[Sequence[Value]]]


@dataclass(frozen=True, slots=True)
class LeverKind:
    """A kind of lever: its risk, the lines of the metric whose decay calls for it, and the values that are tried.

    `slot` is the name of its slot, or the end of its slots' names; with `apart` each of these is a lever of its own,
    else all change together.
    """

    name: str
    slot: str
    risk: Risk
    lines: frozenset[str]
    vary: Vary
    apart: bool = False
    #: The part of the slot that is changed, where several kinds change it: a step of a state, or a new facet.
    step: str = ""


@dataclass(frozen=True, slots=True)
class Lever:
    """A lever of this image: its name, its kind, the values that act, and those to be tried."""

    name: str
    kind: LeverKind
    acting: Changes
    others: tuple[Changes, ...]


def list_levers(root: Root, models: Sequence[str] = ()) -> list[Lever]:
    """List the levers of an image that have another value than the acting one; `models` are those that Ollama has."""
    places = {each.name: each for each in slot_values.list_places(root)}
    groups = ((kind, [places[name] for name in names]) for kind in KINDS for names in _groups(kind, places))
    return [made for kind, group in groups if (made := _lever(kind, group, models)).others]


def find_kind(slot: str) -> LeverKind:
    """Return the kind of a slot by its name: of several the one with the most risk, as of a slot that is no lever.

    >>> find_kind("IDLE.steps").risk, find_kind("SYNTHESIZING.steps").risk, find_kind("ROBIN.top_p").risk
    (1, 2, 3)
    """
    found = (each for each in KINDS if f".{slot}".endswith(f".{each.slot}"))
    return max(found, key=lambda each: each.risk, default=KINDS[-1])


def _groups(kind: LeverKind, places: Iterable[str]) -> list[tuple[str, ...]]:
    names = tuple(name for name in places if f".{name}".endswith(f".{kind.slot}"))
    return [(name,) for name in names] if kind.apart else [names] if names else []


def _lever(kind: LeverKind, places: Sequence[SlotPlace], models: Sequence[str]) -> Lever:
    names = [each.name for each in places]
    acting = tuple(SlotWrite(each.name, each.read()) for each in places)
    others = [
        tuple(SlotWrite(name, value) for name, value in zip(names, values, strict=True))
        for values in kind.vary(places, models)
    ]
    whole = kind.slot if kind.slot in names else f"mind.{kind.slot}"
    called = f"{names[0] if kind.apart else whole} {kind.step}".rstrip()
    return Lever(called, kind, acting, tuple(dict.fromkeys(each for each in others if each != acting)))


def _each_of(*values: Value) -> Vary:
    """Return what tries these values, each for all slots."""
    return lambda places, _models: ((value,) * len(places) for value in values)


def _list_models(places: Sequence[SlotPlace], models: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield the newest models of Ollama, for all personas: bases that differ would be loaded anew at every switch."""
    yield from ((name,) * len(places) for name in (None, *models[:_NEWEST]))


def _list_adapters(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield each adapter of a persona that genesis made a model with, and its base without one."""
    yield from ((name,) for place in places for name in slot_kinds.list_adapters(place.holder))


def _without_one(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield the facets of a persona without one of them, each in turn."""
    for value in (each.read() for each in places):
        if isinstance(value, tuple) and len(value) > 1:
            yield from ([tuple(other for other in value if other != each)] for each in value)


def _list_shelf(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield what acts of a persona's facets, or protocols, with one more that lies on the codex's shelf."""
    for place in places:
        acting = place.read()
        if isinstance(acting, tuple):
            yield from (((*acting, name),) for name in slot_values.list_shelf(place))


def _other_conditions(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
    """Yield the conditions of a protocol with longer and shorter questions, and without the count of words."""
    for value in (each.read() for each in places):
        known = slot_kinds.as_conditions(value)
        if known:
            least = known.get("min_words", 0)
            others = {name: each for name, each in known.items() if name not in ("min_words", "max_words")}
            for words in (least + 8, max(0, least - 8)) if isinstance(least, int) else ():
                yield [tuple(sorted({**others, **({"min_words": words} if words else {})}.items()))]


def _vary_steps(step: str, *changes: Callable[[Steps], Steps]) -> Vary:
    """Return what tries changes of a state that takes a step."""

    def vary(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
        for place in places:
            steps = cast("Steps", place.read())
            if step in dict(steps):
                yield from ([change(steps)] for change in changes)

    return vary


def _vary_without(step: str) -> Vary:
    """Return what tries a state without one of its steps."""
    return _vary_steps(step, partial(state_steps.without_step, step=step))


#: The models of Ollama that are tried beside each other, for each is loaded for each question.
_NEWEST: Final = 3
#: Lines that say who speaks, written by hand: no model writes a line of a persona.
_LINES: Final = (
    "You are {name}. Answer from what is given, in the fewest words that are right.",
    "You are {name}. You read what is given closely, and you say only what stands there.",
    "You are {name}, exact with names and numbers.",
)


def _written_lines(places: Sequence[SlotPlace], _models: Sequence[str]) -> Iterator[Sequence[Value]]:
    for line in _LINES:
        yield [line.format(name=own_slots(each.holder)["name"]) for each in places]


_RELEVANCE: Final = frozenset({"Hrel", "outcome", "cem"})


def _bound_kind(state: str, step: str, bound: str, lines: frozenset[str], *values: BoundValue) -> LeverKind:
    """Return the kind of lever that changes a bound of a state's step."""
    changes = (partial(state_steps.with_bound_value, step=step, bound=bound, value=value) for value in values)
    vary = _vary_steps(step, *changes)
    return LeverKind(f"{step} {bound}", f"{state}.{state_steps.STEPS}", 1, lines, vary, step=f"{step}.{bound}")


#: Every kind of lever.
KINDS: Final = (
    LeverKind("prompt form", "form", 1, _RELEVANCE, _each_of("full", "lean")),
    LeverKind("temperature", "temperature", 1, _RELEVANCE, _each_of(0.0, 0.3, 0.7)),
    LeverKind("length", "num_predict", 1, _RELEVANCE, _each_of(256, 512, 1024)),
    LeverKind("repetition", "repeat_penalty", 1, _RELEVANCE, _each_of(1.0, 1.1)),
    LeverKind("voices", "answer_form", 1, frozenset({"Hcog"}), _each_of("joined", "two_voices")),
    LeverKind("facets", "facets", 1, frozenset({"Hcog"}), _without_one, apart=True),
    LeverKind("protocol", "when", 2, frozenset({"Hsol"}), _other_conditions, apart=True),
    _bound_kind("IDLE", "recall", "most", _RELEVANCE, 4, 8, 12),
    _bound_kind("IDLE", "recall", "focus", _RELEVANCE, 1, 2, 3, 4),
    _bound_kind("DECOMPOSING", "recall_for_parts", "most", _RELEVANCE, 1, 3, 5),
    _bound_kind("SYNTHESIZING", "combine", "mode", frozenset({"Hcog"}), "auto", "select"),
    _bound_kind("SYNTHESIZING", "repair", "revisions", _RELEVANCE, 0, 1),
    LeverKind("undivided", "DECOMPOSING.steps", 1, frozenset({"Hcog"}), _vary_without("divide"), step="divide"),
    LeverKind("no protocol", "SYNTHESIZING.steps", 2, frozenset({"Hsol"}), _vary_without("protocol"), step="protocol"),
    LeverKind("new facet", "facets", 2, frozenset({"Hcog"}), _list_shelf, apart=True, step="new"),
    LeverKind("new protocol", "protocols", 2, frozenset({"Hsol"}), _list_shelf, apart=True, step="new"),
    LeverKind("effort", "cycle_from", 1, frozenset({"Hcog"}), _each_of(0, 8, 16)),
    LeverKind("model", "model", 2, _RELEVANCE, _list_models),
    LeverKind("adapter", "adapter", 2, _RELEVANCE, _list_adapters, apart=True),
    LeverKind("persona line", "line", 3, _RELEVANCE, _written_lines),
)
