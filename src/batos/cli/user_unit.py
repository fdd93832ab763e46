"""The user's unit: a file by which systemd or launchd starts a home's server at log-in, and again after a fault."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from batos import home_folder
from batos.config import LoadedSettings
from batos.home_folder import unit_name
from batos.protocol.errors import Refused

#: Runs a command to its end. Raises: FileNotFoundError: there is no such program. Refused: it failed.
Runner: TypeAlias = Callable[[Sequence[str]], None]
#: Variables that the server takes beside those of settings.
_KEPT: Final = ("LANG", "TZ", "PYTHONPATH", "BATOS_TRUST_HOME")
#: Settings of whoever asks a server, and the home, which is told first.
_LEFT: Final = frozenset({"home", "server"})
#: Seconds that running missions have to go back to the queue.
_STOPPING: Final = 120
_NEITHER: Final = (
    "Let what starts your programs at log-in run `batos serve`; until then verbs start a server by themselves."
)
_FAILED: Final = "Log in as the user itself (not by `su`), or let it run without a log-in: `loginctl enable-linger`."


@dataclass(frozen=True, slots=True)
class ServerStart:
    """The start of a home's server: its name among units, its command and environment, and the folder it works in."""

    name: str
    home: Path
    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path


@dataclass(frozen=True, slots=True)
class UserUnit:
    """A unit in the form of one system: its file, and the commands that enable it and take it back."""

    path: Path
    content: str
    enable: Sequence[Sequence[str]]
    disable: Sequence[Sequence[str]]
    #: The commands that let the system forget a file that is gone.
    forget: Sequence[Sequence[str]] = ()


def server_start(loaded: LoadedSettings, environ: Mapping[str, str]) -> ServerStart:
    """Return the start of a server with the settings that were given by variables and flags; files are read again."""
    home = loaded.settings.home
    kept = {"BATOS_HOME": str(home)} | {name: environ[name] for name in _KEPT if environ.get(name)}
    for name, source in loaded.sources.items():
        if name not in _LEFT and (source == "flag" or source in environ):
            variable = f"BATOS_{name.upper()}" if source == "flag" else source
            kept[variable] = str(getattr(loaded.settings, name)) if source == "flag" else environ[source]
    command = (sys.executable, "-P", "-m", "batos", "serve", "--quiet")
    return ServerStart(unit_name(home), home, command, kept, home / "server")


def unit_of(start: ServerStart, environ: Mapping[str, str], platform: str = sys.platform) -> UserUnit:
    """Return the unit of a server's start for this system."""
    if platform == "darwin":
        return _agent(start, Path.home())
    config = environ.get("XDG_CONFIG_HOME")
    return _service(start, Path(config) if config else Path.home() / ".config")


def install(unit: UserUnit, start: ServerStart, run: Runner) -> None:
    """Write a unit and enable it; the server runs from then on. Raises: Refused: it cannot be enabled."""
    is_new = not unit.path.exists()
    if not is_new:  # it may run with other settings
        with suppress(Refused):
            _run(run, unit.disable)
    try:
        start.folder.mkdir(mode=0o700, exist_ok=True)
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        home_folder.write(unit.path, unit.content)
    except OSError as error:
        what = f"{unit.path} cannot be written: {error.strerror}"
        raise Refused(what, remedy="Check the rights of its folder.") from error
    try:
        _run(run, unit.enable)
    except Refused:
        if is_new:
            unit.path.unlink(missing_ok=True)
        raise


def uninstall(unit: UserUnit, run: Runner) -> bool:
    """Return whether there was a unit: it is disabled, which stops its server, and its file removed."""
    if not unit.path.exists():
        return False
    _run(run, unit.disable)
    unit.path.unlink()
    _run(run, unit.forget)
    return True


def run_command(command: Sequence[str]) -> None:
    """Run a command to its end. Raises: FileNotFoundError: there is no such program. Refused: it failed."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if ran.returncode:
        said = (ran.stderr.strip() or ran.stdout.strip() or f"exit code {ran.returncode}").splitlines()[-1]
        raise Refused(f"`{' '.join(command)}` failed: {said}", remedy=_FAILED)


def _run(run: Runner, commands: Sequence[Sequence[str]]) -> None:
    for command in commands:
        try:
            run(command)
        except FileNotFoundError as error:
            what = f"there is no {command[0]}, and so neither systemd nor launchd that would start the server"
            raise Refused(what, remedy=_NEITHER) from error


def _service(start: ServerStart, config: Path) -> UserUnit:
    """Return a unit of systemd's user manager."""
    unit = f"{start.name}.service"
    lines = (
        "[Unit]",
        f"Description=BAT OS of {_plain(str(start.home))}",
        "",
        "[Service]",
        f"ExecStart={' '.join(_quote(each).replace('$', '$$') for each in start.command)}",
        *(f"Environment={_quote(f'{name}={value}')}" for name, value in start.environ.items()),
        f"WorkingDirectory={_plain(str(start.folder))}",
        "Restart=on-failure",
        "RestartSec=5",
        "# Wrong settings (2), and an image that is damaged or another process's (5), are not mended by another try.",
        "RestartPreventExitStatus=2 5",
        f"TimeoutStopSec={_STOPPING}",
        "NoNewPrivileges=true",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    )
    manager = ("systemctl", "--user")
    reload = (*manager, "daemon-reload")
    return UserUnit(
        config / "systemd" / "user" / unit,
        "\n".join(lines),
        enable=(reload, (*manager, "enable", "--now", unit)),
        disable=((*manager, "disable", "--now", unit),),
        forget=(reload,),
    )


def _plain(text: str) -> str:
    """Write a text for a whole line of a unit, in which a percent sign begins a specifier."""
    return text.replace("%", "%%").replace("\n", " ")


def _quote(text: str) -> str:
    """Write a text as one word of a unit."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{_plain(escaped)}"'


def _agent(start: ServerStart, user: Path) -> UserUnit:
    """Return an agent of launchd."""
    label, log = f"org.{start.name}", str(start.home / "logs" / "server.log")
    content = plistlib.dumps(
        {
            "Label": label,
            "ProgramArguments": list(start.command),
            "EnvironmentVariables": dict(start.environ),
            "WorkingDirectory": str(start.folder),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": _STOPPING,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        },
        sort_keys=False,
    )
    path = user / "Library" / "LaunchAgents" / f"{label}.plist"
    domain = f"gui/{os.getuid()}"
    return UserUnit(
        path,
        content.decode(),
        enable=(("launchctl", "bootstrap", domain, str(path)),),
        disable=(("launchctl", "bootout", f"{domain}/{label}"),),
    )
