"""Corrections by hand: retracted, restored, edited, pinned; whose memories, and what is refused before any change."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import EVERYONE, find, incoming, store_of
from tests.waiting import HANG

from batos.image import roots
from batos.image.image import LivingImage
from batos.memory.corrections import Corrections
from batos.memory.document_store import DocumentStore
from batos.memory.fold_store import FoldStore
from batos.memory.known_texts import fact_of
from batos.memory.search.chunk_search import ChunkSearch
from batos.memory.search.metadata import WITH_SUMMARISED, MemoryReach
from batos.memory.search.recollection import Recollection
from batos.objects.prototype import own_slots
from batos.protocol.errors import BriefError, NotFound, Refused

LAMP = "Maro winds the lamp."


@pytest.fixture
async def image() -> AsyncIterator[LivingImage]:
    """An image that remembers a file of ann's and one of bob's."""
    async with open_image(None) as opened:
        await store_of(opened).remember([incoming(LAMP, "/lamp"), incoming("Oil for the lamp.", "/oil", "bob")])
        yield opened


def corrections_of(image: LivingImage, store: DocumentStore | None = None) -> Corrections:
    """Corrections whose clock stands still."""
    return Corrections(image, store or store_of(image), lambda: datetime(2026, 11, 26, tzinfo=UTC))


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


def texts(image: LivingImage, standing: str) -> int:
    """How many documents have a standing."""
    with image.snapshot() as root:
        return sum(own_slots(each)["standing"] == standing for each in root[roots.DOCUMENTS].values())


async def test_a_file_that_is_as_it_was_leaves_an_edit_alone(image: LivingImage) -> None:
    """Remembered again, or recognised; the line tells that its text is history. Typed again it is a new memory."""
    store = store_of(image)
    await store.edit("/lamp", "Anna winds the lamp.", "ann")
    for told in (
        await store.remember([incoming(LAMP, "/lamp")]),
        await store.recognise([incoming(LAMP, "/lamp")]),
    ):
        (line,) = told["remembered"]
        assert (line["state"], line["standing"]) == ("known", "edited")
        assert recalled(image) == {"Anna winds the lamp.", "Oil for the lamp."}
    assert (await store.remember([incoming(LAMP)]))["remembered"][0]["state"] == "new"
    assert LAMP in recalled(image)


async def test_a_file_that_has_its_first_text_again_is_recalled_with_it(image: LivingImage) -> None:
    """Also where that text was edited, and another one stood in the file in between."""
    store = store_of(image)
    await store.edit("/lamp", "Anna winds the lamp.", "ann")
    await store.remember([incoming("Nobody winds the lamp.", "/lamp")])
    assert (await store.remember([incoming(LAMP, "/lamp")]))["remembered"][0]["state"] == "replaced"
    assert recalled(image) == {LAMP, "Oil for the lamp."}


async def test_what_is_retracted_stays_so_when_it_is_remembered_again(image: LivingImage) -> None:
    """The line says so: nobody takes it for something that is recalled."""
    await corrections_of(image).retract(["/lamp"], "ann")
    (line,) = (await store_of(image).remember([incoming(LAMP, "/lamp")]))["remembered"]
    assert (line["state"], line["standing"]) == ("known", "retracted")
    assert recalled(image) == {"Oil for the lamp."}


async def test_of_several_wordings_one_is_recalled(image: LivingImage) -> None:
    """Whichever is restored, also one that was retracted; the pin goes along."""
    work, store = corrections_of(image), store_of(image)
    await work.pin(["/lamp"], "ann")
    first = await store.edit("/lamp", "Anna winds the lamp.", "ann")
    second = await store.edit("/lamp", "Bo winds the lamp.", "ann")
    for name, text in ((first["before"], LAMP), (second["before"], "Anna winds the lamp.")):
        await work.restore([name], "ann")
        assert recalled(image) == {text, "Oil for the lamp."}
        with image.snapshot() as root:
            pinned = Recollection().list_pinned(root, MemoryReach("ann"), 9)["memories"]
        assert [each["document"] for each in pinned] == [name]
    await work.retract([second["before"]], "ann")
    await work.restore([first["before"]], "ann")
    back = await work.restore([second["before"]], "ann")
    assert [each["document"] for each in back["restored"]] == [second["before"]]
    assert recalled(image) == {"Anna winds the lamp.", "Oil for the lamp."}


async def test_an_edit_and_a_retraction_at_once(image: LivingImage) -> None:
    """The retraction holds: the edit is refused, as it is after it."""
    work, store = corrections_of(image), store_of(image)
    edited, retracted = await asyncio.gather(
        store.edit("/lamp", "Anna winds the lamp.", "ann"), work.retract(["/lamp"], "ann"), return_exceptions=True
    )
    assert isinstance(edited, BriefError)
    assert isinstance(retracted, dict)
    assert recalled(image) == {"Oil for the lamp."}


async def test_what_was_retracted_does_not_come_back_beside_a_newer_text_of_its_file(image: LivingImage) -> None:
    """The refusal names what is in its place."""
    work = corrections_of(image)
    name = (await work.retract(["/lamp"], "ann"))["retracted"][0]["document"]
    await store_of(image).remember([incoming("Nobody winds the lamp.", "/lamp")])
    with pytest.raises(Refused, match="another text since"):
        await work.restore([name], "ann")
    assert recalled(image) == {"Nobody winds the lamp.", "Oil for the lamp."}
    await work.retract(["/lamp"], "ann")
    await work.restore([name], "ann")
    assert recalled(image) == {LAMP, "Oil for the lamp."}


async def test_what_is_forgotten_leaves_no_older_wording(image: LivingImage) -> None:
    """Nor does what is forgotten by a person's yes; nobody finds it as history."""
    store = store_of(image)
    await store.edit("/lamp", "Anna winds the lamp.", "ann")
    assert texts(image, "edited") == 1
    assert len((await store.forget(["/lamp"], "ann"))["forgotten"]) == 2
    assert texts(image, "edited") == 0
    told = await store.edit("/oil", "No oil for the lamp.", "bob")
    async with store.exclusively():
        await image.writer.apply(lambda root: store.forget_in(root, [told["edited"]["document"]]))
    assert find(image, Recollection(), "lamp oil", MemoryReach(None, standings=None)) == []


