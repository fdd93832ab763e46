"""The folder that holds everything: its place, and that nobody else may write in it."""

from __future__ import annotations

import hashlib
import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from batos.protocol.errors import ConfigError

#: The variable by which a person trusts a home whose owner or rights say nothing.
TRUSTED: Final = "BATOS_TRUST_HOME"
_NO_OWNERS: Final = f"Where the file system has no such rights, and only you reach it: {TRUSTED}=1."
#: The folder of the package that runs.
PACKAGE: Final = Path(__file__).resolve().parent


def find_home(environ: Mapping[str, str], named: str | Path | None, package: Path = PACKAGE) -> tuple[Path, str]:
    """Return the home, and where that came from: `named` (the flag), the environment, or a default.

    Raises: ConfigError: the home is below that of a user whom this machine does not know.
    """
    if named:
        return Path(named).absolute(), "flag"
    if environ.get("BATOS_HOME"):
        return _expand_path(environ["BATOS_HOME"], "BATOS_HOME").absolute(), "BATOS_HOME"
    try:
        checkout = checkout_folder(Path.cwd(), package)
    except OSError:  # a shell may stand in a folder that is gone
        checkout = None
    if checkout is not None:
        return checkout / ".batos", "default (in a checkout)"
    return _expand_path(environ.get("XDG_DATA_HOME") or "~/.local/share", "XDG_DATA_HOME") / "batos", "default"


def _expand_path(path: str, variable: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(
            f"home (from {variable}): {path!r} names the home of a user whom this machine does not know",
            field="home",
            remedy="Name a folder with --home or BATOS_HOME.",
        ) from error


def checkout_folder(here: Path, package: Path = PACKAGE) -> Path | None:
    """Return the folder at or above `here` that is the checkout of the package; None outside of that.

    A folder that only says it is one, in a pyproject.toml of ours, is none: anybody may have put that there.
    """
    for folder in (here, *here.parents):
        project = folder / "pyproject.toml"
        if project.is_file():
            is_ours = package.is_relative_to(folder.resolve()) and _project_name(project) == "batos"
            return folder if is_ours else None
    return None


def _project_name(project: Path) -> str:
    try:
        found = tomllib.loads(project.read_text(encoding="utf-8")).get("project")
    except (OSError, ValueError, RecursionError):
        return ""
    return str(found.get("name", "")) if isinstance(found, dict) else ""


def check_own(home: Path, environ: Mapping[str, str], user: int | None = None) -> None:
    """Raise ConfigError for a home that belongs to another user than `user` or root, or that others may write.

    Without `user` it is the user of this process. Whoever writes in a home decides where prompts go, and what is done
    in the name of the user who runs this. A file system that knows no owners can be trusted by the environment.
    """
    if environ.get(TRUSTED) == "1":
        return
    try:
        found = home.stat()
    except (OSError, ValueError):  # it is made later, or cannot be: whoever makes it says why
        return
    user = os.geteuid() if user is None else user
    if found.st_uid not in (0, user):
        raise ConfigError(
            f"the home {home} belongs to the user {found.st_uid}, not to {user}, who runs this",
            field="home",
            remedy=f"Run this as its owner, or name a folder of your own with --home or BATOS_HOME. {_NO_OWNERS}",
        )
    if stat.S_ISDIR(found.st_mode) and found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"others may write in the home {home}",
            field="home",
            remedy=f"See that all in it is yours, then take their right: chmod go-w {home}. {_NO_OWNERS}",
        )


def unit_name(home: Path) -> str:
    """Return the name of a home's server among the units of systemd or launchd."""
    return f"batos-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}"


def starts_with_machine(home: Path, environ: Mapping[str, str]) -> bool:
    """Test if something starts a home's server after a restart of the machine: a unit of its user, or a container's."""
    config = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    units = (
        config / "systemd" / "user" / f"{unit_name(home)}.service",
        Path.home() / "Library" / "LaunchAgents" / f"org.{unit_name(home)}.plist",
    )
    return any(each.exists() for each in (*units, Path("/.dockerenv"), Path("/run/.containerenv")))
