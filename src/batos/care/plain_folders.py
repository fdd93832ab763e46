"""Folders that may be a stranger's: exports and backups hold files and folders, and nothing that leads elsewhere."""

from __future__ import annotations

from pathlib import Path

from batos.errors import BriefError


def check_plain(folder: Path) -> None:
    """Raise BriefError for a link, or what else is no file and no folder, in a folder that may be a stranger's.

    A copy of what a link leads to would bring any file of this machine into the home.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            what = f"{path} is a link, or no file"
            raise BriefError(what, field="folder", remedy="Take it out; exports and backups have plain files alone.")
