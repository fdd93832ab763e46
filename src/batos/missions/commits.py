"""Before a mission's commit: the checks that it must pass, and its turn among missions that change the same objects.

The checks of every writer's commit, a mission's among them, are in image/guards.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ZODB.POSException import ConflictError, POSError

from batos.agency.lookup import by_name
from batos.image import roots
from batos.image.guards import protected_changes
from batos.image.image import LivingImage
from batos.image.past import newest_writing
from batos.image.records import TRUST, least_trust
from batos.image.transactions import MissionTransaction
from batos.objects.method import Intent, Method
from batos.objects.prototype import UvmObject, label, own_slots
from batos.protocol.errors import BatosError, Refused
from batos.records.memory_lineage import list_builds_on, list_methods_run

#: The reason of an attempt that begins again.
CONFLICT: Final = BatosError(
    "another mission changed what this one changes", remedy="It runs again on the newer state."
)
_PROVENANCE = ("journal", "models", "methods", "recalled", "read_at")


def has_provenance(transaction: MissionTransaction) -> None:
    """Check that a thought says where all of it came from.

    Raises: Refused: a part of the provenance is missing.
    """
    provenance = transaction.thought.provenance
    missing = [key for key in _PROVENANCE if key not in provenance]
    if missing:
        raise Refused(f"the thought's provenance lacks {', '.join(missing)}", remedy="Please report this.")


def has_trust(transaction: MissionTransaction) -> None:
    """Check that a thought has a trust class below a person's, and its lineage the least class of all that is in it.

    Raises: Refused: the classes are missing or contradict each other.
    """
    trust = transaction.thought.trust
    lineage = transaction.thought.lineage_trust
    if trust not in TRUST[1:] or lineage not in TRUST or TRUST.index(lineage) < TRUST.index(trust):
        what = f"the thought's trust ({trust!r}, lineage {lineage!r}) is not one that it can have"
        raise Refused(what, remedy="Please report this.")


def keeps_the_least_trust(transaction: MissionTransaction) -> None:
    """Check that the lineage of a thought has no better class than what the mission recalled for it.

    The class of what is remembered is read from the image, whatever the thought says of it.

    Raises: Refused: the lineage has a better class.
    """
    thought = transaction.thought
    for told in thought.provenance.get("recalled", ()):
        found = transaction.root[roots.DOCUMENTS].get(told.get("memory", ""))
        trust = told["trust"] if found is None else least_trust(told["trust"], own_slots(found)["trust"])
        if TRUST.index(thought.lineage_trust) < TRUST.index(trust):
            what = f"the thought's lineage has the class {thought.lineage_trust!r}, and it recalled {trust!r}"
            raise Refused(what, remedy="Please report this.")


def makes_no_behaviour(transaction: MissionTransaction) -> None:
    """Check that a thought neither makes nor changes a method or an intent.

    Behaviour comes in by `methods.install` alone, which refuses code that the guardian did not accept, code without
    provenance, and code from outside that nobody approved. A thought that wrote behaviour itself would evade these
    checks.

    Raises: Refused: the thought did.
    """
    for changed in transaction.changed_objects():
        slots = own_slots(changed) if isinstance(changed, UvmObject) else {"": changed}
        held = {slot: value for slot, value in slots.items() if isinstance(value, Method | Intent)}
        if not held:
            continue
        before = (transaction.committed_slots(changed) if isinstance(changed, UvmObject) else slots) or {}
        for slot, value in held.items():
            if value._p_jar is None or value._p_changed or before.get(slot) is not value:
                what = "a method" if isinstance(value, Method) else "an intent"
                raise Refused(f"a thought was to make {what} by itself", remedy="Please report this.")


def leaves_the_kernels_slots(transaction: MissionTransaction) -> None:
    """Veto a thought that changes the parents or a codex or kernel slot of any object but itself.

    The guardian refuses a method that would, and so does the write buffer; this check holds for every other writer.
    """
    for changed in transaction.changed_objects():
        if not isinstance(changed, UvmObject) or changed is transaction.thought:
            continue
        before = transaction.committed_slots(changed)
        taken = [] if before is None else protected_changes(before, vars(changed))
        if taken:
            what = f"a thought was to change {taken[0]!r} of {label(changed)}, which only the codex and the kernel do"
            raise Refused(what, remedy="Please report this.")


def keeps_the_budget(transaction: MissionTransaction) -> None:
    """Check that a thought took no more calls than its brief allows.

    A session makes no call beyond the budget; this check holds for a thought that came about in any other way. Tokens
    are not checked: the last call that the budget allows may end beyond it.

    Raises: Refused: it took more.
    """
    brief, _, _ = transaction.root[roots.MISSIONS][transaction.mission]
    limit = (brief.value.get("budget") or {}).get("calls")
    calls = own_slots(transaction.thought).get("cost", {}).get("calls", 0)
    if limit and calls > limit:
        what = f"the thought took {calls} calls, and its budget is {limit}"
        raise Refused(what, field="budget.calls", remedy="Please report this.")


def keeps_undone_missions_out(transaction: MissionTransaction) -> None:
    """Check that nothing that a thought was shown came of a mission that is undone, and that this stays so.

    The status of each such mission is guarded, and of those that a method which ran was made for: the commit meets a
    conflict if one is undone in between, and the thought is then thought again without it.

    Raises: Refused: a mission that it builds on is undone.
    """
    root, thought = transaction.root, transaction.thought
    for name in dict.fromkeys(list_builds_on(root, transaction.mission, thought)):
        record = roots.find_record(root, name)
        if name != transaction.mission and record is not None and record.status.word == "undone":
            what = f"it builds on {name}, which is undone"
            raise Refused(what, field="mission", remedy=f"Ask again, or bring it back: `batos redo {name}`.")
        guard_missions(transaction, [name])
    for key, revision in list_methods_run(own_slots(thought)["provenance"]):
        lineage = root[roots.METHODS].get(key)
        method = None if lineage is None else lineage.revisions.get(revision)
        guard_missions(transaction, [] if method is None else method.provenance.get("missions", ()))


def guard_missions(transaction: MissionTransaction, missions: Iterable[str]) -> None:
    """Let the commit meet a conflict if one of these missions, but its own, is undone before it."""
    for name in missions:
        record = roots.find_record(transaction.root, name)
        if name != transaction.mission and record is not None:
            transaction.guard(record.status)


def rests_on_what_stands(transaction: MissionTransaction) -> None:
    """Guard the objects whose slots a thought's methods read: the commit meets a conflict if one is changed before it.

    The thought is then thought again, and only calls whose prompts changed are made.
    """
    changed = {id(each) for each in transaction.changed_objects()}
    read = own_slots(transaction.thought)["provenance"].get("read", ())
    for oid in dict.fromkeys(each["oid"] for each in read):
        holder = by_name(transaction.root, oid)
        if holder is not None and id(holder) not in changed:
            transaction.guard(holder)


VOTERS = (
    has_provenance,
    has_trust,
    keeps_the_least_trust,
    makes_no_behaviour,
    leaves_the_kernels_slots,
    keeps_the_budget,
    keeps_undone_missions_out,
    rests_on_what_stands,
)


def name_conflict(image: LivingImage, error: ConflictError) -> dict[str, str]:
    """Return the object for which a commit lost a race, and the mission that changed it ("": none did, or unknown)."""
    unknown = {"object": "an object that the storage did not name", "by": ""}
    try:
        with image.snapshot() as root:
            found = roots.connection_of(root).get(error.oid) if error.oid else None
            if found is None:
                return unknown
            what = f"a record ({type(found).__name__})"
            name = roots.name_of_object(root, found) if isinstance(found, UvmObject) else what
            return {"object": name, "by": newest_writing(root, found).note}
    except (
        POSError,
        NotImplementedError,
    ):  # it is gone, or the storage has no history: the mission goes on all the same
        return unknown


@dataclass(slots=True)
class _Line:
    """The missions that hold or wait for an object; `lock` serves them in the order in which they came."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    missions: int = 0


