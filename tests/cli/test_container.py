"""The container's entrypoint as a plain process: from an empty volume to a server that a key opens, and down."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.ports import free_port
from tests.cli.processes import User
from tests.composing import ROOT
from tests.waiting import HANG, wait_until

ENTRYPOINT = ROOT / "scripts" / "container.sh"


@pytest.fixture
def environ(tmp_path: Path, ollama: str) -> dict[str, str]:
    """What docker-compose.yml gives the container, with a volume of the test's and ports that are free."""
    batos = Path(sys.executable).parent
    return {
        **User(tmp_path / "data", ollama).environ(),
        "PATH": f"{batos}{os.pathsep}{os.environ['PATH']}",
        "BATOS_GENESIS": "auto",
        "BATOS_BIND": f"tcp://0.0.0.0:{free_port()}",
        "BATOS_EVENTS": f"tcp://0.0.0.0:{free_port()}",
    }


@contextmanager
def container(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The entrypoint with no argument, as the image runs it with its default one."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen([ENTRYPOINT], env=environ, text=True, **pipes) as process:  # type: ignore[call-overload]  # pipes
        try:
            yield process
        finally:
            process.kill()


def wait_until_healthy(process: subprocess.Popen[str], user: User, *, founded: bool = False) -> None:
    """Until it listens; `founded`: until the health check is content, after its own genesis."""
    wait_until(lambda: process.poll() is not None or _told(user, founded=founded), "a server that answers")
    assert process.poll() is None, (process.returncode, process.communicate())


def _told(user: User, *, founded: bool) -> bool:
    if founded:
        return user.run("status", "--ready", "--json").code == 0
    told = user.run("status", "--json")
    return told.code == 0 and told.document["data"]["server"] is not None


def test_from_an_empty_volume_to_a_client_and_down(environ: dict[str, str], ollama: str, tmp_path: Path) -> None:
    """Starting is all: keys are made in the volume, the server founds itself, a client's key opens it from another
    home and is answered, SIGTERM ends it in order."""
    inside = User(tmp_path / "data", ollama)
    with container(environ) as process:
        wait_until_healthy(process, inside)
        made = inside.run("keys", "new", "laptop", "--out", "-", environ={"BATOS_BIND": environ["BATOS_BIND"]})
        assert made.code == 0, made.err
        (key := tmp_path / "laptop.batos-key.json").write_text(made.out, encoding="utf-8")
        outside = {"BATOS_SERVER": str(key)}
        host = replace(inside, home=tmp_path / "host")
        wait_until_healthy(process, inside, founded=True)
        asked = host.run("ask", "--json", "--effort", "reflex", "Why does it rain?", environ=outside)
        assert asked.document["data"]["status"] == "done"
        assert not (host.home / "live_image.fs").exists()
        process.send_signal(signal.SIGTERM)
        told, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0
    assert asked.document["data"]["id"] in (lines := (inside.home / "logs" / "batos.log").read_text(encoding="utf-8"))
    assert "rain" not in lines, "what was asked is the image's to tell"
    assert told.startswith("First start: the keys of this server are made in ")
    assert "docker compose exec -T batos batos keys new laptop --out - >laptop.batos-key.json" in told
    assert "There was no genesis yet: it begins now" in told
    for path in (inside.home, *inside.home.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    assert not (inside.home / "server.json").exists()


def test_a_later_start_keeps_the_keys(environ: dict[str, str], ollama: str, tmp_path: Path) -> None:
    """What a client was given opens the next start too, after a kill as well."""
    inside = User(tmp_path / "data", ollama)
    keys = []
    for _ in range(2):
        with container({**environ, "BATOS_GENESIS": "asked"}) as process:
            wait_until_healthy(process, inside)
            keys.append((inside.home / "keys" / "server.json").read_bytes())
            process.kill()
            told, _ = process.communicate(timeout=HANG)
    assert keys[0] == keys[1]
    assert told.startswith("The keys of this server are in ")


def test_another_verb_is_run_as_it_is(environ: dict[str, str]) -> None:
    """`docker compose run batos VERB` needs no word of the entrypoint's."""
    done = subprocess.run([ENTRYPOINT, "--version"], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("batos ")


def test_a_volume_that_is_not_ours_is_told(environ: dict[str, str], tmp_path: Path) -> None:
    """A folder that cannot be written is named with what to do, before anything is tried."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    there = {**environ, "BATOS_HOME": str(tmp_path / "file" / "data")}
    done = subprocess.run([ENTRYPOINT, "serve"], env=there, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{tmp_path}/file/data cannot be written" in done.stderr
    assert "BATOS_UID" in done.stderr


def test_it_needs_no_bash() -> None:
    """Its shell is the one that every image has."""
    assert ENTRYPOINT.read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    assert os.access(ENTRYPOINT, os.X_OK)
    dash = shutil.which("dash") or "sh"
    assert subprocess.run([dash, "-n", ENTRYPOINT], check=False).returncode == 0
