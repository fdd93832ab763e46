"""Knowledge of a replay so far: which digest stands for which, and times of the recorded clock."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime

from wire_exchange import Exchange

_SLACK_S = 2.0


@dataclass(slots=True, repr=False)
class Ledger:
    """Digests that stand for one another, one to one, and the recorded clock (seconds since the epoch) if it is known.

    `known` digests follow from the blobs and the requests: those have to be the same. `began` is what the recorded
    clock first showed, `started` when the replay began.
    """

    known: frozenset[str] = frozenset()
    here: dict[str, str] = field(default_factory=dict)
    recorded: dict[str, str] = field(default_factory=dict)
    clock: float | None = None
    began: float | None = None
    started: float = field(default_factory=time.time)

    def stands_for(self, theirs: str, mine: str) -> bool:
        """Test if a digest of ours may stand where the recording has theirs; from then on it does."""
        if theirs == mine:
            mine = theirs
        elif self._follows(theirs) or self._follows(mine):
            return False
        return self.here.setdefault(theirs, mine) == mine and self.recorded.setdefault(mine, theirs) == theirs

    def _follows(self, digest: str) -> bool:
        return digest in self.known or (len(digest) == 12 and any(one.startswith(digest) for one in self.known))

    def trial(self) -> Ledger:
        """Return a copy that learns nothing for this one."""
        return replace(self, here=dict(self.here), recorded=dict(self.recorded))

    def slack(self) -> float:
        """Return how far two distances from now may differ (s): what was done a while ago was done at another time
        here.
        """
        lasted = 0.0 if self.clock is None or self.began is None else self.clock - self.began
        return _SLACK_S + max(lasted, time.time() - self.started)

    def set_clock(self, exchange: Exchange) -> None:
        """Set the recorded clock by an exchange: by the latest moment in it, else by how long it took."""
        moments = [
            seconds(found["created_at"])
            for found in exchange.reply.objects()
            if isinstance(found, dict) and isinstance(found.get("created_at"), str)
        ]
        if moments:
            self.clock = max(moments)
            self.began = self.began or self.clock
        elif self.clock is not None:
            self.clock += exchange.reply.ms / 1000


def seconds(moment: str) -> float:
    """Return a moment of the wire in seconds since the epoch."""
    return datetime.fromisoformat(moment).timestamp()
