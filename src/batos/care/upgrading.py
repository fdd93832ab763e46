"""The upgrade of a home's image: the backup that is made before it, and what it would do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from batos.care import backups
from batos.config import Settings
from batos.image import evolving, roots
from batos.image.evolving import Upgrading, tell_log
from batos.image.ids import utc_now
from batos.image.readable import open_read_only
from batos.image.transactions import snapshot
from batos.protocol.errors import OldFormat

#: The folder in the home with the backup that an upgrade made; the format that it leads to stands behind it.
BEFORE: Final = "before-format-"


def backup_folder(home: Path) -> Path:
    """Return the folder in which an upgrade to this version's format keeps its backup."""
    return home / f"{BEFORE}{roots.FORMAT}"


def home_upgrading(settings: Settings, folder: Path | None = None, tell: Callable[[str], None] = tell_log) -> Upgrading:
    """Return how a home's image is upgraded: behind a backup, in a folder of the home if none is named."""

    async def make_backup(number: int) -> str:
        if settings.image or settings.journal:
            remedy = "Back up image and journal by the tools of their storage, then run `batos upgrade --no-backup`."
            raise OldFormat(number, roots.FORMAT, remedy=remedy)
        place = folder or backup_folder(settings.home)
        tell(f"format {number}: a backup is made in {place}")
        return await asyncio.to_thread(_back_up, settings.home, place, utc_now)

    return Upgrading(make_backup, tell)


def _back_up(home: Path, folder: Path, clock: Callable[[], datetime]) -> str:
    backups.make_backup(home, folder, full=False, clock=clock, beside=True)
    for path in _files(folder):
        path.chmod(0o700 if path.is_dir() else 0o600)
    return str(folder)


def _files(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.rglob("*")


def plan_upgrade(settings: Settings, folder: Path | None) -> dict[str, Any]:
    """Tell what an upgrade would do; nothing is changed. Raises NewFormat: a newer version wrote the image."""
    with open_read_only(settings.image_uri, settings.journal) as faces:
        faces.pair()
        with snapshot(faces.image) as root:
            lacking = evolving.pending(root)
            kept = root.get(roots.GENESIS, {})
            where = str(folder or backup_folder(settings.home)) if lacking else ""
            if evolving.UNDER_WAY in kept:
                where = kept[evolving.UNDER_WAY]["backup"]
            return {
                "format": evolving.format_of(root),
                "known": roots.FORMAT,
                "steps": [{"format": each.number, "what": each.what} for each in lacking],
                "backup": where,
                "upgrades": [dict(each) for each in kept.get(evolving.UPGRADES, ())],
            }
