"""A mission's transaction: a commit cancelled at any moment happens once or not at all, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.image.open_image import answer, brief, dump, open_image, thought_in
from tests.waiting import HANG
from ZODB.POSException import ConflictError

from batos.events import Events
from batos.image.filestorage import SoundFileStorage
from batos.image.ids import tid_text
from batos.image.image import LivingImage
from batos.image.transactions import MissionTransaction, Voter
from batos.objects.prototype import own_slots
from batos.protocol.errors import ImageError, InternalError, Refused


class GatedStorage(SoundFileStorage):
    """A storage whose vote waits until the gate is open."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.voting = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def tpc_vote(self, transaction: Any) -> Any:
        """Say that a vote has come, and wait."""
        self.voting.set()
        assert self.gate.wait(HANG)
        return super().tpc_vote(transaction)


@dataclass
class Stage:
    """An image with one accepted mission, and what happened to its transaction."""

    image: LivingImage
    storage: GatedStorage
    mission: str
    opened: list[MissionTransaction] = field(default_factory=list)

    async def think(self) -> bytes:
        """Open the mission's transaction, write an answer, commit."""
        with self.image.transaction(self.mission) as transaction:
            self.opened.append(transaction)
            return await transaction.commit(answer(thought_in(self.image, transaction, self.mission)))

    @property
    def answers(self) -> int:
        """How many commits have written the thought since it was accepted."""
        with self.image.snapshot() as root:
            thought = self.image.find(root, self.mission)[2]
            assert ("answer" in own_slots(thought)) == (self.opened[-1].committed)
            assert thought._p_oid is not None
            return len(self.image.db.history(thought._p_oid, size=99)) - 1

    def is_given_back(self) -> bool:
        """Whether the connection is closed and no transaction is open on it."""
        return all(each._connection.opened is None and not each._has_transaction() for each in self.opened)


@asynccontextmanager
async def staged(home: Path) -> AsyncIterator[Stage]:
    made: list[GatedStorage] = []

    def factory() -> GatedStorage:
        made.append(GatedStorage(str(home / "live_image.fs")))
        return made[-1]

    async with open_image(home, image_factory=factory) as image:
        stage = Stage(image, made[0], await image.accept(brief()))
        try:
            yield stage
        finally:
            made[0].gate.set()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """An image whose commits can be held up."""
    async with staged(tmp_path) as made:
        yield made


async def test_a_commit_is_durable_and_visible_when_it_returns(stage: Stage) -> None:
    """Nobody sees the answer before the commit; afterwards everybody does, once; its id is the thought's serial."""
    serial = await stage.think()
    assert stage.answers == 1
    assert stage.opened[0].serial == serial
    with stage.image.snapshot() as root:
        thought = stage.image.find(root, stage.mission)[2]
        thought._p_activate()
        assert thought._p_serial == serial
    assert stage.is_given_back()


@pytest.mark.parametrize("times", [1, 3])
async def test_a_commit_under_way_is_waited_for_by_a_cancelled_mission(stage: Stage, times: int) -> None:
    """However often it is cancelled during its commit, a mission commits once, gives back, and then is cancelled."""
    stage.storage.voting.clear()
    stage.storage.gate.clear()
    task = asyncio.create_task(stage.think())
    await asyncio.to_thread(stage.storage.voting.wait)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
        assert not stage.is_given_back(), "its connection still belongs to the thread"
    stage.storage.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.answers == 1
    assert stage.is_given_back()


async def test_a_cancellation_before_the_commit_begins_is_waited_out(stage: Stage) -> None:
    """A commit that waits in the thread's queue happens all the same, once, and then the mission is cancelled."""
    busy = threading.Event()
    stage.image.thread.submit(lambda: busy.wait(HANG))
    task = asyncio.create_task(stage.think())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    busy.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.opened[0].committed
    assert stage.answers == 1
    assert stage.is_given_back()


