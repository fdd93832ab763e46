"""Redaction: objects of every kind lose the words, and those that a digest or an index speaks of are left."""

from __future__ import annotations

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping
from tests.image.installing import candidate
from tests.image.open_image import open_image

from batos.image import roots
from batos.image.records import Approval, Attachment, Segment
from batos.image.roots import Root
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.records import redaction
from batos.records.approval_subjects import digest_of_source
from batos.records.erased_words import MARK, ErasedWords

WORDS = ErasedWords(["the secret"])
SOURCE = "return 'the secret'"
AT = "2026-11-28T00:00:00.000Z"


async def test_objects_of_every_kind_lose_the_words() -> None:
    """Slots, mappings, trees and their parts, intents, methods, questions; keys of trees stay."""
    async with open_image(None) as image:

        def write(root: Root) -> None:
            holder = UvmObject({"note": ["the secret"], "other": 1})
            approval = Approval(
                "a-1", candidate(holder, "say_", Intent("x"), "the secret").as_dict(), "holder", 0, (AT, "9")
            )
            root[roots.APPROVALS]["a-1"] = approval
            root[roots.AWAITED].insert("a-1")
            root[roots.GENESIS]["kept"] = {
                "holder": holder,
                "map": PersistentMapping(a="the secret"),
                "tree": OOBTree({f"k{n}": f"{n} the secret" for n in range(200)}),
                "intent": Intent("do the secret"),
                "method": Method("say_", SOURCE, verdict={"accepted": True, "digest": digest_of_source(SOURCE)}),
                "segment": Segment("text", b"the secret"),
                "file": Attachment("0", 10, b"the secret", None),
            }
            root[roots.EFFECT_LINES][1] = {"fingerprint": "the secret", "prev": "", "attempts": 1}
            root[roots.REPEATS]["ann\0the secret"] = "m-1"

        await image.writer.apply(write)

        def erase(root: Root) -> int:
            holding = list(redaction.find_holding(root, WORDS))
            assert redaction.drop_keys(root, WORDS) == 1
            return redaction.redact_objects(root, holding, WORDS, AT)

        assert await image.writer.apply(erase) > 6
        with image.snapshot() as root:
            kept = root[roots.GENESIS]["kept"]
            assert (own_slots(kept["holder"])["note"], kept["map"]["a"]) == ([MARK], MARK)
            assert dict(kept["tree"]) == {f"k{n}": f"{n} {MARK}" for n in range(200)}
            assert (kept["intent"].text, kept["method"].source) == (f"do {MARK}", "# erased\n")
            assert (kept["segment"].data, kept["file"].data) == (b"the secret", b"the secret")
            assert root[roots.EFFECT_LINES][1]["fingerprint"] == "the secret"
            approval = root[roots.APPROVALS]["a-1"]
            assert (approval.word, approval.candidate["source"]) == ("outdated", "# erased\n")
            assert list(root[roots.AWAITED]) == []
            assert list(root[roots.REPEATS]) == []
