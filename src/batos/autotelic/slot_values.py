"""Values of slots that may be redefined while running: which there are, how each is read, checked and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias, cast

from pydantic_core import PydanticCustomError

from batos.agency.lookup import find_object
from batos.autotelic import weights
from batos.genesis import state_steps
from batos.genesis.adapters import repository
from batos.genesis.adapters.inventory import NONE
from batos.genesis.codex import declarations, value_checks
from batos.genesis.codex.codex import MOST_WORDS, PILLARS
from batos.genesis.codex.graph_names import prototype_name
from batos.genesis.codex.origins import plain
from batos.genesis.codex.value_checks import ValueFault
from batos.genesis.graph import CYCLE_FROM
from batos.genesis.persona_models import OTHER_MODEL
from batos.image import ownership, roots
from batos.image.records import DIGESTS
from batos.image.roots import Root, named_objects
from batos.inference import model_names
from batos.objects import prototype
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, delegation, lookup, own_slots, parents_of
from batos.protocol.errors import BriefError, NotFound, ObjectError, Refused
from batos.protocol.trial_documents import SlotLineage, SlotValueDocument
from batos.records import redefinitions
from batos.records.redefinitions import ChangeOrigin, Redefinition, Value

#: The end of the name that an object's parents have as a slot.
_PARENTS: Final = ".parents"
#: The slot of a persona that has its options.
_OPTIONS: Final = "options"
#: The most characters of a persona's line.
LINE: Final = 400
#: Letters of a refused value that an error shows.
_SHOWN: Final = 40
#: Options of a model that may be redefined: another window, say, would load a runner anew.
OPTIONS: Final = ("temperature", "num_predict", "repeat_penalty", "top_p")


class SlotWrite(NamedTuple):
    """A slot by its name, and the value that it is given."""

    slot: str
    value: Value


#: The values of slots that belong together.
Changes: TypeAlias = tuple[SlotWrite, ...]
Read: TypeAlias = Callable[[UvmObject, str], Value]
Write: TypeAlias = Callable[[UvmObject, str, Value], None]


@dataclass(frozen=True, slots=True)
class SlotKind:
    """A kind of slot: its meaning, how it is read and written at its holder, and the check of a value."""

    what: str
    read: Read
    write: Write
    check: Callable[[UvmObject, str, object], Value]
    #: The origin of the value that such a slot had first.
    declared: str = "codex"


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
            for slot in _PERSONA_SLOTS:
                yield SlotPlace(f"{persona}.{slot}", holder, slot, _PERSONA_SLOTS[slot])
            for selector in own_slots(holder).get("protocols", ()):
                if isinstance(own_slots(holder).get(selector), Intent):
                    yield SlotPlace(f"{persona}.{selector}.when", holder, selector, _CONDITION)
    if "orchestrator_obj" in root:
        yield SlotPlace(f"mind.{CYCLE_FROM}", root["orchestrator_obj"], CYCLE_FROM, _EFFORT)
    for state in state_steps.TABLE if "orchestrator_obj" in root else ():
        yield SlotPlace(f"{state}.{state_steps.STEPS}", root["orchestrator_obj"], state, STATE)
    if "orchestrator_obj" in root:
        yield SlotPlace(weights.NAME, root["orchestrator_obj"], weights.NAME, _metric_kind(root))
    for name in root.get(roots.REDEFINITIONS) or ():  # an older moment of the image has none
        if name.endswith(_PARENTS):
            with suppress(NotFound):  # an object that is gone since
                yield _find_parents(root, name.removesuffix(_PARENTS))


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
            raise _wrong_value(slot, "they are one or more objects, each once", "`batos inspect` lists objects.")
        own = [roots.name_of_object(root, each) for each in found if any(one is holder for one in delegation(each))]
        if own:
            what = f"{roots.name_of_object(root, holder)} would delegate to itself through {own[0]}"
            raise _wrong_value(slot, what, "Name parents that do not delegate to it.")
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


# -- how the values of each kind are read, written and checked


def _read_option(holder: UvmObject, slot: str) -> Value:
    options: Mapping[str, Value] = own_slots(holder).get(_OPTIONS, {})
    return options.get(slot)


def _write_option(holder: UvmObject, slot: str, value: Value) -> None:
    kept: Mapping[str, Value] = own_slots(holder).get(_OPTIONS, {})
    others = {name: each for name, each in kept.items() if name != slot}
    setattr(holder, _OPTIONS, others if value is None else {**others, slot: value})


def _check_option(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    _heed(slot, lambda: value_checks.check_options({slot: value}))
    return cast("Value", value)


def _read_slot(holder: UvmObject, slot: str) -> Value:
    found = own_slots(holder).get(slot)
    return tuple(found) if isinstance(found, list) else cast("Value", found)


def _read_form(holder: UvmObject, slot: str) -> Value:
    """Return the form; an image from before has none, which is the same as that of a persona that leaves it open."""
    return _read_slot(holder, slot) or "auto"


def _write_slot(holder: UvmObject, slot: str, value: Value) -> None:
    setattr(holder, slot, value)


def _check_word(*words: str) -> Callable[[UvmObject, str, object], Value]:
    def check(_holder: UvmObject, slot: str, value: object) -> Value:
        if value not in words:
            raise _wrong_value(slot, f"{value!r} is none of its values", f"Give one of: {', '.join(words)}.")
        return str(value)

    return check


def _check_line(_holder: UvmObject, slot: str, value: object) -> Value:
    if not isinstance(value, str) or len(value) > LINE or "\n" in value:
        raise _wrong_value(slot, "a line is one line of text", f"Give up to {LINE} characters.")
    return value.strip()


def list_shelf(place: SlotPlace) -> list[str]:
    """List the facets of a persona, or its protocols, that the codex declares and that do not act."""
    suffix = declarations.FACET_SUFFIX if place.slot == "facets" else declarations.PROTOCOL_SUFFIX
    known = [name for name in own_slots(place.holder) if name.endswith(suffix)]
    return [name for name in known if name not in own_slots(place.holder)[place.slot]]


def _check_intents(suffix: str, least: int) -> Callable[[UvmObject, str, object], Value]:
    def check(holder: UvmObject, slot: str, value: object) -> Value:
        named = tuple(value) if isinstance(value, list | tuple) else None
        known = [name for name in own_slots(holder) if name.endswith(suffix)]
        if named is None or len(named) < least or len(set(named)) < len(named) or not set(named) <= set(known):
            what = f"{slot} are a list of the persona's own"
            raise _wrong_value(slot, what, f"Give {'one or more' if least else 'some'} of: {', '.join(known)}.")
        return named

    return check


def _check_words(_holder: UvmObject, slot: str, value: object) -> Value:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_WORDS:
        raise _wrong_value(slot, "it is a number of words", f"Give 0 to {MOST_WORDS}.")
    return value


def list_adapters(holder: UvmObject) -> tuple[str, ...]:
    """List the adapters of a persona that genesis made a model with, and NONE, which is its base without one."""
    kept, persona = lookup(holder, repository.REPOSITORY), own_slots(holder)["name"]
    proxies = [] if kept is None else [own_slots(each) for each in kept.value.values()]
    made = (each for each in proxies if each["persona"] == persona and each["present"] and "model" in each)
    return (NONE, *sorted(each["name"] for each in made))


def _read_adapter(holder: UvmObject, slot: str) -> Value:
    return _read_slot(holder, slot) or NONE


def _check_adapter(holder: UvmObject, slot: str, value: object) -> Value:
    known = list_adapters(holder)
    found = next((each for each in known if each.casefold() == str(value).casefold()), None)
    if found is None:
        what = f"genesis made no model with the adapter {value!s:.{_SHOWN}}"
        raise _wrong_value(slot, what, f"Give one of: {', '.join(known)}. `batos genesis` makes what is missing.")
    return found


def _read_model(holder: UvmObject, _slot: str) -> Value:
    return _read_slot(holder, OTHER_MODEL)


def _write_model(holder: UvmObject, _slot: str, value: Value) -> None:
    _write_slot(holder, OTHER_MODEL, value)


def _check_model(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _wrong_value(slot, "a model has a name", "Give it as `ollama list` prints it, or null.")
    if (fault := model_names.fault(value)) is not None:
        raise _wrong_value(slot, *fault)
    return model_names.with_tag(value)


def _read_condition(holder: UvmObject, slot: str) -> Value:
    intent: Intent = own_slots(holder)[slot]
    return _as_pairs(intent.when)


def _write_condition(holder: UvmObject, slot: str, value: Value) -> None:
    former: Intent = own_slots(holder)[slot]
    setattr(holder, slot, Intent(**{**former.as_dict(), "when": None if value is None else as_conditions(value)}))


def as_conditions(value: object) -> dict[str, object]:
    """Return the conditions of a protocol by their names; none where the value has none.

    >>> as_conditions((("min_words", 8),)), as_conditions(None)
    ({'min_words': 8}, {})
    """
    pairs = value if isinstance(value, tuple) else ()
    return {str(each[0]): each[1] for each in pairs if isinstance(each, tuple) and len(each) == 2}


def _check_condition(_holder: UvmObject, slot: str, value: object) -> Value:
    if value is None:
        return None
    given = value if isinstance(value, Mapping) else as_conditions(value)
    plain = {name: list(each) if isinstance(each, tuple) else each for name, each in given.items()}
    return _as_pairs(_heed(f"{slot}.when", lambda: declarations.check_conditions(plain)))


def _read_steps(holder: UvmObject, state: str) -> Value:
    return state_steps.steps_of(holder).steps[state]


def _write_steps(holder: UvmObject, state: str, value: Value) -> None:
    state_steps.redefine(holder, state, value)


def _check_steps(_holder: UvmObject, state: str, value: object) -> Value:
    try:
        return state_steps.check_steps(state, value)
    except ObjectError as fault:
        raise BriefError(fault.message, field="value", remedy=fault.remedy) from None


def _metric_kind(root: Root) -> SlotKind:
    """Return the kind of the metric's weights: their lineage has the value that acts, which no mission can write."""
    return SlotKind(
        "the weights of the metric's parts",
        lambda *_slot: weights.as_value(weights.read(root)),
        lambda *_written: None,
        lambda _holder, _slot, value: weights.check(value),
    )


