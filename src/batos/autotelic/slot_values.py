"""Values of slots that may be redefined while running: which there are, how each is read, checked and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from batos.agency.lookup import find_object
from batos.autotelic import weights
from batos.autotelic.slot_kinds import CONDITION, EFFORT, PERSONA_SLOTS, STATE, SlotKind, metric_kind, wrong_value
from batos.genesis import state_steps
from batos.genesis.codex import declarations
from batos.genesis.codex.codex import PILLARS
from batos.genesis.codex.declarations import prototype_name
from batos.genesis.codex.origins import plain
from batos.genesis.graph import CYCLE_FROM
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
    yield SlotPlace(weights.NAME, holder, weights.NAME, metric_kind(root))


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
