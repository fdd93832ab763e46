"""Invariants of every record that is written: methods passed the guardian, and parents form no loop."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root, root_of
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, delegation, label, own_slots, parents_of, reference
from batos.protocol.errors import Refused

_REPORT: Final = "Nothing was written. Please report this."


def check_written(value: object, *, thought: bool) -> None:
    """Check a record that a commit is about to write; `thought`: the commit is a mission's.

    Raises Refused: a method whose source is not the one that the guardian passed, a method of class `external` that
    nobody approved, any method or intent of a thought, a slot that holds another method than its lineage says is
    active, an object that would be its own ancestor.
    """
    if isinstance(value, Method | Intent):
        _check_behaviour(value, thought)
    elif isinstance(value, Lineage):
        _check_slot(value)
    elif isinstance(value, UvmObject):
        if any(each is value for one in parents_of(value) for each in delegation(one)):
            raise Refused(f"{label(value)} would become its own ancestor", field="parents", remedy=_REPORT)
        _check_methods(value)


def _check_methods(holder: UvmObject) -> None:
    """Compare every method in the slots of an object with its lineage: a commit may write the holder alone."""
    selectors = [slot for slot, value in own_slots(holder).items() if isinstance(value, Method)]
    root = root_of(holder._p_jar) if selectors and holder._p_jar is not None else Root()
    if roots.METHODS in root:
        for lineage in filter(None, (root[roots.METHODS].get(roots.method_key(holder, each)) for each in selectors)):
            _check_slot(lineage)


def _check_slot(lineage: Lineage) -> None:
    if not lineage.is_sound():
        what = f"{label(lineage.holder)}.{lineage.selector} would hold another method than the one that is active there"
        raise Refused(what, field=lineage.selector, remedy=_REPORT)


def lacks_approval(provenance: Mapping[str, object]) -> bool:
    """Test if a method of this provenance comes from outside and nobody approved it."""
    return provenance.get("trust") == "external" and not provenance.get("approval")


def _check_behaviour(value: Method | Intent, thought: bool) -> None:
    if thought:
        what = "a method" if isinstance(value, Method) else "an intent"
        raise Refused(f"a thought was to make {what} by itself", remedy=_REPORT)
    if isinstance(value, Method):
        source = hashlib.sha256(value.source.encode("utf-8", "surrogatepass")).hexdigest()
        if value.verdict.get("accepted") is not True or value.verdict.get("digest") != source:
            what = (
                f"the source of the method {value.selector!r} ({reference(value)}) is not one that the guardian passed"
            )
            raise Refused(what, field=value.selector, remedy="Nothing was written. Generate the method again.")
        if lacks_approval(value.provenance):
            what = f"the method {value.selector!r} ({reference(value)}) comes from outside, and nobody approved it"
            raise Refused(what, field=value.selector, remedy="Nothing was written. `batos approvals` lists what waits.")
