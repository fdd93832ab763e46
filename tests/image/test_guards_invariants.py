"""What no commit may write: an unpassed method, a slot past its lineage, a loop of parents, a reference to nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from persistent.mapping import PersistentMapping
from tests.image.open_image import answer, dump, open_image, passed, thought_in
from tests.image.writers import WRITERS, start_mission

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.records import Lineage
from batos.image.roots import method_key
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, own_slots
from batos.protocol.errors import Refused

SOURCE = "def ring_(self):\n    return 1\n"


def _given(root: Any) -> None:
    """Two objects, the one with a bell: a method that has a lineage."""
    bell = root["traits_obj"] = UvmObject({"ring_": Intent("Ring."), "count": 0})
    root["genesis_obj"] = UvmObject(parents=(bell,))
    roots.connection_of(root).add(bell)
    lineage = root[roots.METHODS][method_key(bell, "ring_")] = Lineage(bell, "ring_", bell.ring_)
    lineage.revisions[1] = bell.ring_ = passed("ring_", SOURCE)
    lineage.active = 1


def _unpassed(root: Any) -> None:
    root["traits_obj"].sing_ = Method("sing_", SOURCE)


def _refused(root: Any) -> None:
    method = passed("sing_", SOURCE)
    root["traits_obj"].sing_ = Method("sing_", SOURCE, verdict={**method.verdict, "accepted": False})


def _from_outside(root: Any) -> None:
    method = passed("sing_", SOURCE)
    root["traits_obj"].sing_ = Method("sing_", SOURCE, verdict=method.verdict, provenance={"trust": "external"})


def _changed_since(root: Any) -> None:
    root["traits_obj"].ring_.source = SOURCE + "    # and more\n"


def _deep_within(root: Any) -> None:
    root["traits_obj"].friends = [{"bell": UvmObject({"ring_": Method("ring_", SOURCE)})}]


def _past_its_lineage(root: Any) -> None:
    lineage = root[roots.METHODS][method_key(root["traits_obj"], "ring_")]
    lineage.revisions[2] = passed("ring_", SOURCE)
    lineage.active = 2


def _the_holder_alone(root: Any) -> None:
    root["traits_obj"].ring_ = passed("ring_", SOURCE + "    # and more\n")


def _a_loop(root: Any) -> None:
    root["traits_obj"]._p_activate()
    vars(root["traits_obj"])["_parents"] = (root["genesis_obj"],)
    root["traits_obj"]._p_changed = True


BROKEN: dict[str, tuple[Callable[[Any], None], str]] = {
    "unpassed": (_unpassed, "'sing_' .* is not one that the guardian passed"),
    "refused": (_refused, "'sing_' .* is not one that the guardian passed"),
    "from outside": (_from_outside, "'sing_' .* comes from outside, and nobody approved it"),
    "changed since": (_changed_since, "'ring_' .* is not one that the guardian passed"),
    "deep within": (_deep_within, "'ring_' .* is not one that the guardian passed"),
    "past its lineage": (_past_its_lineage, r"\.ring_ would hold another method"),
    "the holder alone": (_the_holder_alone, r"\.ring_ would hold another method"),
    "a loop": (_a_loop, "would become its own ancestor"),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_no_change_breaks_it(name: str) -> None:
    """The writer refuses it, writes nothing of it, and takes the next change."""
    work, what = BROKEN[name]
    async with open_image(None) as image:
        await image.writer.apply(_given)
        before = dump(image)
        with pytest.raises(Refused, match=what) as refused:
            await image.writer.apply(work)
        assert "Nothing was written." in refused.value.remedy
        assert dump(image) == before
        await image.writer.apply(lambda root: setattr(root["traits_obj"], "count", 1))


async def _running(image: LivingImage) -> str:
    await image.writer.apply(_given)
    return await start_mission(image)


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", BROKEN)
async def test_no_writer_breaks_it(name: str, writer: str) -> None:
    """Whoever commits is refused, and what was there is as it was."""
    work, what = BROKEN[name]
    async with open_image(None) as image:
        mission = await _running(image)
        before = _given_records(image)
        with pytest.raises(Refused, match=f"{what}|to make a method by itself"):
            await WRITERS[writer](image, mission, work)
        assert _given_records(image) == before


def _given_records(image: LivingImage) -> list[bytes]:
    with image.snapshot() as root:
        bell, holder = root["traits_obj"], root["genesis_obj"]
        watched = bell, bell.ring_, holder, root[roots.METHODS]
        return [image.db.storage.load(each._p_oid)[0] for each in watched]


@pytest.mark.parametrize("name", BROKEN)
async def test_no_thought_breaks_it(name: str) -> None:
    """A mission's commit is refused too, by its voters or by its connection, and the image is as it was."""
    work, what = BROKEN[name]
    async with open_image(None) as image:
        mission = await _running(image)
        before = dump(image)
        with image.transaction(mission) as transaction:
            work(transaction.root)
            thought = answer(thought_in(image, transaction, mission))
            with pytest.raises(Refused, match=f"{what}|to make a method by itself|only the codex and the kernel"):
                await transaction.commit(thought)
        assert dump(image) == before


