"""Folders that may be a stranger's: exports and backups hold files and folders, and nothing that leads elsewhere."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from batos.protocol.errors import BriefError

#: Settings that say where the mind lives, who reaches it and who thinks for it: a stranger's are not taken over.
_PLACES: Final = frozenset({"home", "image", "journal", "ollama_host", "bind", "events", "server"})


def check_plain(folder: Path) -> None:
    """Raise BriefError for a link, or what else is no file and no folder, in a folder that may be a stranger's.

    A copy of what a link leads to would bring any file of this machine into the home.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            what = f"{path} is a link, or no file"
            raise BriefError(what, field="folder", remedy="Take it out; exports and backups have plain files alone.")


def has_harmless_settings(path: Path) -> bool:
    """Test if a file of settings names no place: none of the mind, of its server, or of Ollama.

    No file is harmless; a file that cannot be read as settings is not.
    """
    try:
        return not path.exists() or _PLACES.isdisjoint(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return False
