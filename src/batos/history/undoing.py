"""Undo and redo of missions: what they left goes or comes back in one commit, on every storage, after a pack too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from batos.events import Events
from batos.history import undone_missions
from batos.history.mission_traces import Keeping, find_dependents, is_being_published
from batos.history.undone_missions import Act
from batos.image import roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.memory.document_store import DocumentStore
from batos.objects.prototype import own_slots
from batos.protocol.errors import Busy, NotFound, Refused
from batos.protocol.event_payloads import APPROVAL_ANSWERED, MISSION_STATUS, ApprovalAnswered, MissionStatus
from batos.protocol.memory_documents import RedonePage, UndonePage
from batos.records import memory_lineage

T = TypeVar("T")

#: Seconds between two looks whether missions that build on one are published, and how long an undo waits for that.
_PAUSE: Final = 0.05
PATIENCE: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Plan:
    """A plan of an undo: the act, and for each mission on which other one it builds, and how."""

    act: Act
    because: Mapping[str, tuple[str, str]]

    @property
    def dependents(self) -> list[str]:
        """Return a line for each mission that builds on the one that was named."""
        return [f"{name}: {self.because[name][1]}" for name in reversed(self.act.missions) if name in self.because]


class Undoing:
    """Undoes missions and brings them back, as a person asks for it."""

    def __init__(
        self,
        image: LivingImage,
        store: DocumentStore,
        events: Events,
        clock: Callable[[], datetime],
        patience: float = PATIENCE,
    ) -> None:
        """Create it; `patience` is how many seconds an undo waits for answers that are being published."""
        self._image, self._store, self._events, self._clock = image, store, events, clock
        self._patience = patience
        self._redoing = asyncio.Lock()

    def plan(self, mission: str, by: str, keeping: Keeping) -> UndonePage:
        """Return what an undo with all that builds on the mission would take out; nothing is changed.

        Raises: Refused: the mission is not done.
        """
        with self._image.snapshot() as root:
            return self._page(root, self._plan(root, mission, by, keeping), dry_run=True)

    async def undo(self, mission: str, by: str, keeping: Keeping, *, cascade: bool = False) -> UndonePage:
        """Take a mission out with its answer, memories, turn, methods and slots; with `cascade` what builds on it too.

        Calls stay in the journal, and files of its brief in the image. Raises: Refused: it is not done, or, without
        `cascade`, others build on it; nothing is changed. Busy: one that builds on it is not published yet.
        """

        def change(root: Root) -> UndonePage:
            _guard_open(root)
            plan = self._plan(root, mission, by, keeping)
            unpublished = _list_unpublished(root, plan)
            if unpublished:
                raise _unpublished_error(mission, unpublished)
            if plan.dependents and not cascade:
                raise _dependence_error(mission, plan.dependents)
            page = self._page(root, plan, dry_run=False)
            for name in plan.act.missions:
                based_on = set(memory_lineage.list_builds_on(root, name, roots.mission_record(root, name).thought))
                based_on |= {plan.because[name][0]} if name in plan.because else set()
                undone_missions.undo(root, name, plan.act, sorted(based_on & {*plan.act.missions} - {name}))
            return page

        await self._wait_for_published(mission, by, keeping)
        async with self._store.exclusively():
            page = await self._image.shared.apply(change)
        for approval in [each.partition(" ")[0] for line in page["undone"] for each in line["approvals"]]:
            self._events.emit(APPROVAL_ANSWERED, ApprovalAnswered(approval=approval, answer="outdated", by=None))
        self._tell((line["mission"] for line in page["undone"]), "undone")
        return page

    async def redo(self, mission: str, by: str, *, cascade: bool = False) -> RedonePage:
        """Bring an undone mission back as it was; with `cascade` all that were undone with it.

        Whatever somebody changed since stays changed, and is named. Raises: Refused: it is not undone, or it builds on
        one that still is; nothing is changed.
        """
        async with self._redoing:
            with self._image.snapshot() as root:
                missions = _find_returning(root, mission, cascade=cascade)
                documents = [each for name in missions for each in undone_missions.documents_of(root, name)]
            left: list[str] = []

            def change(root: Root) -> None:
                at = iso(self._clock())
                for name in missions:
                    if undone_missions.find_act(root, name) is None:  # another process was faster
                        raise _not_undone_error(root, name)
                left[:] = [f"{name}: {each}" for name in missions for each in undone_missions.redo(root, name, by, at)]

            await self._store.add(documents, change)
        self._tell(missions, "done")
        return {"mission": mission, "redone": missions, "left": left}

    async def _wait_for_published(self, mission: str, by: str, keeping: Keeping) -> None:
        """Wait a while until all that builds on a mission is published: milliseconds, unless its node has died."""

        def look() -> bool:
            with self._image.snapshot() as root:
                return not _list_unpublished(root, self._plan(root, mission, by, keeping))

        for _ in range(round(self._patience / _PAUSE)):
            if await asyncio.to_thread(look):
                return
            await asyncio.sleep(_PAUSE)

    def _plan(self, root: Root, mission: str, by: str, keeping: Keeping) -> _Plan:
        undone_missions.check_undoable(root, mission)
        because = find_dependents(root, mission, keeping)
        act = Act(mission, by, iso(self._clock()), keeping, (*reversed(because), mission))
        return _Plan(act, because)

    def _page(self, root: Root, plan: _Plan, *, dry_run: bool) -> UndonePage:
        act = plan.act
        because = {name: how for name, (_, how) in plan.because.items()}
        lines = [undone_missions.describe(root, name, act, because.get(name, "")) for name in act.missions]
        prompt = roots.mission_record(root, act.origin).brief.value["text"]
        return {
            "mission": act.origin, "dry_run": dry_run, "undone": lines, "kept": act.keeping.names(), "prompt": prompt,
        }  # fmt: skip

    def _tell(self, missions: Iterable[str], word: str) -> None:
        for mission in missions:
            self._events.emit(MISSION_STATUS, MissionStatus(mission=mission, status=word, reason=None))
            if word == "undone":
                self._image.signals.undone.give(mission)


def find_newest_undone(root: Root, user: str | None) -> str:
    """Return the mission that was named in the newest undo of a user's missions.

    If that one is back already, return the oldest of those of the user's that went with it. Raises: NotFound: none is
    undone.
    """
    found = [
        (kept["at"], kept["missions"].index(name), name)
        for name, kept in root[roots.UNDONE].items()
        if user is None or all(_user_of(root, each) == user for each in (name, kept["origin"]))
    ]
    if not found:
        raise NotFound("no mission is undone", field="mission", remedy="`batos missions --status undone` lists them.")
    return max(found)[2]


def _user_of(root: Root, mission: str) -> str | None:
    record = roots.find_record(root, mission)
    return None if record is None else record.brief.value["user"]


def _find_returning(root: Root, mission: str, *, cascade: bool) -> list[str]:
    """Return the missions that come back, the oldest first. Raises: Refused."""
    kept = undone_missions.find_act(root, mission)
    if kept is None:
        raise _not_undone_error(root, mission)
    undone = root[roots.UNDONE]
    together = [name for name in reversed(kept["missions"]) if name in undone] if cascade else [mission]
    for name in together:
        missing = [each for each in undone[name]["builds_on"] if each in undone and each not in together]
        if missing:
            raise Refused(
                f"{name} builds on {missing[0]}, which is undone too",
                field="mission",
                remedy=f"`batos redo {missing[0]}` first, or all at once: `batos redo {mission} --cascade`.",
            )
    return together


def _guard_open(root: Root) -> None:
    """Let the commit meet a conflict if a thought that is under way is committed before it: that may build on it."""
    for name in root[roots.UNFOLDED]:
        record = roots.find_record(root, name)
        if record is not None and record.status.word == "running":
            own_slots(record.thought)  # before it is read its serial is zero
            roots.connection_of(root).readCurrent(record.thought)


def _list_unpublished(root: Root, plan: _Plan) -> list[str]:
    return [name for name in plan.because if is_being_published(roots.mission_record(root, name))]


def _unpublished_error(mission: str, names: list[str]) -> Busy:
    what = f"{names[0]} builds on {mission} and is just being published"
    remedy = "Try again in a moment. If its node has died, another publishes it when its lease has ended."
    return Busy(what, field="mission", remedy=remedy).add_faults(names)


def _dependence_error(mission: str, dependents: list[str]) -> Refused:
    remedy = f"`batos undo {mission} --dry-run` lists all that would go, `batos undo {mission} --cascade` takes it out."
    error = Refused(f"{len(dependents)} later missions build on {mission}", field="mission", remedy=remedy)
    if len(dependents) == 1:
        error = Refused(f"a later mission builds on {mission}", field="mission", remedy=remedy)
    return error.add_faults(dependents)


def _not_undone_error(root: Root, mission: str) -> Refused:
    word = roots.mission_record(root, mission).status.word
    if word == "undone":  # and nothing is kept of it
        return undone_missions.erasure_refusal(mission)
    remedy = "`batos missions --status undone` lists those that are."
    return Refused(f"{mission} is {word}, not undone", field="mission", remedy=remedy)