async def test_a_superseded_fact_is_retracted_too(image: LivingImage) -> None:
    """It does not come back when the newer one is forgotten; restored, it is the history that it was."""
    work, store = corrections_of(image), store_of(image)
    await store.remember([fact_of(incoming("1 March", "bad"), "launch")])
    await store.remember([fact_of(incoming("3 May", "good"), "launch")])
    (line,) = (await work.retract([], "ann", source="bad"))["retracted"]
    await work.restore([line["document"]], "ann")
    assert texts(image, "superseded") == 1
    await work.retract([], "ann", source="bad")
    with image.snapshot() as root:
        newer = next(name for name, each in root[roots.DOCUMENTS].items() if own_slots(each)["source"] == "good")
    await store.forget([newer], "ann")
    assert texts(image, "retracted") == 1


async def give_dates(image: LivingImage) -> list[str]:
    """Give a key three values, of which the second was retracted before the third came; the names of the facts."""
    work, store, names = corrections_of(image), store_of(image), list[str]()
    for place, date in enumerate(("15 March", "18 March", "25 April")):
        (line,) = (await store.remember([fact_of(incoming(date), "launch_date")]))["remembered"]
        names.append(line["document"])
        if place == 1:
            await work.retract(names[1:], "ann")
    return names


async def test_a_fact_is_not_restored_beside_a_newer_value_of_its_key(image: LivingImage) -> None:
    """The remedy says how it is; with the newer one retracted it holds again, and that one takes its place back."""
    work = corrections_of(image)
    first, second, third = await give_dates(image)
    with pytest.raises(Refused, match=f"launch_date has another value since: {third}") as refused:
        await work.restore([second], "ann")
    assert refused.value.remedy == f"`batos memories retract {third}` first, then restore."
    await work.retract([third], "ann")
    await work.restore([second], "ann")
    assert standings_of(image, first, second, third) == ["superseded", "current", "retracted"]
    await work.restore([third], "ann")
    assert standings_of(image, first, second, third) == ["superseded", "superseded", "current"]


async def test_a_fact_that_comes_back_with_its_cause_is_history_of_a_newer_value(image: LivingImage) -> None:
    """It was retracted together with a file; when the newer one is forgotten it holds, and no older one beside it."""
    work, store = corrections_of(image), store_of(image)
    first, second = [
        (await store.remember([fact_of(incoming(date), "launch_date")]))["remembered"][0]["document"]
        for date in ("15 March", "18 March")
    ]
    with image.snapshot() as root:
        (lamp,) = [name for name, each in root[roots.DOCUMENTS].items() if own_slots(each)["source"] == "/lamp"]
    await work.retract([lamp, second], "ann")
    (line,) = (await store.remember([fact_of(incoming("25 April"), "launch_date")]))["remembered"]
    third = line["document"]
    await work.restore([lamp], "ann")
    assert standings_of(image, first, second, third, lamp) == ["superseded", "superseded", "current", "current"]
    assert find(image, Recollection(), "launch", MemoryReach("ann")) == ["25 April"]
    history = find(image, Recollection(), "launch", MemoryReach("ann", standings=None))
    assert "[superseded since 2026-11-24] 18 March" in history
    await store.forget([third], "ann")
    assert standings_of(image, first, second) == ["superseded", "current"]


def standings_of(image: LivingImage, *names: str) -> list[str]:
    """The standings of memories."""
    with image.snapshot() as root:
        return [own_slots(root[roots.DOCUMENTS][each])["standing"] for each in names]


