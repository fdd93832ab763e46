"""Moments of the image as people name them, the mind as it was at one, and questions that the image does not keep."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from ZODB.utils import p64, u64

from batos.image import ids, roots
from batos.image.ids import iso, serial_of, tid_text
from batos.image.past import PastImage, before_span, kept_span, moment_of, newest_commit, published_at, tid_of
from batos.image.readable import ReadableImage
from batos.inference.journal import Entries, Journal
from batos.memory.records import memory_segments
from batos.memory.search.recollection import Recollection
from batos.methods.lifecycle.method_reports import MethodReader
from batos.missions import reports
from batos.missions.readings import Readings
from batos.protocol.errors import BriefError, Refused, TimedOut
from batos.protocol.evidence_documents import PromptDocument
from batos.protocol.mission_documents import AsOfDocument, MissionDocument

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
    if ids.back(named) is not None or named.lower().startswith("m-"):
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


#: The key of the journal's note on such a question.
NOTE: Final = "asked_of_the_past"

_LEFT = Refused(
    "its process ended, whoever asked left, or something was erased, before it was answered",
    remedy="Ask again.",
)
_WAITS = Refused(
    "an answer about the past waits for nobody", remedy="Ask again with --install never and --interpret allow."
)
#: The remedy for a deadline that passed: a mission of a copy is nobody's ancestor.
_LATER: Final = "Ask again with a later deadline."


async def keep_question(journal: Journal, report: MissionDocument) -> None:
    """Write a mission's document, with the moment it was asked about, into the journal; durable when this returns."""
    journal.note(report["id"], {NOTE: {"report": json.dumps(report, ensure_ascii=False)}})
    await journal.flush(report["id"])


def begun_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that is not answered yet: so it stands if it never is."""
    return {**report, "status": "cancelled", "reason": _LEFT.as_dict()}


def ended_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that has ended: it names no commit and no remedy that only the copy has."""
    ended, reason, provenance = report.copy(), report.get("reason"), report.get("provenance")
    if reason and (reason["code"], reason.get("field")) == (TimedOut.code, "deadline"):
        ended["reason"] = {**reason, "remedy": _LATER}
    if provenance and "read_at" in provenance:
        ended["provenance"] = {**provenance, "read_at": report["as_of"]["tid"]}
    return ended


def running_report(report: MissionDocument, begun: MissionDocument) -> MissionDocument:
    """Return the report of a question as its copy has it now, with what the document that was kept first says of it."""
    shown = report.copy()
    if "as_of" in begun:
        shown["as_of"] = begun["as_of"]
    if "dream" in begun:
        shown["dream"] = begun["dream"]
    return shown


def unended_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that would have waited for somebody."""
    return {**report, "status": "cancelled", "reason": _WAITS.as_dict()}


def find_question(journal: Entries, named: str, user: str | None = None) -> MissionDocument | None:
    """Return the document of a question to the past by its id or the beginning of it; None: there is none of this
    user's.
    """
    mission = journal.complete_id(named, lambda each: _read(journal, each, user) is not None)
    return None if mission is None else _read(journal, mission, user)


def prompts_of(journal: Entries, mission: str) -> list[PromptDocument]:
    """Return every call of such a question with its exact prompt."""
    return list(reports.prompts_report(journal.read([mission]), {}))


def _read(journal: Entries, mission: str, user: str | None) -> MissionDocument | None:
    found = next(_reports(journal, mission), None)
    return found if found is not None and user in (None, found["brief"]["user"]) else None


def _reports(journal: Entries, mission: str) -> Iterator[MissionDocument]:
    """Yield what is kept of a question, the newest first."""
    for note in reversed(journal.notes(mission)):
        if NOTE in note:
            yield json.loads(note[NOTE]["report"])


#: PastReadings states of memory whose indexes are kept in memory: each is as large as that of today.
MOST_KEPT: Final = 2


class PastReadings:
    """Finds moments of the past and what reads the mind as of them.

    Memory's indexes are built for each state of memory that is asked about, from its segments, which never change; the
    states asked about last are kept. Two moments between which memory did not change share one.
    """

    def __init__(self, today: Readings) -> None:
        self._today = today
        self._lock = threading.Lock()
        self._recollections: OrderedDict[int, Recollection] = OrderedDict()
        #: The readings of the copies in which questions are being answered, by the question's mission.
        self.running: dict[str, Readings] = {}

    def find(self, named: str, user: str | None = None) -> Moment:
        """Return the moment that is meant; raises as `find_moment`."""
        return find_moment(self._today, named, user)

    def readings(self, moment: Moment) -> Readings:
        """Return what reads the mind as of a moment. Raises: PackedAway: it is older than what is kept."""
        image = PastImage(self._today.image, moment.tid)
        return replace(
            self._today,
            image=image,
            journal=Entries(image.journal_db),
            lifecycle=MethodReader(image),
            recollection=self.recollection(image),
        )

    def find_question(self, named: str, user: str | None = None) -> MissionDocument | None:
        """Return the document of a question to the past by its id or the beginning of it, as it stands now; None: there
        is none of this user's.
        """
        found = find_question(self._today.journal, named, user)
        copy = None if found is None else self.running.get(found["id"])
        if found is None or copy is None:
            return found
        return running_report(copy.mission(found["id"]), found)

    def recollection(self, image: PastImage) -> Recollection:
        """Return what recalls from an image as it was."""
        with image.snapshot() as root:
            change = memory_segments.change_of(root) if roots.MEMORIES in root else -1
        with self._lock:
            found = self._recollections.pop(change, None) or Recollection()
            self._recollections[change] = found
            while len(self._recollections) > MOST_KEPT:
                self._recollections.popitem(last=False)
        return found