class CommitTurns:
    """The turns of one process's missions, by the ids of the objects that they change.

    A mission takes the turns of its objects before it commits, and keeps them until it has ended. If its commit meets
    another's, it thinks again while it has the turns, so that no other mission of this process changes what it builds
    on. Without that, of N missions that change one object each would think again up to N - 1 times.
    """

    def __init__(self) -> None:
        self._lines: dict[bytes, _Line] = {}

    def __len__(self) -> int:
        """Return the number of objects whose turn a mission has or waits for."""
        return len(self._lines)

    @contextmanager
    def place(self) -> Iterator[CommitPlace]:
        """Return a mission's place; its turns are given back at the end."""
        place = CommitPlace(self._lines)
        try:
            yield place
        finally:
            place.leave()


class CommitPlace:
    """The turns that one mission has."""

    def __init__(self, lines: dict[bytes, _Line]) -> None:
        self._lines = lines
        self._held: list[bytes] = []

    async def take(self, objects: Collection[bytes]) -> None:
        """Wait for the turns of these objects, beside those that the mission has.

        If it lacks one, it gives all back and takes them anew in the order of their ids, so that no two missions wait
        for each other. A cancelled wait takes nothing.
        """
        if all(oid in self._held for oid in objects):
            return
        wanted = sorted({*self._held, *objects})
        self.leave()
        try:
            for oid in wanted:
                await self._take_one(oid)
        except BaseException:
            self.leave()
            raise

    async def _take_one(self, oid: bytes) -> None:
        line = self._lines.setdefault(oid, _Line())
        line.missions += 1
        try:
            await line.lock.acquire()
        except BaseException:
            self._leave_line(oid, line)
            raise
        self._held.append(oid)

    def leave(self) -> None:
        """Give all turns back."""
        while self._held:
            oid = self._held.pop()
            line = self._lines[oid]
            line.lock.release()
            self._leave_line(oid, line)

    def _leave_line(self, oid: bytes, line: _Line) -> None:
        line.missions -= 1
        if not line.missions:
            del self._lines[oid]