async def interfered(stage: Stage, *, cancel: bool) -> asyncio.Task[bytes]:
    """A mission whose thought somebody else has changed while it waited for the commit thread."""
    busy = threading.Event()
    stage.image.thread.submit(lambda: busy.wait(HANG))

    def change(root: Any) -> None:
        stage.image.find(root, stage.mission)[2].mission = "changed"

    other = asyncio.create_task(stage.image.writer.apply(change))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task = asyncio.create_task(stage.think())
    await asyncio.sleep(0)
    if cancel:
        task.cancel()
        await asyncio.sleep(0)
    busy.set()
    await asyncio.wait({task, other})
    return task


async def test_a_conflict_commits_nothing(stage: Stage) -> None:
    """A mission whose thought was changed by another fails with the conflict, and the next one can commit."""
    task = await interfered(stage, cancel=False)
    with pytest.raises(ConflictError):
        await task
    assert not stage.opened[0].committed
    assert stage.answers == 1, "the other's change alone"
    assert stage.is_given_back()
    await stage.think()
    assert stage.answers == 2


async def test_a_cancelled_conflict_is_a_cancellation(stage: Stage) -> None:
    """When a cancelled commit conflicts, the cancellation is raised, because of the conflict; nothing is committed."""
    task = await interfered(stage, cancel=True)
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    assert isinstance(cancelled.value.__cause__, ConflictError)
    assert not stage.opened[0].committed
    assert stage.is_given_back()


async def test_other_connections_work_while_a_commit_is_held_up(stage: Stage) -> None:
    """The loop reads and the mission's snapshot stays whole while the commit thread waits in the storage."""
    stage.storage.voting.clear()
    stage.storage.gate.clear()
    task = asyncio.create_task(stage.think())
    await asyncio.to_thread(stage.storage.voting.wait)
    with stage.image.snapshot() as root:
        assert "answer" not in own_slots(stage.image.find(root, stage.mission)[2])
    stage.storage.gate.set()
    await task


def write_and_leave(stage: Stage, error: BaseException, *, doomed: bool) -> None:
    """Change much in a mission's transaction, then leave it by an error."""
    with stage.image.transaction(stage.mission) as transaction:
        thought = answer(thought_in(stage.image, transaction, stage.mission))
        thought.extra = transaction.new(thought.clone())
        transaction.root["missions"]["m-x"] = thought.extra
        if doomed:
            transaction.doom()
            thought.after = "still works"
        raise error


@pytest.mark.parametrize("error", [Refused("no"), ZeroDivisionError("no"), asyncio.CancelledError()], ids=repr)
@pytest.mark.parametrize("doomed", [False, True])
async def test_what_is_not_committed_leaves_no_trace(stage: Stage, error: BaseException, doomed: bool) -> None:
    """Whatever a thought wrote, after any way out every record of the database is byte for byte as before."""
    before = dump(stage.image)
    with pytest.raises(type(error)):
        write_and_leave(stage, error, doomed=doomed)
    assert dump(stage.image) == before
    with stage.image.snapshot() as root:
        assert "m-x" not in root["missions"]


async def test_a_doomed_thought_is_never_committed(stage: Stage) -> None:
    """Committing after doom is refused."""
    before = dump(stage.image)
    with stage.image.transaction(stage.mission) as transaction:
        thought = answer(thought_in(stage.image, transaction, stage.mission))
        transaction.doom()
        with pytest.raises(InternalError, match="doomed"):
            await transaction.commit(thought)
    assert dump(stage.image) == before


async def voted(stage: Stage, *voters: Voter, **slots: Any) -> None:
    """A commit of a thought with some slots changed, with more voters."""
    with stage.image.transaction(stage.mission) as transaction:
        transaction.watch(voters)
        stage.opened.append(transaction)
        thought = answer(thought_in(stage.image, transaction, stage.mission))
        for name, value in slots.items():
            setattr(thought, name, value)
        await transaction.commit(thought)


