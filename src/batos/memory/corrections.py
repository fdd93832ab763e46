"""Corrections by hand: what is remembered is retracted and restored, pinned and unpinned, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.memory.records import memories_set_aside, memory_places, memory_records, memory_standings, memory_wordings
from batos.memory.records.memories_set_aside import Retraction
from batos.memory.search.recollection import line_of
from batos.objects.prototype import own_slots
from batos.protocol.errors import Refused
from batos.protocol.memory_documents import MemoryLine, PinnedPage, RestoredPage, RetractedPage
from batos.records import methods, outcomes
from batos.records.outcomes import NotedAct

T = TypeVar("T")

#: The standings of what can be restored.
_HISTORY: Final = ("edited", "retracted")


class Corrections:
    """Changes what is recalled, as a person asks for it; texts and their history stay in the image."""

    def __init__(self, image: LivingImage, store: DocumentStore, clock: Callable[[], datetime]) -> None:
        self._image = image
        self._store = store
        self._clock = clock

    async def retract(
        self, named: Sequence[str], user: str, *, source: str | None = None, cascade: bool = False
    ) -> RetractedPage:
        """Take memories out of recall; with `cascade` also all that they caused.

        Raises: NotFound: one of them is not there, or is another user's.
        """
        at = iso(self._clock())

        def change(root: Root) -> RetractedPage:
            names = _names(root, named, user)
            if source is not None:
                found = memories_set_aside.names_from_source(root, source, user)
                names += found or _names(root, [source], user)
            names = list(dict.fromkeys(names))
            done = memories_set_aside.retract(root, names, (user, at), cascade=cascade)
            for mission in _list_missions(root, done.memories):
                outcomes.note(root, mission, NotedAct("retracted", at, user))
            return {
                "retracted": _lines(root, done.memories),
                "pins": len(done.pins),
                "answers": len(done.missions),
                "methods": _active_names(root, done),
                "tools": [selector for selector, _, _ in done.tools],
            }

        return await self._apply(change)

    async def restore(self, named: Sequence[str], user: str, *, alone: bool = False) -> RestoredPage:
        """Let memories be recalled again: retracted ones with all that went with them, edited ones with their old text.

        `alone`: no method and no other memory comes back with them.

        Raises: NotFound: one of them is not there, or is another user's. Refused: one of them is recalled already.
        """
        at = iso(self._clock())

        def change(root: Root) -> RestoredPage:
            page: RestoredPage = {"restored": [], "methods": [], "tools": []}
            names = _names(root, named, user)
            for name in names:
                _check_restorable(root, name)
            for name in names:
                _restore(root, name, (user, at), page, alone)
            return page

        return await self._apply(change)

    async def pin(self, named: Sequence[str], user: str) -> PinnedPage:
        """Let memories be recalled for every question. Raises: NotFound: one is not there, or is another user's."""
        at = iso(self._clock())

        def change(root: Root) -> PinnedPage:
            names = _names(root, named, user)
            for each in names:
                _check_recalled(root, each)
            memories_set_aside.unfold_covering(root, names)  # what is pinned is never folded
            for each in names:
                memory_standings.pin(root, each, at)
            return {"memories": _lines(root, names), "pinned": True}

        return await self._apply(change)

    async def unpin(self, named: Sequence[str], user: str) -> PinnedPage:
        """Take pins away. Raises: NotFound: a memory is not there, or is another user's."""

        def change(root: Root) -> PinnedPage:
            names = _names(root, named, user)
            for each in names:
                memory_standings.unpin(root, each)
            return {"memories": _lines(root, names), "pinned": False}

        return await self._apply(change)

    async def _apply(self, change: Callable[[Root], T]) -> T:
        """Make a change. Nothing may come back from an archive while segments are rid of archived parts."""
        async with self._store.exclusively():
            return await self._image.shared.apply(change)


