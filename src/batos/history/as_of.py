"""Reading the mind as it was: the image, its memory and its journal, all of one past moment."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from batos.history import past_questions
from batos.history.moments import Moment, find_moment
from batos.image import roots
from batos.image.views.past import PastImage
from batos.inference.journal import Entries
from batos.memory.records import memory_segments
from batos.memory.search.recollection import Recollection
from batos.methods.lifecycle.method_reports import MethodReader
from batos.missions.readings import Readings
from batos.protocol.mission_documents import MissionDocument

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
        found = past_questions.find_question(self._today.journal, named, user)
        copy = None if found is None else self.running.get(found["id"])
        if found is None or copy is None:
            return found
        return past_questions.running_report(copy.mission(found["id"]), found)

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
