"""Invariants of every record that is written: methods passed the guardian, and parents form no loop."""

from __future__ import annotations

import hashlib
from typing import Final

from batos.errors import Refused
from batos.image.methods import is_sound
from batos.image.records import Lineage
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, delegation, label, parents_of, reference

_REPORT: Final = "Nothing was written. Please report this."


def check_written(value: object, *, thought: bool) -> None:
    """Check a record that a commit is about to write; `thought`: the commit is a mission's.

    Raises Refused: a method whose source is not the one that the guardian passed, any method or intent of a thought, a
    slot that holds another method than its lineage says is active, an object that would be its own ancestor.
    """
    if isinstance(value, Method | Intent):
        _check_behaviour(value, thought)
    elif isinstance(value, Lineage):
        if not is_sound(value):
            what = f"{label(value.holder)}.{value.selector} would hold another method than the one that is active there"
            raise Refused(what, field=value.selector, remedy=_REPORT)
    elif isinstance(value, UvmObject) and any(each is value for one in parents_of(value) for each in delegation(one)):
        raise Refused(f"{label(value)} would become its own ancestor", field="parents", remedy=_REPORT)


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
