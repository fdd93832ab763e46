"""An event loop whose clock stands still until a test moves it, so that no deadline depends on the machine's pace.

What waits for a time (`asyncio.sleep`, `tests.waiting`) never wakes there by itself: wait for events instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

from batos.loopwatch import WatchedLoop

P = ParamSpec("P")

HOUR = 3600.0
#: Rounds of the loop after which whoever's time is over has heard of it.
_ROUNDS = 10


class _StillLoop(WatchedLoop):
    """A watched loop with such a clock."""

    now = 1.0

    def time(self) -> float:
        return self.now


def on_still_clock(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on a loop of its own, in which `pass_time` works. Async fixtures belong to another loop."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        loop = _StillLoop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(test(*args, **kwargs))
        assert loop.blocked == []

    return run


async def pass_time(seconds: float) -> None:
    """Move the clock, and let whoever's time is over hear of it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, _StillLoop)
    loop.now += seconds
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
