"""The user's unit: its text, what enables it, and what is told where that cannot be."""

from __future__ import annotations

import io
import json
import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.cli.processes import User

from batos import config
from batos.cli import user_unit
from batos.cli.verb_options import VerbCall
from batos.cli.verbs.serve import change_unit
from batos.client import addresses
from batos.client.addresses import ServerRecord
from batos.protocol.errors import Refused
from batos.terminal.console import Console

#: A home with what both forms of units have to escape.
NAME = 'ho me 100% $x "q" é'


class Commands:
    """Runs nothing, and keeps what was to be run; from `fails` on raises it."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.ran: list[str] = []
        self.fails = fails

    def __call__(self, command: Sequence[str]) -> None:
        """Keep it."""
        self.ran.append(" ".join(command))
        if self.fails is not None:
            raise self.fails


def installed(
    tmp_path: Path, run: Commands, *, takes_back: bool = False, as_json: bool = False
) -> tuple[dict[str, object] | str, Path]:
    """What `serve --install` tells of a home, and the file of its unit."""
    home = tmp_path / NAME
    home.mkdir(exist_ok=True)
    environ = {
        "BATOS_HOME": str(home), "XDG_CONFIG_HOME": str(tmp_path / "config"), "OLLAMA_HOST": "http://gpu:11434",
        "BATOS_USER": "ada", "BATOS_SERVER": "never", "SECRET": "of others",
    }  # fmt: skip
    loaded = config.load(environ, {"bind": "tcp://127.0.0.1:7000"})
    out = io.StringIO()
    called = VerbCall(loaded, Console(out, io.StringIO(), as_json, has_colour=False), quiet=False)
    assert change_unit(called, environ, run, takes_back=takes_back) == 0
    unit = user_unit.unit_of(user_unit.server_start(loaded, environ), environ)
    return json.loads(out.getvalue())["data"] if as_json else out.getvalue(), unit.path


linux_only = pytest.mark.skipif(sys.platform == "darwin", reason="a unit of systemd")


@linux_only
def test_a_unit_is_written_and_enabled_and_taken_back(tmp_path: Path) -> None:
    """Its file is its owner's alone, the server that it starts is a person's, and each step is told."""
    run = Commands()
    told, path = installed(tmp_path, run, as_json=True)
    assert told == {"unit": str(path), "installed": True, "changed": True}
    assert path.parent == tmp_path / "config" / "systemd" / "user"
    assert run.ran == ["systemctl --user daemon-reload", f"systemctl --user enable --now {path.name}"]
    assert path.stat().st_mode & 0o777 == 0o600
    lines = path.read_text(encoding="utf-8").splitlines()
    assert f'ExecStart="{sys.executable}" "-P" "-m" "batos" "serve" "--quiet"' in lines  # and not --started
    assert {'Environment="OLLAMA_HOST=http://gpu:11434"', 'Environment="BATOS_USER=ada"'} < set(lines)
    assert 'Environment="BATOS_BIND=tcp://127.0.0.1:7000"' in lines
    assert not any("BATOS_SERVER" in line or "SECRET" in line for line in lines)
    again = Commands()
    installed(tmp_path, again)
    assert again.ran == [f"systemctl --user disable --now {path.name}", *run.ran]
    back = Commands()
    assert installed(tmp_path, back, takes_back=True) == (f"{path} is gone, and its server has stopped.\n", path)
    assert back.ran == [f"systemctl --user disable --now {path.name}", "systemctl --user daemon-reload"]
    assert not path.exists()
    assert installed(tmp_path, Commands(), takes_back=True)[0] == f"There is no {path}.\n"


@linux_only
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_reads_the_unit_as_it_is_meant(tmp_path: Path) -> None:
    """It has nothing to say about it."""
    _, path = installed(tmp_path, Commands())
    ran = subprocess.run(
        ["systemd-analyze", "--user", "verify", path], capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if path.name in line]) == (0, [])


def test_launchd_reads_what_was_meant(tmp_path: Path) -> None:
    """An agent has the same command and environment, and is loaded for the user's own session."""
    home = tmp_path / NAME
    home.mkdir()
    start = user_unit.server_start(config.load({"BATOS_HOME": str(home)}), {})
    unit = user_unit.unit_of(start, {}, platform="darwin")
    agent = plistlib.loads(unit.content.encode())
    assert (agent["ProgramArguments"], agent["EnvironmentVariables"]) == (
        list(start.command),
        {"BATOS_HOME": str(home)},
    )
    assert (agent["RunAtLoad"], agent["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert unit.path.name == f"{agent['Label']}.plist"
    assert unit.enable == (("launchctl", "bootstrap", f"gui/{os.getuid()}", str(unit.path)),)
    assert unit.disable == (("launchctl", "bootout", f"gui/{os.getuid()}/{agent['Label']}"),)


def test_two_homes_have_two_units(tmp_path: Path) -> None:
    """Side by side."""
    names = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        names.add(user_unit.server_start(config.load({"BATOS_HOME": str(tmp_path / name)}), {}).name)
    assert len(names) == 2


@pytest.mark.parametrize(
    ("fails", "remedy"),
    [(FileNotFoundError("systemctl"), "at log-in run `batos serve`"), (Refused("no bus", remedy="Log in."), "Log in.")],
)
def test_where_it_cannot_be_enabled_nothing_is_left(tmp_path: Path, fails: Exception, remedy: str) -> None:
    """The error says what to do."""
    with pytest.raises(Refused) as caught:
        installed(tmp_path, Commands(fails))
    assert remedy in caught.value.remedy
    assert not any(path.is_file() for path in (tmp_path / "config").rglob("*"))


def test_a_server_that_a_person_runs_is_stopped_by_that_person(tmp_path: Path) -> None:
    """The unit's would end at once."""
    home, where, pid = tmp_path / NAME, "tcp://127.0.0.1:9", os.getpid()
    home.mkdir()
    born = addresses.birth_time(pid) or ""
    note = ServerRecord(pid, born, "2026-11-29T00:00:00Z", where, where, "plain", "plain", "0", "person")
    addresses.write_record(home, note)
    run = Commands()
    with pytest.raises(Refused, match=f"process {pid}"):
        installed(tmp_path, run)
    assert run.ran == []


def test_where_the_system_has_no_units_the_verb_says_so(user: User) -> None:
    """With the code of what is refused; both at once are no use."""
    ran = user.run("serve", "--install", "--json", environ={"PATH": "", "XDG_CONFIG_HOME": str(user.home / "config")})
    assert (ran.code, ran.document["error"]["code"]) == (4, "refused")
    assert "`batos serve`" in ran.document["error"]["remedy"]
    assert user.run("serve", "--install", "--uninstall").code == 2


def test_a_command_that_fails_is_told_with_what_it_said() -> None:
    """And what to do."""
    cases: list[tuple[Callable[[], None], str]] = [
        (lambda: user_unit.run_command(["sh", "-c", "echo first; echo no bus >&2; exit 1"]), "failed: no bus"),
        (lambda: user_unit.run_command(["false"]), "failed: exit code 1"),
    ]
    for case, said in cases:
        with pytest.raises(Refused, match=said) as caught:
            case()
        assert "loginctl enable-linger" in caught.value.remedy
    user_unit.run_command(["true"])
