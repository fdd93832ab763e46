"""Sealed figures: once a month the share of right answers to questions that no trial sees, with the values that act.

Nothing of a trial reads them: a figure by which a value is chosen is no measure of it any more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from statistics import fmean
from typing import Final

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.trial_nights import TrialParts
from batos.image import roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.trial_documents import SealedFigure
from batos.records.gold_items import GoldItem, ItemSplit

#: The time from the beginning of one round to that of the next.
_MONTH: Final = timedelta(days=30)
#: The use of the questions.
_USE: Final[ItemSplit] = "sealed"


def list_figures(root: Root) -> list[SealedFigure]:
    """Return the figure of each round that has ended, the newest first."""
    rounds = root.get(roots.SEALED)  # an older moment of the image has none
    ended = [] if rounds is None else [each for each in rounds.values() if each["ended"]]
    return [
        {"share": round(fmean(each["worths"].values()), 3), "questions": len(each["worths"]), "day": each["ended"][:10]}
        for each in reversed(ended)
    ]


def open_round(root: Root, now: datetime) -> str | None:
    """Return the round that goes on, or begin one a month after the last; None: none is due."""
    rounds = root[roots.SEALED]
    newest = rounds.maxKey() if rounds else ""
    if newest and not rounds[newest]["ended"]:
        return str(newest)
    if newest > iso(now - _MONTH):
        return None
    rounds[iso(now)] = PersistentMapping(ended="", worths=OOBTree())
    return iso(now)


def note_worth(root: Root, name: str, item: str, worth: float) -> None:
    """Note how right the answer to a question is; one that is noted already is not counted again."""
    root[roots.SEALED][name]["worths"].setdefault(item, worth)


class SealedQuestions:
    """Asks the sealed questions, as far as a beat may ask; the next beat goes on, also after a kill."""

    def __init__(self, parts: TrialParts) -> None:
        self._parts = parts

    def duty(self) -> Duty:
        """Return the duty of the heartbeat, which is looked at each day."""
        return Duty("sealed", self._mark, self.work)

    def _mark(self, root: Root) -> str:
        rounds = root[roots.SEALED]
        asked = len(rounds[rounds.maxKey()]["worths"]) if rounds else 0
        return f"{iso(self._parts.clock())[:10]} {len(rounds)} {asked} {len(self._parts.questions(root, _USE))}"

    async def work(self, allowance: Allowance) -> str:
        """Ask what the round of this month has not asked yet; return what was done."""
        now = self._parts.clock()
        if not allowance.may_ask() or not await self._parts.can_ask() or not await self._parts.read(self._list_all):
            return ""
        name = await self._parts.write(lambda root: open_round(root, now))
        if name is None:
            return ""
        asked = 0
        for item in await self._parts.read(lambda root: self._list_left(root, name)):
            reply = await self._parts.ask(item, (), allowance.go_on) if allowance.may_ask() else None
            if reply is None:
                return f"{asked} sealed questions"
            allowance.spend(reply.calls, reply.tokens)
            noting = partial(note_worth, name=name, item=item.id, worth=self._parts.worth(item, reply, ""))
            await self._parts.write(noting)
            asked += 1
        await self._parts.write(lambda root: root[roots.SEALED][name].update(ended=iso(self._parts.clock())))
        return f"{asked} sealed questions, and the figure of this month"

    def _list_all(self, root: Root) -> list[GoldItem]:
        return list(self._parts.questions(root, _USE))

    def _list_left(self, root: Root, name: str) -> list[GoldItem]:
        worths = root[roots.SEALED][name]["worths"]
        return [each for each in self._list_all(root) if each.id not in worths]
