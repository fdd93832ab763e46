#!/usr/bin/env python3
"""Keep a small home made by the wheel of a commit, for the tests that open it with every later version.

    scripts/keep_image.py                        # a release: tests/images/VERSION, from the wheel of HEAD
    scripts/keep_image.py --commit C --name N    # any commit: tests/images/N

The wheel is built from the commit's own tree and put into an empty environment with that commit's constraints. Its
`batos` then lives a short life with its own emulator: missions, a conversation, memories, an attached file, methods, an
undone mission and an effect, as far as it has the verbs; at the end its server is killed in the middle of a mission.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
#: The files and folders of a home that are kept; keys, tokens, logs and locks are not.
KEPT: Final = ("live_image.fs", "journal.fs", "blobs", "codex", "batos.toml")
#: Milliseconds before each answer while the mission is killed, and the calls that have begun by then.
LATENCY, BEGUN = 700, 4

#: Run by the commit's own Python: packs both databases. The router's lessons are most of an image, and are learnt
#: again from the codex; they are left out.
PACK: Final = """
import sys, time, transaction
from ZODB.DB import DB
from ZODB.FileStorage import FileStorage
for name in ("live_image.fs", "journal.fs"):
    db = DB(FileStorage(f"{sys.argv[1]}/{name}"))
    with db.transaction() as connection:
        if "router" in connection.root():
            connection.root()["router"].clear()
    db.pack(time.time() + 1)
    db.close()