def _list_missions(root: Root, names: Iterable[str]) -> list[str]:
    """Return the missions whose answers are among memories."""
    found = (own_slots(root[roots.DOCUMENTS][name]) for name in names if name in root[roots.DOCUMENTS])
    return sorted({str(each["mission"]) for each in found if each["kind"] == "mission"})


def _names(root: Root, named: Sequence[str], user: str) -> list[str]:
    found = (found for each in named for found in memory_records.find_documents(root, each, user))
    return list(dict.fromkeys(str(own_slots(each)["name"]) for each in found))


def _lines(root: Root, names: Sequence[str]) -> list[MemoryLine]:
    return [line_of(root[roots.DOCUMENTS][each]) for each in names]


def _active_names(root: Root, done: Retraction) -> list[str]:
    """Return the names of the methods that a retraction took out of use."""
    return [methods.name_of(root, root[roots.METHODS][key]) for key, _, was_active in done.methods if was_active]


def _check_recalled(root: Root, name: str) -> None:
    slots = own_slots(root[roots.DOCUMENTS][name])
    if slots["standing"] not in memory_standings.RECALLED:
        what = f"{slots['title']!r} is {slots['standing']}: it is not recalled"
        raise Refused(what, field="documents", remedy=f"`batos memories restore {name}` brings it back.")


def _check_restorable(root: Root, name: str) -> None:
    slots = own_slots(root[roots.DOCUMENTS][name])
    if slots["standing"] not in _HISTORY and not memories_set_aside.find_retractions(root, name):
        what = f"{slots['title']!r} is {slots['standing']}: nothing is to be restored"
        raise Refused(what, field="documents", remedy="`batos memories ID` shows one, also of those that are history.")
    if memory_standings.is_place_taken(root, name) and slots["standing"] in _HISTORY:
        other = memory_places.find_by_source(root, slots["user"], slots["scope"], slots["source"]) or ""
        if not memory_wordings.is_same_memory(root, name, other):
            what = f"{slots['source']} has another text since: {other}"
            raise Refused(what, field="documents", remedy=f"`batos memories retract {other}` first, then restore.")
    if slots["standing"] in _HISTORY and (newer := memory_standings.value_in_place(root, name)):
        what = f"{slots['key']} has another value since: {newer}"
        raise Refused(what, field="documents", remedy=f"`batos memories retract {newer}` first, then restore.")


def _restore(root: Root, name: str, told: tuple[str, str], page: RestoredPage, alone: bool) -> None:
    """Bring one memory back, and add what came with it to the page."""
    before = memory_standings.standing_of(root, name)
    for done in [] if alone else memories_set_aside.find_retractions(root, name):
        _restore_all(root, done, told, page)
    if before in _HISTORY:
        _take_place(root, name, told[1])
        page["restored"] = [each for each in page["restored"] if each["document"] != name] + _lines(root, [name])


def _take_place(root: Root, name: str, at: str) -> None:
    """Let a memory be recalled in the place of another wording of it, whose pin it takes over."""
    wordings = [each for each in memory_wordings.wordings_of(root, name) if each != name]
    recalled = [each for each in wordings if memory_standings.standing_of(root, each) in memory_standings.RECALLED]
    memories_set_aside.unfold_covering(root, recalled)
    for each in recalled:
        memory_standings.set_standing(root, each, "edited")
    if memory_standings.standing_of(root, name) in _HISTORY:
        memory_standings.recall_again(root, name)
    if [each for each in recalled if memory_standings.unpin(root, each)]:
        memory_standings.pin(root, name, at)


def _restore_all(root: Root, done: Retraction, told: tuple[str, str], page: RestoredPage) -> None:
    by, at = told
    memories_set_aside.restore(root, done, by, at)
    there = (each for each in done.memories if each in root[roots.DOCUMENTS])
    back = [each for each in there if memory_standings.standing_of(root, each) not in _HISTORY]
    page["restored"] += _lines(root, back)
    page["methods"] += _active_names(root, done)
    page["tools"] += [selector for selector, _, _ in done.tools]