@pytest.mark.parametrize(
    "slots",
    [
        {"provenance": {}},
        {"provenance": {"journal": [], "models": {}, "methods": [], "recalled": []}},
        {"trust": "user", "lineage_trust": "model"},
        {"trust": "divine"},
        {"trust": "tool", "lineage_trust": "model"},
    ],
)
async def test_a_veto_leaves_no_trace(stage: Stage, slots: dict[str, Any]) -> None:
    """A thought without provenance, or trusted more than its lineage, fails; every record is as before."""
    before = dump(stage.image)
    with pytest.raises(Refused):
        await voted(stage, **slots)
    assert dump(stage.image) == before
    assert stage.is_given_back()


async def test_dooming_in_a_hook_is_a_veto_too(stage: Stage) -> None:
    """ZODB would commit a transaction that is doomed while its hooks run; here nothing is committed."""
    before = dump(stage.image)
    with pytest.raises(InternalError, match="doomed"):
        await voted(stage, lambda transaction: transaction.doom())
    assert dump(stage.image) == before


async def test_a_lineage_may_be_trusted_less_than_its_thought(stage: Stage) -> None:
    """The words are the model's, though a stranger's file is among what they were made from."""
    await voted(stage, trust="model", lineage_trust="external")
    assert stage.opened[0].committed


async def test_read_at_is_the_commit_that_the_snapshot_shows(stage: Stage) -> None:
    """It is the newest commit before the transaction began, and stays so while others commit."""
    with stage.image.transaction(stage.mission) as transaction:
        first = transaction.read_at
        assert first == stage.image.db.lastTransaction()
        await stage.image.accept(brief("another"))
        assert transaction.read_at == first < stage.image.db.lastTransaction()
    with stage.image.transaction(stage.mission) as transaction:
        assert transaction.read_at == stage.image.db.lastTransaction()


async def test_a_commit_and_an_abort_are_told(tmp_path: Path) -> None:
    """Each transaction ends in one event: txn.commit with its id, or txn.abort with why."""
    heard: list[tuple[str, dict[str, Any]]] = []
    events = Events(lambda name, keys: heard.append((name, dict(keys))), log=False)
    async with open_image(tmp_path, events=events) as image:
        mission = await image.accept(brief())
        with image.transaction(mission) as transaction:
            serial = await transaction.commit(answer(thought_in(image, transaction, mission)))
        with image.transaction(mission) as transaction:
            transaction.doom()
        with image.transaction(mission):
            pass
    # Commits of the two queues are told too, by the name of their database.
    own = [(event, keys) for event, keys in heard if keys.get("what") not in ("image", "journal")]
    assert dict(own)["txn.commit"].pop("seconds") > 0
    assert own == [
        ("mission.accepted", {"mission": mission, "user": "tester", "waiting": 1}),
        ("txn.commit", {"what": mission, "tid": tid_text(serial)}),
        ("txn.abort", {"what": mission, "reason": "doomed"}),
        ("txn.abort", {"what": mission, "reason": "left"}),
    ]


async def test_an_unreadable_disk_is_an_image_error(stage: Stage) -> None:
    """An OSError inside a transaction reaches the mission as one of our errors, with what the system said."""
    with pytest.raises(ImageError, match="Input/output"), stage.image.transaction(stage.mission):
        raise OSError(5, "Input/output error")
    assert stage.image.refusing is None


async def test_what_nobody_marked_is_forgotten_with_the_abort(stage: Stage) -> None:
    """A list that was changed in place without a mark is not seen by the mission that is given the connection next."""

    def put(root: Any) -> None:
        stage.image.find(root, stage.mission)[2].notes = ["kept"]

    await stage.image.writer.apply(put)

    def think(transaction: MissionTransaction) -> None:
        thought_in(stage.image, transaction, stage.mission).notes.append("never committed")
        raise Refused("no")

    with pytest.raises(Refused), stage.image.transaction(stage.mission) as transaction:
        think(transaction)
    with stage.image.transaction(stage.mission) as again:
        assert again._connection is transaction._connection
        assert thought_in(stage.image, again, stage.mission).notes == ["kept"]
