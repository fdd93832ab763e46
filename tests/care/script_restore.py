"""A process that restores a backup and stops at a point, to be killed there: FOLDER HOME POINT."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

from tests.image.open_image import say

from batos.care import backups


def main(folder: Path, home: Path, point: str) -> None:
    """Restore the newest backup."""

    def stop(*_: Any) -> None:
        say(point)
        signal.pause()

    if point == "half settled":  # everything is in its place but the image
        replace = Path.replace
        Path.replace = lambda self, to: stop() if self.name == "live_image.fs" else replace(self, to)  # type: ignore[method-assign, assignment, return-value]
    else:
        setattr(backups, "_cut_after" if point == "database" else "_settle", stop)
    backups.restore_backup(folder, home, backups.find_backup(folder, None))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
