"""Corrections by hand: retracted, restored, edited, pinned; whose memories, and what is refused before any change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import EVERYONE, find, incoming, store_of

from batos.errors import BriefError, NotFound, Refused
from batos.image.image import LivingImage
from batos.memory.corrections import Corrections
from batos.memory.reach import MemoryReach
from batos.memory.recollection import Recollection

LAMP = "Maro winds the lamp."


@pytest.fixture
async def image() -> AsyncIterator[LivingImage]:
    """An image that remembers a file of ann's and one of bob's."""
    async with open_image(None) as opened:
        await store_of(opened).remember([incoming(LAMP, "/lamp"), incoming("Oil for the lamp.", "/oil", "bob")])
        yield opened


def corrections_of(image: LivingImage) -> Corrections:
    """Corrections whose clock stands still."""
    return Corrections(image, lambda: datetime(2026, 11, 26, tzinfo=UTC))


def recalled(image: LivingImage) -> set[str]:
    """All texts that a recall finds."""
    return set(find(image, Recollection(), "lamp", EVERYONE))


async def test_what_is_retracted_is_not_recalled_until_it_is_restored(image: LivingImage) -> None:
    """By its source or its name; a second retraction or restoring says so."""
    work = corrections_of(image)
    told = await work.retract([], "ann", source="/lamp")
    assert [each["source"] for each in told["retracted"]] == ["/lamp"]
    assert recalled(image) == {"Oil for the lamp."}
    assert (await work.retract(["/lamp"], "ann"))["retracted"] == []
    back = await work.restore(["/lamp"], "ann")
    assert [each["source"] for each in back["restored"]] == ["/lamp"]
    assert recalled(image) == {LAMP, "Oil for the lamp."}
    with pytest.raises(Refused, match="nothing is to be restored"):
        await work.restore(["/lamp"], "ann")


async def test_nobody_corrects_what_is_anothers(image: LivingImage) -> None:
    """As if it was not there."""
    work, store = corrections_of(image), store_of(image)
    for attempt in (
        work.retract(["/oil"], "ann"),
        work.retract([], "ann", source="/oil"),
        work.restore(["/oil"], "ann"),
        work.pin(["/oil"], "ann"),
        work.unpin(["/oil"], "ann"),
        store.edit("/oil", "Mine.", "ann"),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert recalled(image) == {LAMP, "Oil for the lamp."}


async def test_an_edit_keeps_the_older_text_as_history(image: LivingImage) -> None:
    """It is found with the new text; restoring brings the old one back in its place; a pin goes along."""
    work, store = corrections_of(image), store_of(image)
    await work.pin(["/lamp"], "ann")
    told = await store.edit("/lamp", "Anna winds the lamp.", "ann")
    assert (told["edited"]["trust"], told["edited"]["source"]) == ("external", "/lamp")
    assert recalled(image) == {"Anna winds the lamp.", "Oil for the lamp."}
    with image.snapshot() as root:
        listed = Recollection().list_pinned(root, MemoryReach("ann"), 9)
        assert [each["document"] for each in listed["memories"]] == [told["edited"]["document"]]
        assert Recollection().show(root, told["before"], "ann")["standing"] == "edited"
    await work.restore([told["before"]], "ann")
    assert recalled(image) == {LAMP, "Oil for the lamp."}


async def test_an_edit_that_changes_nothing_or_leaves_nothing_is_refused(image: LivingImage) -> None:
    """And what is history is not edited."""
    store = store_of(image)
    for text in (LAMP, " "):
        with pytest.raises(BriefError):
            await store.edit("/lamp", text, "ann")
    await corrections_of(image).retract(["/lamp"], "ann")
    with pytest.raises(BriefError, match="history"):
        await store.edit("/lamp", "Other.", "ann")
    with pytest.raises(Refused, match="retracted"):
        await corrections_of(image).pin(["/lamp"], "ann")


async def test_a_file_that_changes_after_an_edit_takes_its_place(image: LivingImage) -> None:
    """The edited text was of this source; the history of the edit stays."""
    store = store_of(image)
    await store.edit("/lamp", "Anna winds the lamp.", "ann")
    await store.remember([incoming("Nobody winds the lamp.", "/lamp")])
    assert recalled(image) == {"Nobody winds the lamp.", "Oil for the lamp."}


async def test_a_batch_is_changed_whole_or_not_at_all(image: LivingImage) -> None:
    """A name that is not there refuses all."""
    with pytest.raises(NotFound):
        await corrections_of(image).retract(["/lamp", "d-none"], "ann")
    assert LAMP in recalled(image)
