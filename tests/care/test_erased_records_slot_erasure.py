"""Erasure of a slot: its value goes for every user, and former values go from what missions recorded."""

from __future__ import annotations

from persistent.mapping import PersistentMapping
from tests.image.open_image import open_image

from batos.care import erased_records
from batos.image import roots
from batos.image.records import Brief, Status
from batos.image.roots import Root
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.records.erased_words import MARK


async def test_a_slot_goes_with_what_is_recorded_of_it() -> None:
    """Other slots, and what is recorded of them, stay."""
    async with open_image(None) as image:

        def write(root: Root) -> None:
            users = {"note": {"user": "ann", "others": {"": ["old"]}}}
            root[roots.GENESIS]["holder"] = holder = UvmObject(
                {"note": "new", "other": 1, "slot_users": users, "slot_trust": {"note": "external", "other": "tool"}}
            )
            roots.connection_of(root).add(holder)
            written = [
                {"oid": reference(holder), "slot": each, "had": True, "former": "old"} for each in own_slots(holder)
            ]
            thought = UvmObject({"mission": "m-1", "provenance": {"written": written}})
            root[roots.MISSIONS]["m-1"] = (Brief({"user": "ann"}, ""), Status("done", ""), thought)
            root[roots.UNDONE]["m-2"] = PersistentMapping(slots=[dict(each) for each in written])

        await image.writer.apply(write)
        await image.writer.apply(lambda root: erased_records.erase_slot(root, root[roots.GENESIS]["holder"], "note"))
        with image.snapshot() as root:
            slots = own_slots(root[roots.GENESIS]["holder"])
            assert ("note" in slots, slots["slot_users"], slots["slot_trust"]) == (False, {}, {"other": "tool"})
            written = own_slots(roots.mission_record(root, "m-1").thought)["provenance"]["written"]
            assert {each["slot"]: each["former"] for each in written} == {
                "note": MARK, "other": "old", "slot_users": "old", "slot_trust": "old",
            }  # fmt: skip
            assert "note" not in {each["slot"] for each in root[roots.UNDONE]["m-2"]["slots"]}
