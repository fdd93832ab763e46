"""Moments of the image as people name them: a time, a mission, or the id of a commit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from ZODB.utils import p64, u64

from batos.image import naming, roots
from batos.image.ids import iso, serial_of, tid_text
from batos.image.readable import ReadableImage
from batos.image.views.past import PastImage, before_span, kept_span, moment_of, newest_commit, published_at, tid_of
from batos.missions.readings import Readings
from batos.protocol.errors import BriefError, Refused
from batos.protocol.mission_documents import AsOfDocument

_TID: Final = re.compile(r"tid:0x[0-9a-fA-F]{1,16}")
#: The span of ids of the commits of one second.
_SECOND: Final = 2**32 // 60
_FORMS: Final = "Give a time such as 2026-11-26T09:00Z, a mission, or a commit such as tid:0x03d1."


@dataclass(frozen=True, slots=True)
class Moment:
    """The image right after commit `tid` and before the next; `mission` is the one that was named, if any.

    `waits`: that mission is still to be remembered, and `tid` is the commit that published it.
    """

    tid: bytes
    mission: str = ""
    waits: bool = False

    @property
    def at(self) -> str:
        """Return the moment in ISO 8601."""
        return iso(moment_of(self.tid))

    def as_dict(self) -> AsOfDocument:
        """Return the moment as plain data."""
        told = AsOfDocument(at=self.at, tid=tid_text(self.tid))
        if self.mission:
            told["mission"] = self.mission
        return told


def find_moment(readings: Readings, named: str, user: str | None = None) -> Moment:
    """Return the moment that is meant; a mission's is right after its contributions were published, memory included.

    Raises: BriefError: it is none, or in the future. NotFound: there is no such mission (of this user's). Refused: the
    mission is not published. PackedAway: that commit is gone.
    """
    if _TID.fullmatch(named):
        return _by_tid(readings.image, serial_of(named))
    if naming.back(named) is not None or named.lower().startswith("m-"):
        return _by_mission(readings, readings.resolve_mission(named, user))
    return _by_time(readings, named)


def _by_tid(image: ReadableImage, tid: bytes) -> Moment:
    newest = newest_commit(image.db)
    if tid > newest:
        raise BriefError(
            f"the newest commit is {tid_text(newest)}, and {tid_text(tid)} is in the future",
            field="as_of",
            remedy="`batos show MISSION` tells the commit of a mission.",
        )
    return Moment(tid)


def _by_mission(readings: Readings, mission: str) -> Moment:
    with readings.image.snapshot() as root:
        status = readings.image.find(root, mission).status
        tid, published, word = published_at(root, status), status.published, status.word
        waits = mission in root[roots.UNREMEMBERED]
    if tid is not None:
        return Moment(tid if waits else _remembered_at(readings.image, mission, tid), mission, waits)
    if not published:
        raise Refused(
            f"{mission} is {word}, and nothing of it has been published",
            field="as_of",
            remedy="Name a mission that is done, or a time.",
        )
    raise before_span(kept_span(readings.image.db))


def _remembered_at(image: ReadableImage, mission: str, published: bytes) -> bytes:
    """Return the commit by which a mission got into memory, or by which it was published if it never did.

    Nothing records that commit: until it the mission stands among those that wait, so that it is found by halving.
    """

    def is_waiting(tid: int) -> bool:
        with PastImage(image, p64(tid)).snapshot() as root:
            return mission in root[roots.UNREMEMBERED]

    before, step = u64(published), _SECOND
    if not is_waiting(before):
        return published
    while is_waiting(before + step):
        before, step = before + step, 2 * step
    after = before + step
    while after - before > 1:
        middle = (before + after) // 2
        before, after = (middle, after) if is_waiting(middle) else (before, middle)
    with PastImage(image, p64(after)).snapshot() as root:  # an undo ends the waiting too
        return p64(after) if image.find(root, mission).status.word == "done" else published


def _by_time(readings: Readings, named: str) -> Moment:
    try:
        moment = datetime.fromisoformat(named)
        tid = tid_of(moment)
    except (ValueError, OverflowError) as error:
        raise BriefError(f"{named!r} is no moment", field="as_of", remedy=_FORMS) from error
    if moment.tzinfo is None:
        raise BriefError(f"{named!r} has no time zone", field="as_of", remedy=_FORMS)
    if moment > readings.clock():
        raise BriefError(f"{iso(moment)} is in the future", field="as_of", remedy="Name a moment that has been.")
    return Moment(tid)
