"""Corrections by hand: what is remembered is retracted and restored, pinned and unpinned, each in one commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from batos.errors import NotFound, Refused
from batos.image import memory_pins, memory_records, retractions, roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.retractions import Retraction
from batos.image.roots import Root
from batos.memory.recollection import line_of
from batos.memory_documents import MemoryLine, PinnedPage, RestoredPage, RetractedPage
from batos.objects.prototype import own_slots

T = TypeVar("T")


class Corrections:
    """Changes what is recalled, as a person asks for it; texts and their history stay in the image."""

    def __init__(self, image: LivingImage, clock: Callable[[], datetime]) -> None:
        self._image = image
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
                found = retractions.names_from_source(root, source, user)
                names += found or _names(root, [source], user)
            done = retractions.retract(root, list(dict.fromkeys(names)), user, at, cascade=cascade)
            return {
                "retracted": _lines(root, done.memories),
                "pins": len(done.pins),
                "answers": len(done.missions),
                "methods": [_method_name(root, key) for key, _, was_active in done.methods if was_active],
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
                _check_current(root, each)
                memory_pins.pin(root, each, at)
            return {"memories": _lines(root, names), "pinned": True}

        return await self._apply(change)

    async def unpin(self, named: Sequence[str], user: str) -> PinnedPage:
        """Take pins away. Raises: NotFound: a memory is not there, or is another user's."""

        def change(root: Root) -> PinnedPage:
            names = _names(root, named, user)
            for each in names:
                memory_pins.unpin(root, each)
            return {"memories": _lines(root, names), "pinned": False}

        return await self._apply(change)

    async def _apply(self, change: Callable[[Root], T]) -> T:
        """Make a change. A refusal is raised here: within the writer it would fail the other changes of its commit.

        Each change refuses before it changes anything.
        """

        def attempt(root: Root) -> T | NotFound | Refused:
            try:
                return change(root)
            except (NotFound, Refused) as error:
                return error

        told = await self._image.writer.apply(attempt)
        if isinstance(told, NotFound | Refused):
            raise told
        return told


def _names(root: Root, named: Sequence[str], user: str) -> list[str]:
    found = (memory_records.find_document(root, each, user) for each in named)
    return list(dict.fromkeys(str(own_slots(each)["name"]) for each in found))


def _lines(root: Root, names: Sequence[str]) -> list[MemoryLine]:
    return [line_of(root[roots.DOCUMENTS][each]) for each in names]


def _method_name(root: Root, key: str) -> str:
    lineage = root[roots.METHODS][key]
    return f"{roots.name_of_object(root, lineage.holder)}.{lineage.selector}"


def _check_current(root: Root, name: str) -> None:
    slots = own_slots(root[roots.DOCUMENTS][name])
    if slots["standing"] != "current":
        what = f"{slots['title']!r} is {slots['standing']}: it is not recalled"
        raise Refused(what, field="documents", remedy=f"`batos memories restore {name}` brings it back.")


def _check_restorable(root: Root, name: str) -> None:
    slots = own_slots(root[roots.DOCUMENTS][name])
    if slots["standing"] not in ("edited", "retracted") and not retractions.find_all(root, name):
        what = f"{slots['title']!r} is {slots['standing']}: nothing is to be restored"
        raise Refused(what, field="documents", remedy="`batos memories ID` shows one, also of those that are history.")


def _restore(root: Root, name: str, told: tuple[str, str], page: RestoredPage, alone: bool) -> None:
    """Bring one memory back, and add what came with it to the page."""
    standing = own_slots(root[roots.DOCUMENTS][name])["standing"]
    several = [] if alone else retractions.find_all(root, name)
    for done in several:
        _restore_all(root, done, told, page)
    if several:
        return
    if standing == "edited":
        for later, document in root[roots.DOCUMENTS].items():
            if name in own_slots(document).get("edits", ()):
                memory_records.set_standing(root, later, "edited")
        memory_records.set_standing(root, name, "current")
        page["restored"] += _lines(root, [name])
    elif standing == "retracted":
        memory_records.set_standing(root, name, "current")
        page["restored"] += _lines(root, [name])


def _restore_all(root: Root, done: Retraction, told: tuple[str, str], page: RestoredPage) -> None:
    by, at = told
    retractions.restore(root, done, by, at)
    page["restored"] += _lines(root, [each for each in done.memories if each in root[roots.DOCUMENTS]])
    page["methods"] += [_method_name(root, key) for key, _, was_active in done.methods if was_active]
    page["tools"] += [selector for selector, _, _ in done.tools]