async def folded(image: LivingImage) -> str:
    """Fold four memories of ann's; the summary's name."""
    store = store_of(image)
    named = [(f"The bell {each} rings for Maro{each}. " + "It hangs high. " * 9, f"/d/{each}") for each in range(4)]
    await store.remember([incoming(text, source) for text, source in named])
    folds = FoldStore(image, store, ChunkSearch(), lambda: datetime(2026, 11, 24, tzinfo=UTC))
    for read, written in folds.survey("ann", datetime(2027, 1, 1, tzinfo=UTC)):
        if any(each["source"].startswith("/d/") for each in read.lines):
            line = await folds.fold(read, written)
            assert line is not None
            return line["summary"]
    raise AssertionError("nothing was folded")


async def test_what_a_summary_quotes_is_retracted_edited_and_pinned_like_any_other(image: LivingImage) -> None:
    """The region comes back first, so that no summary tells what is not recalled."""
    everything = MemoryReach("ann", standings=WITH_SUMMARISED)
    work, store = corrections_of(image), store_of(image)
    await folded(image)
    assert len((await work.retract([], "ann", source="/d/1"))["retracted"]) == 1
    assert not [each for each in find(image, Recollection(), "Maro1", everything) if "Maro1" in each]
    await store.edit("/d/2", "The bell is mute.", "ann")
    assert "The bell is mute." in find(image, Recollection(), "mute bell", EVERYONE)
    assert (await work.pin(["/d/3"], "ann"))["memories"][0]["standing"] == "current"


async def test_a_summary_is_retracted_with_all_that_it_stands_for(image: LivingImage) -> None:
    """And comes back with it."""
    everything = MemoryReach("ann", standings=WITH_SUMMARISED)
    work, summary = corrections_of(image), await folded(image)
    assert len((await work.retract([summary], "ann"))["retracted"]) == 5
    assert find(image, Recollection(), "bell Maro1", everything) == []
    assert len((await work.restore([summary], "ann"))["restored"]) == 5
    assert texts(image, "summarised") == 4


async def test_a_mailbox_is_forgotten_and_retracted_by_its_path(image: LivingImage) -> None:
    """All its mails are; a file whose name looks like it is not."""
    store = store_of(image)
    mails = [replace(incoming(f"Mail {each} of the lamp.", f"/m.mbox#{each}"), kind="turn") for each in range(2)]
    await store.remember([*mails, incoming("A page of the lamp.", "/m.mbox#page")])
    for named in ({"named": (), "source": "/m.mbox"}, {"named": ("/m.mbox",)}):
        assert len((await corrections_of(image).retract(user="ann", **named))["retracted"]) == 2
        assert len((await corrections_of(image).restore(["/m.mbox"], "ann"))["restored"]) == 2
    assert len((await store.forget(["/m.mbox"], "ann"))["forgotten"]) == 2
    assert "A page of the lamp." in recalled(image)
    with pytest.raises(NotFound):
        await store.forget(["/m.mbox"], "ann")


class _SlowTidying(FoldStore):
    """Folds that take their time between two looks at the image: until something has happened, or half a second."""

    def __init__(self, image: LivingImage, store: DocumentStore) -> None:
        super().__init__(image, store, ChunkSearch(), lambda: datetime(2026, 11, 24, tzinfo=UTC))
        self.has_looked, self.goes_on = threading.Event(), threading.Event()

    def _stale(self) -> list[tuple[int, int]]:
        found = super()._stale()
        self.has_looked.set()
        self.goes_on.wait(0.5)  # any pace: what is to happen may wait for this one
        return found


@pytest.mark.parametrize("verb", ["pin", "retract"])
async def test_what_comes_back_while_segments_are_tidied_is_found(image: LivingImage, verb: str) -> None:
    """Its parts are indexed again between numbers that are archived still, and are not taken for these."""
    store = store_of(image)
    folds, work = _SlowTidying(image, store), corrections_of(image, store)
    texts_ = [f"The bell{each} rings for Maro{each}. " + f"Rope{each} hangs high. " * 9 for each in range(16)]
    await store.remember([incoming(text, f"/{'ab'[each % 2]}/{each}") for each, text in enumerate(texts_)])
    for read, written in list(folds.survey("ann", datetime(2027, 1, 1, tzinfo=UTC))):
        await folds.fold(read, written)
    tidying = asyncio.ensure_future(folds.tidy())
    assert await asyncio.to_thread(folds.has_looked.wait, HANG)
    correcting = asyncio.ensure_future(work.pin(["/a/0"], "ann") if verb == "pin" else work.retract(["/a/0"], "ann"))
    correcting.add_done_callback(lambda _: folds.goes_on.set())
    await asyncio.gather(tidying, correcting)
    found = set(find(image, Recollection(), "bell2 bell4 bell6", EVERYONE))
    assert found >= {texts_[each].strip() for each in (2, 4, 6)}