def _as_pairs(when: Mapping[str, object] | None) -> Value:
    """Return conditions as plain data in the order of their names, so that equal ones are equal."""
    if when is None:
        return None
    return tuple((name, tuple(each) if isinstance(each, list) else each) for name, each in sorted(when.items()))


def _heed(slot: str, check: Callable[[], Mapping[str, object]]) -> Mapping[str, object]:
    """Return what a check of the codex returns. Raises: BriefError: it finds a fault."""
    try:
        return check()
    except PydanticCustomError as refused:
        faults: tuple[ValueFault, ...] = (refused.context or {})["faults"]
        if faults[0].known:
            what = f"there is no {faults[0].what} `{faults[0].path[-1]}`"
            raise _wrong_value(slot, what, f"Give some of: {', '.join(faults[0].known)}.") from None
        raise _wrong_value(slot, faults[0].what, faults[0].remedy or "docs/codex.md explains every key.") from None


def _wrong_value(slot: str, what: str, remedy: str) -> BriefError:
    return BriefError(f"{slot}: {what}", field="value", remedy=remedy)


_OPTION_TEXTS: Final[Mapping[str, str]] = {name: value_checks.OLLAMA[name].what for name in OPTIONS}

#: The slots of each persona that may be redefined.
_PERSONA_SLOTS: Final[Mapping[str, SlotKind]] = {
    **{name: SlotKind(what, _read_option, _write_option, _check_option) for name, what in _OPTION_TEXTS.items()},
    "form": SlotKind("the form of its prompts", _read_form, _write_slot, _check_word("auto", "full", "lean")),
    "line": SlotKind("who speaks, in the lean form", _read_slot, _write_slot, _check_line),
    "answer_form": SlotKind(
        "the form of an answer of two voices", _read_slot, _write_slot, _check_word("joined", "two_voices")
    ),
    "model": SlotKind("a model of Ollama in the place of the codex's", _read_model, _write_model, _check_model),
    "adapter": SlotKind("the adapter that it thinks with", _read_adapter, _write_slot, _check_adapter),
    "facets": SlotKind(
        "the facets that think for it", _read_slot, _write_slot, _check_intents(declarations.FACET_SUFFIX, 1)
    ),
    "protocols": SlotKind(
        "its key protocols", _read_slot, _write_slot, _check_intents(declarations.PROTOCOL_SUFFIX, 0)
    ),
}
#: The conditions under which a key protocol applies.
_CONDITION: Final = SlotKind("when the protocol applies", _read_condition, _write_condition, _check_condition)
#: The words of a question that nobody gave an effort.
_EFFORT: Final = SlotKind(
    "words from which a question takes a cycle; 0: none does",
    lambda holder, slot: own_slots(holder).get(slot, 0), _write_slot, _check_words,
)  # fmt: skip
#: The named steps of a working state, with their bounds.
STATE: Final = SlotKind("the steps that the state takes, with their bounds", _read_steps, _write_steps, _check_steps)