"""


class Home:
    """A home, and the `batos` of an environment that works on it."""

    def __init__(self, environment: Path, work: Path) -> None:
        self.environment, self.work = environment, work
        self.path = work / "home"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
        self.env = {**clean, "BATOS_HOME": str(self.path), "BATOS_USER": "keeper"}
        self.verbs = self.text("--help")

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a verb."""
        command = [str(self.environment / "bin" / "batos"), *arguments]
        done = subprocess.run(command, env=self.env, cwd=self.work, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise SystemExit(f"batos {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done

    def text(self, *arguments: str) -> str:
        """Return what a verb prints."""
        return self.run(*arguments).stdout

    def data(self, *arguments: str) -> dict[str, Any]:
        """Return the data of a verb's last document."""
        found: dict[str, Any] = json.loads(self.text(*arguments, "--json", "-q").splitlines()[-1])["data"]
        return found

    def has(self, verb: str) -> bool:
        """Test if this version has a verb."""
        return re.search(rf"^  {verb}\b", self.verbs, re.MULTILINE) is not None

    @contextmanager
    def emulator(self, *options: str) -> Iterator[Path]:
        """Run an emulator for the verbs, and yield its log."""
        log, out = self.work / "calls.ndjson", self.work / "emulator.out"
        log.unlink(missing_ok=True)
        command = [str(self.environment / "bin" / "batos"), "emulator", "--port", "0", "--log", str(log), *options]
        with out.open("w") as file, subprocess.Popen(command, env=self.env, stdout=file, stderr=file) as process:
            try:
                self.env["OLLAMA_HOST"] = wait_for(lambda: re.search(r"http://[\d.:]+\d", out.read_text()))[0]
                yield log
            finally:
                process.terminate()


def wait_for(found: Any, seconds: float = 60) -> Any:
    """Return the first answer of a function that is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise SystemExit("what was waited for did not come")


def install(commit: str, work: Path) -> Path:
    """Build the wheel of a commit, and return an environment that has nothing but it."""
    tree, environment = work / "tree", work / "environment"
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(tree, filter="data")
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(work / "dist"), str(tree)], check=True)
    (wheel,) = (work / "dist").glob("batos-*.whl")
    subprocess.run([*pip, "install", "-c", str(tree / "constraints.txt"), str(wheel)], check=True)
    return environment


def live(home: Home) -> str:
    """Let a home live its short life, and return the id of the mission in the middle of which it was killed."""
    text = home.work / "harbour.txt"
    story = (ROOT / "examples" / "harbour.txt").read_text()
    table = "\n".join(f"On day {day} the harbour took in ship number {day * 7}." for day in range(1, 1600))
    text.write_text(f"{story}\n{table}\n")  # more than 64 KiB, which makes it a blob
    with home.emulator():
        home.run("genesis", "-q")
        home.run("ask", "-q", "--file", str(text), "How many boats did the harbour hold at its height?")
        home.run("remember", "-q", "The lighthouse of the harbour is painted white.")
        for depth in (9, 11):
            home.run("remember", "-q", f"The harbour is {depth} m deep.", "--key", "harbour/depth")
        home.run("method", "make", "-q")
        home.run("ask", "-q", "--effort", "cycle", "--conversation", "new", "How deep is the harbour?")
        home.run("ask", "-q", "-c", "And which colour has its lighthouse?")
        if home.has("grants"):
            (home.work / "notes").mkdir()
            home.run("grants", "add", "file", str(home.work / "notes"))
            home.run("send", "-q", "notes", "append_", '"log.txt"', '"A ship came in."', "--grant", "notes")
        if home.has("undo"):
            home.run("ask", "-q", "What is a mole?")
            home.run("undo", "last", "-q")
    return kill(home)


def kill(home: Home) -> str:
    """Ask a server something and kill it once some calls are paid for; return the mission's id."""
    with home.emulator("--latency-ms", str(LATENCY)) as log:
        home.run("genesis", "-q")
        command = [str(home.environment / "bin" / "batos"), "serve", "-q"]
        with subprocess.Popen(command, env=home.env, start_new_session=True) as server:
            wait_for(lambda: home.run("status", "--ready", "-q", check=False).returncode == 0)
            before = log.read_text().count('"/api/chat"')
            mission = home.text("submit", "-q", "--effort", "council", "Who built the harbour, and why?").strip()
            wait_for(lambda: log.read_text().count('"/api/chat"') >= before + BEGUN)
            os.killpg(server.pid, signal.SIGKILL)
    return mission


def keep(home: Home, folder: Path, commit: str, killed: str) -> None:
    """Pack the home, and write it and what it says to a folder."""
    missions = [each["id"] for each in home.data("missions")["missions"]]
    shown = [home.data("show", each) for each in missions]
    told = {
        "version": home.text("--version").split()[-1],
        "commit": commit,
        "killed": killed,
        "missions": {each["id"]: {"status": each["status"], "answer": each.get("answer")} for each in shown},
        "memories": {each["document"]: each["standing"] for each in home.data("memories")["memories"]},
        "methods": {each["method"]: each["active"] for each in home.data("method", "list")["methods"]},
    }
    python = home.environment / "bin" / "python"
    subprocess.run([str(python), "-c", PACK, str(home.path)], check=True)
    folder.mkdir(parents=True, exist_ok=True)
    best = 9 | lzma.PRESET_EXTREME
    with lzma.open(folder / "home.tar.xz", "wb", preset=best) as file, tarfile.open(fileobj=file, mode="w") as files:
        for name in KEPT:
            if (home.path / name).exists():
                files.add(home.path / name, name, filter=anonymous)
    (folder / "kept.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Keep no name and no time of the machine; leave out the folder in which ZODB makes blobs."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return None if Path(entry.name).name in (".lock", "tmp") else entry


def main() -> None:
    """Keep a home."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--name", default="", help="the folder in tests/images (default: the version)")
    given = parser.parse_args()
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", given.commit], capture_output=True, text=True, check=True
    ).stdout.strip()
    work = Path(tempfile.mkdtemp(prefix="kept-"))
    try:
        home = Home(install(commit, work), work)
        killed = live(home)
        folder = ROOT / "tests" / "images" / (given.name or home.text("--version").split()[-1])
        keep(home, folder, commit, killed)
    finally:
        shutil.rmtree(work)
    print(f"{folder}: {(folder / 'home.tar.xz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
