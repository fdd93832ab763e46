"""The clock of a file system, which goes in ticks: two changes within one of them have the same time."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.waiting import wait_until

HOUR_NS = 3_600 * 10**9


def wait_for_a_tick(path: Path) -> None:
    """Wait until a change of the file would have another time than its last one."""
    last, probe = path.stat().st_ctime_ns, path.with_name("probe")

    def has_ticked() -> bool:
        probe.write_bytes(b"")
        probe.chmod(0o600)
        return probe.stat().st_ctime_ns > last

    wait_until(has_ticked, "a tick of the file system's clock")
    probe.unlink()


def change_just_now(path: Path) -> None:
    """Give a file a time of change that is not over yet, however long whoever looks at it takes."""
    later = time.time_ns() + HOUR_NS
    os.utime(path, ns=(later, later))
