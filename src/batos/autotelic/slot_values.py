"""Slots that may be redefined while running: their values, and levers, the closed table of what the mind may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from batos.agency.lookup import find_object
from batos.autotelic import entropy, slot_kinds
from batos.autotelic.slot_kinds import CONDITION, EFFORT, PERSONA_SLOTS, STATE, SlotKind, metric_kind, wrong_value
from batos.genesis import state_steps
from batos.genesis.codex import declarations
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.genesis.codex.origins import plain
from batos.genesis.graph import CYCLE_FROM
from batos.genesis.state_steps import BoundValue, Steps
from batos.image import ownership, roots
from batos.image.records import DIGESTS
from batos.image.roots import Root, named_objects
from batos.objects import prototype
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, delegation, own_slots, parents_of
from batos.protocol.errors import NotFound, Refused
from batos.protocol.trial_documents import SlotLineage, SlotValueDocument
from batos.records import redefinitions
from batos.records.redefinitions import ChangeOrigin, Redefinition, Value

#: The end of the name that an object's parents have as a slot.
_PARENTS: Final = ".parents"


class SlotWrite(NamedTuple):
    """A slot by its name, and the value that it is given."""

    slot: str
    value: Value


#: The values of slots that belong together.
Changes: TypeAlias = tuple[SlotWrite, ...]


@dataclass(frozen=True, slots=True)
class SlotPlace:
    """A slot that may be redefined: its name as people write it, its holder, the slot there, and its kind."""

    name: str
    holder: UvmObject
    slot: str
    kind: SlotKind

    def read(self) -> Value:
        """Return the value that acts now."""
        return self.kind.read(self.holder, self.slot)


def list_places(root: Root) -> Iterator[SlotPlace]:
    """Yield every slot that may be redefined: of personas, of the states, of the metric, and redefined parents."""
    objects = named_objects(root)
    for persona in PILLARS:
        holder = objects.get(prototype_name(persona))
        if isinstance(holder, UvmObject):
            for slot in PERSONA_SLOTS:
                yield SlotPlace(f"{persona}.{slot}", holder, slot, PERSONA_SLOTS[slot])
            for selector in own_slots(holder).get("protocols", ()):
                if isinstance(own_slots(holder).get(selector), Intent):
                    yield SlotPlace(f"{persona}.{selector}.when", holder, selector, CONDITION)
    if "orchestrator_obj" in root:
        yield from _list_of_orchestrator(root)
    for name in root.get(roots.REDEFINITIONS) or ():  # an older moment of the image has none
        if name.endswith(_PARENTS):
            with suppress(NotFound):  # an object that is gone since
                yield _find_parents(root, name.removesuffix(_PARENTS))


def _list_of_orchestrator(root: Root) -> Iterator[SlotPlace]:
    """Yield the slots of no persona: of the effort, of the states, and of the metric."""
    holder = root["orchestrator_obj"]
    yield SlotPlace(f"mind.{CYCLE_FROM}", holder, CYCLE_FROM, EFFORT)
    for state in state_steps.TABLE:
        yield SlotPlace(f"{state}.{state_steps.STEPS}", holder, state, STATE)
    yield SlotPlace(entropy.NAME, holder, entropy.NAME, metric_kind(root))


def find_place(root: Root, name: str) -> SlotPlace:
    """Return the slot of a name, as `ROBIN.temperature`, or the parents of an object, as `oid:0x2a.parents`.

    Raises: Refused: no such slot may be redefined while running. NotFound: there is no such object.
    """
    if name.endswith(_PARENTS):
        return _find_parents(root, name.removesuffix(_PARENTS))
    known = {each.name.casefold(): each for each in list_places(root)}
    if name.casefold() not in known:
        raise Refused(
            f"{name} is no slot that may be redefined while running",
            field="slot",
            remedy="`batos slot list` lists them. Who a persona is, and the charter, stand in the codex; what judges a "
            "change is part of no image.",
        )
    return known[name.casefold()]


def redefine(root: Root, name: str, value: object, origin: ChangeOrigin) -> Redefinition | None:
    """Write a value to a slot, and note that in its lineage; None: it has it.

    Raises: Refused: it may not be redefined. BriefError: the value is none for it.
    """
    place = find_place(root, name)
    checked, former = place.kind.check(place.holder, place.slot, value), place.read()
    if checked == former:
        return None
    place.kind.write(place.holder, place.slot, checked)
    return redefinitions.note(root, place.name, former, checked, origin, place.kind.declared)


def try_out(root: Root, changes: Changes) -> None:
    """Write values without a lineage, in a copy of the mind that is thrown away. A value that acts is left."""
    for change in changes:
        place = find_place(root, change.slot)
        if change.value != place.read():
            place.kind.write(place.holder, place.slot, place.kind.check(place.holder, place.slot, change.value))


def roll_back(root: Root, name: str, number: int | None, origin: ChangeOrigin) -> Redefinition | None:
    """Write a value that a slot had, by default the one before this; None: it has it.

    Raises: NotFound: it had none of that number.
    """
    place = find_place(root, name)
    had = _list_values(root, place)
    if number is None:
        others = [each for each in had if each.value != place.read()]
        number = others[-1].number if others else None
    found = next((each for each in had if each.number == number), None)
    if found is None:
        raise NotFound(
            f"{place.name} had no {'other value' if number is None else f'value {number}'}",
            field="revision",
            remedy=f"`batos slot show {place.name}` lists those that it had.",
        )
    return redefine(root, place.name, found.value, origin)


def describe(root: Root, name: str) -> SlotLineage:
    """Return a slot that may be redefined, with the values that it had. Raises: Refused: it may not be."""
    place = find_place(root, name)
    values = [
        SlotValueDocument(
            number=each.number, value=plain(each.value), by=each.origin.by, at=each.origin.at, why=each.origin.why,
            trial=each.origin.trial,
        )
        for each in _list_values(root, place)
    ]  # fmt: skip
    return SlotLineage(slot=place.name, what=place.kind.what, value=plain(place.read()), values=values)


def _list_values(root: Root, place: SlotPlace) -> list[Redefinition]:
    """Return the values that a slot had; where the codex gave it another since the last change, that is number 0."""
    had, acting = redefinitions.list_values(root, place.name), place.read()
    if had and had[-1].value != acting:
        had[0] = had[0]._replace(value=acting)
    return had


# -- the parents of an object


def _find_parents(root: Root, name: str) -> SlotPlace:
    """Return the place of an object's parents: a tuple of names. NotFound, Refused: as `find_place`."""
    holder = _find_free(root, name)

    def read(holder: UvmObject, slot: str) -> Value:
        return tuple(roots.name_of_object(root, each) for each in parents_of(holder))

    def write(holder: UvmObject, slot: str, value: Value) -> None:
        found = [find_object(root, str(each)) for each in (value if isinstance(value, tuple) else ())]
        prototype.reparent(holder, found, by="a redefinition", reason="its lineage", audit=roots.log_reparenting)

    def check(holder: UvmObject, slot: str, value: object) -> Value:
        named = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        found = [_find_free(root, str(each), is_parent=True) for each in named]
        if not found or len({id(each) for each in found}) < len(found):
            raise wrong_value(slot, "they are one or more objects, each once", "`batos inspect` lists objects.")
        own = [roots.name_of_object(root, each) for each in found if any(one is holder for one in delegation(each))]
        if own:
            what = f"{roots.name_of_object(root, holder)} would delegate to itself through {own[0]}"
            raise wrong_value(slot, what, "Name parents that do not delegate to it.")
        return tuple(roots.name_of_object(root, each) for each in found)

    kind = SlotKind("what it delegates to, in order", read, write, check, "the image")
    return SlotPlace(f"{roots.name_of_object(root, holder)}{_PARENTS}", holder, _PARENTS[1:], kind)


def _find_free(root: Root, name: str, *, is_parent: bool = False) -> UvmObject:
    """Return an object whose parents a person may choose, or that may be a parent.

    The voter refuses other parents of the objects of the organisation. Raises: NotFound: there is no such object that
    is of no user's words. Refused: genesis makes it.
    """
    found = find_object(root, name, ownership.NOBODY)
    if DIGESTS in own_slots(found) and not is_parent and name not in roots.OBJECTS:
        remedy = "Name a tool, a made object or a clone: `batos tools` and `batos inspect` list them."
        raise Refused(f"{name} is declared by the codex", field="object", remedy=remedy)
    return found


def list_shelf(place: SlotPlace) -> list[str]:
    """List the facets of a persona, or its protocols, that the codex declares and that do not act."""
    suffix = declarations.FACET_SUFFIX if place.slot == "facets" else declarations.PROTOCOL_SUFFIX
    known = [name for name in own_slots(place.holder) if name.endswith(suffix)]
    return [name for name in known if name not in own_slots(place.holder)[place.slot]]


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
    places = {each.name: each for each in list_places(root)}
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
            yield from (((*acting, name),) for name in list_shelf(place))


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