@pytest.mark.parametrize("behaviour", [passed("ring_", SOURCE), Intent("Ring.")])
async def test_a_thought_makes_no_behaviour_however_deep(behaviour: Method | Intent) -> None:
    """A method that was passed, or an intent, in an object that only the thought knows is a thought's all the same."""
    async with open_image(None) as image:
        mission = await _running(image)
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            thought.friends = ({"bell": UvmObject({"ring_": behaviour})},)
            with pytest.raises(Refused, match="by itself"):
                await transaction.commit(thought)
        # The connection goes back to the pool, and the writer's own commits make methods.
        await image.writer.apply(lambda root: setattr(root["genesis_obj"], "sing_", passed("sing_", SOURCE)))


async def test_a_thought_moves_no_method() -> None:
    """A method that is there is put into no other slot by a thought."""
    async with open_image(None) as image:
        mission = await _running(image)
        with image.transaction(mission) as transaction:
            transaction.root["genesis_obj"].rang_ = transaction.root["traits_obj"].ring_
            with pytest.raises(Refused, match="by itself"):
                await transaction.commit(answer(thought_in(image, transaction, mission)))


def _forgotten(image: LivingImage, root: Any) -> Any:
    """Give an object of this connection that the storage has lost, as a pack does with what nothing refers to."""
    gone = root["traits_obj"].friend
    assert own_slots(gone)["name"] == "gone"  # loaded: a connection that has it does not ask again
    storage = image.db.storage
    del storage._data[gone._p_oid]
    return gone


async def _befriended(image: LivingImage) -> str:
    mission = await _running(image)
    await image.writer.apply(lambda root: setattr(root["traits_obj"], "friend", UvmObject({"name": "gone"})))
    return mission


@pytest.mark.parametrize("place", [lambda gone: gone, lambda gone: [{"a": gone}], lambda gone: UvmObject({"a": gone})])
async def test_no_thought_refers_to_what_is_gone(place: Callable[[Any], Any]) -> None:
    """An object that the database has lost is named, and the commit that would refer to it is refused."""
    async with open_image(None) as image:
        mission = await _befriended(image)
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            gone = _forgotten(image, transaction.root)
            thought.friend = place(gone)
            name = f"oid:{int.from_bytes(gone._p_oid, 'big'):#x}"
            with pytest.raises(Refused, match=f"refer to {name}, which no longer exists"):
                await transaction.commit(thought)


@pytest.mark.parametrize("writer", WRITERS)
async def test_no_writer_refers_to_what_is_gone(writer: str) -> None:
    """Whoever commits is refused."""
    async with open_image(None) as image:
        mission = await _befriended(image)

        def work(root: Any) -> None:
            root[roots.STATISTICS]["friend"] = _forgotten(image, root)

        with pytest.raises(Refused, match="which no longer exists"):
            await WRITERS[writer](image, mission, work)


async def test_no_change_refers_to_what_is_gone() -> None:
    """Neither does the writer; what referred to it before may be written on, and may leave it."""
    async with open_image(None) as image:
        await _befriended(image)

        def work(root: Any) -> None:
            root[roots.STATISTICS]["friend"] = _forgotten(image, root)

        with pytest.raises(Refused, match="which no longer exists"):
            await image.writer.apply(work)
        await image.writer.apply(lambda root: setattr(root["traits_obj"], "count", 2))
        await image.writer.apply(lambda root: delattr(root["traits_obj"], "friend"))


async def test_what_an_object_left_it_may_not_refer_to_again() -> None:
    """Only what its newest record refers to is trusted: not an older one, nor one whose commit was refused."""
    async with open_image(None) as image:
        await _befriended(image)
        left: list[Any] = []

        def leave(root: Any) -> None:
            left.append(_forgotten(image, root))
            del root["traits_obj"].friend

        await image.writer.apply(leave)
        for _ in range(2):
            with pytest.raises(Refused, match="which no longer exists"):
                await image.writer.apply(lambda root: setattr(root["traits_obj"], "friend", left[0]))
        await image.writer.apply(lambda root: setattr(root["traits_obj"], "count", 2))


async def test_what_is_new_may_refer_to_what_is_new() -> None:
    """Objects that come in one commit refer to each other, in a circle too."""
    async with open_image(None) as image:
        mission = await _running(image)
        with image.transaction(mission) as transaction:
            thought = answer(thought_in(image, transaction, mission))
            one, other = UvmObject({"name": "one"}), transaction.new(UvmObject({"name": "other"}))
            one.friend, other.friend = other, one
            thought.friends = PersistentMapping({"one": one, "self": thought})
            await transaction.commit(thought)
        with image.snapshot() as root:
            friends = image.find(root, mission)[2].friends
            assert friends["one"].friend.friend is friends["one"]
