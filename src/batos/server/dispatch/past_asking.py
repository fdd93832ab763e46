"""The verb `submit` about the past: a mission of a copy of the image as it was, which is thrown away when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from batos.brief import File
from batos.errors import BriefError
from batos.events import Events
from batos.genesis.past_reconciler import PastMind
from batos.history import past_questions
from batos.history.moments import Moment
from batos.image.past import newest_commit
from batos.server.dispatch.event_relay import EventRelay
from batos.server.dispatch.reads import Reader
from batos.uvm import UVM, open_past

#: Copies of the image that are open at once.
MOST_OPEN: Final = 2
_ENDED: Final = frozenset({"done", "failed", "cancelled", "parked", "undone"})


#: Keeps what a mission of a copy of the mind would change.
KeepDream: TypeAlias = Callable[[UVM, str, Moment], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question to a moment (None: the newest commit), with its files; `user` if only theirs is to be found."""

    as_of: str | None
    brief: Mapping[str, Any]
    files: Sequence[File] = ()
    user: str | None = None
    #: The mind that the copy is to be, where it is not that of then.
    mind: PastMind | None = None
    #: Prepares the copy before it is asked.
    prepare: Callable[[UVM], Awaitable[None]] | None = None


class PastQuestions:
    """Asks the mind as it was."""

    def __init__(self, today: UVM, reader: Reader) -> None:
        self._today = today
        self._reader, self._past = reader, reader.past
        self._turns = asyncio.Semaphore(MOST_OPEN)
        self._running: dict[str, UVM] = {}
        self._asking: set[asyncio.Future[Any]] = set()

    async def ask(self, question: PastQuestion, told: EventRelay, then: KeepDream | None = None) -> dict[str, Any]:
        """Ask a question of a moment, and return the mission's document. Its end is waited for: it is kept nowhere.

        `then` is called with the copy of the mind, the mission and its moment when that is done.

        Raises: BriefError: nobody waits for the end. PackedAway, NotFound: as of a moment that cannot be asked.
        """
        if not told.follow:
            raise BriefError(
                "a question about the past is waited for", field="args.follow", remedy="Send follow: true."
            )
        asking = asyncio.ensure_future(self._ask(question, told, then))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        try:
            return await asking
        finally:
            asking.cancel()
            await asyncio.wait({asking})  # the copy is closed before the image is

    async def _ask(self, question: PastQuestion, told: EventRelay, then: KeepDream | None) -> dict[str, Any]:
        if question.as_of is None:
            moment = Moment(await asyncio.to_thread(newest_commit, self._today.image.db))
        else:
            moment = await self._reader.find_moment(question.as_of, question.user)
        events = Events()
        async with self._turns, open_past(self._today, moment.tid, events, question.mind) as copy:
            if question.prepare is not None:
                await question.prepare(copy)
            told.listen(events)
            try:
                mission = await copy.missions.submit(question.brief, question.files)
                self._running[mission], self._past.running[mission] = copy, copy.readings
                said = {"as_of": moment.as_dict()}
                begun = {**await asyncio.to_thread(copy.readings.mission, mission), **said}
                await past_questions.keep(self._today.journal, past_questions.begun_report(begun))
                told.acknowledge(mission)
                await copy.missions.begin(mission)
                ended = {**await copy.missions.wait_for_end(mission), **said}
                if ended["status"] not in _ENDED:
                    await copy.missions.cancel(mission)
                    ended = past_questions.unended_report(ended)
                if then is not None and ended["status"] == "done":
                    await then(copy, mission, moment)
                await past_questions.keep(self._today.journal, ended)
                return ended
            finally:
                told.leave()
                for name in [name for name, each in self._running.items() if each is copy]:
                    del self._running[name], self._past.running[name]

    async def aclose(self) -> None:
        """Leave every question that is being asked; the journal says that it was not answered."""
        for each in self._asking:
            each.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)

    async def cancel(self, mission: str, user: str | None) -> dict[str, Any] | None:
        """Cancel a question to the past; None: this user asks none of this id now."""
        copy = self._running.get(mission)
        if copy is None or await asyncio.to_thread(self._past.find_question, mission, user) is None:
            return None
        return await copy.missions.cancel(mission)
