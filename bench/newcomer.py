"""The commands of README, of "How do I" and of every page, typed as they are written on a fresh home.

A command is a line that begins with `batos` in a block of code, or in a table of docs/README.md, up to its remark. All
commands are typed page by page in one folder, where there are the checkout's examples, notes and a method of one's own,
on a home after genesis, beside the emulator. Names such as `ID`, `OBJECT.SELECTOR` and `m-...` are replaced by those of
things that are there. A command is as written if it ends with exit code 0, or, where it goes on until it is stopped, if
it still runs after a while. docs/cli.md is made from the commands themselves, and the tutorial has a test of its own
(tests/cli/test_tutorial.py), which compares its output too.

`as_written` is the share of the commands that were run; `not_run` names the others, each with its reason.

    python bench/newcomer.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from first_minute import emulator
from report import Goal, report

ROOT: Final = Path(__file__).resolve().parents[1]
#: Pages whose commands are typed elsewhere.
ELSEWHERE: Final = frozenset({"docs/cli.md", "docs/tutorial.md"})
QUICK: Final = frozenset({"docs/codex.md"})
GOAL, NOT_RUN = 1.0, 0.08
#: Seconds after which what goes on until it is stopped is seen to run, and that anything else may take.
RUNS, HANGS = 8, 300
_LINE: Final = re.compile(r"^ {0,4}(batos .*)$", re.MULTILINE)
_CELL: Final = re.compile(r"\| `(batos [^`]+)`(?:, then `(batos [^`]+)`)?")
#: The remark behind a command: two blanks or more, or a sign.
_REMARK: Final = re.compile(r"\s{2,}(?![\"'|<>]).*$|\s+# .*$")
#: Parts of commands that cannot be typed here, each with the reason.
CANNOT: Final[Mapping[str, str]] = {
    "zeo://": "a ZEO server must run",
    "postgres://": "a PostgreSQL server must run",
    "serve --install": "it changes the machine's units",
    "serve --uninstall": "it changes the machine's units",
    "--gguf": "a real model must be installed",
    "curate --undo": "nothing was folded: no memory of a new home is cold",
}
#: Commands that go on until somebody stops them, by their beginning.
GO_ON: Final = ("batos serve", "batos emulator", "batos missions --follow")
#: Names in commands, and shell words that give one that is there.
STANDS_FOR: Final[Mapping[str, str]] = {
    r"\bAPPROVAL(\.\.\.)?(?=\s|$)": "$(batos approvals --json | grep -oE 'a-[0-9A-Z]{26}' | head -1)",
    r"\bOBJECT\.SELECTOR\b": "brick_prototype_obj.guide_facet_",
    r" \[OBJECT\]": "",
    r" \[--checks checks\.json\]": "",
    r"\bm-\.\.\.": "last",
    r"\bID\b": "$(batos memories --json | grep -oE 'd-[0-9A-Z]{26}' | head -1)",
    r"--why TEXT": "--why 'not now'",
    r"/mnt/disk/": "$PWD/disk/",
    r"tools_obj\.seconds_of_": "brick_prototype_obj.guide_facet_",
    r"tools_obj seconds_of_": "text_agent words_",
}
_ASKS: Final = 'batos ask --quiet --effort cycle --install ask --file harbour.txt "How was it closed?" --persona'
#: Pages that need a home in which nothing was learnt.
OWN_HOMES: Final = frozenset({"docs/approvals.md"})
#: Steps that a page tells before a command, by the command's beginning.
BEFORE: Final[Mapping[str, str]] = {
    'batos forget "Anna': 'batos remember --quiet "Anna\'s birthday is on 3 May."',
    "batos approvals": f"batos genesis --quiet; {_ASKS} robin; {_ASKS} babs; {_ASKS} brick",
    "batos approve --all": f"{_ASKS} brick",
    "batos memories edit": "batos remember --quiet notes/",
    "batos memories retract": "batos remember --quiet notes/",
    "batos method rollback": "batos method redefine --quiet brick_prototype_obj.guide_facet_ --file mine.py",
    "batos keys new": 'batos stop; echo \'bind = "tcp://0.0.0.0:7717"\' >>"$BATOS_HOME/batos.toml"',
    "batos tools": 'rm -f "$BATOS_HOME/batos.toml"',
}


class Command(NamedTuple):
    """A command of a page, as it is written."""

    page: str
    text: str

    @property
    def reason(self) -> str:
        """Return the reason why it cannot be typed here; "" if it can."""
        return next((why for part, why in CANNOT.items() if part in self.text), "")


@dataclass(slots=True)
class Tally:
    """Counts commands, with those that failed and those that were not run."""

    run: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    not_run: list[dict[str, str]] = field(default_factory=list)


def commands(root: Path = ROOT) -> Iterator[Command]:
    """Yield the commands of all pages, each page's in their order."""
    for page in ("README.md", *sorted(f"docs/{path.name}" for path in (root / "docs").glob("*.md"))):
        text = (root / page).read_text(encoding="utf-8")
        if page in ELSEWHERE:
            continue
        found = [match[1] for match in _LINE.finditer(text)]
        if page == "docs/README.md":
            found += [each for match in _CELL.finditer(text) for each in match.groups() if each]
        yield from (Command(page, _REMARK.sub("", each).strip()) for each in found)


def fill_names(command: Command) -> str:
    """Return what a shell is given of a command: with names that are there in the place of those that stand for one."""
    text = command.text
    for name, given in STANDS_FOR.items():
        text = re.sub(name, lambda _, given=given: given, text)  # type: ignore[misc]
    return text


@contextmanager
def world(folder: Path) -> Iterator[dict[str, str]]:
    """Make a folder with examples and notes, and an emulator; yield the environment of a shell there."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "notes").mkdir()
    (folder / "notes" / "lamp.md").write_text("# The lamp\n\nMaro winds the lamp every four hours.\n", encoding="utf-8")
    (folder / "harbour.txt").write_bytes((ROOT / "examples" / "harbour.txt").read_bytes())
    (folder / "disk").mkdir()
    source = 'async def guide_facet_(self, query):\n    return await self.infer_(f"Guide: {query}")\n'
    (folder / "mine.py").write_text(source, encoding="utf-8")
    tools = folder / "bin"
    tools.mkdir()
    (tools / "batos").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m batos "$@"\n', encoding="utf-8")
    (tools / "batos").chmod(0o755)
    with emulator(folder, 0.0, 0.0) as url:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
        yield {
            **own,
            "HOME": str(folder),
            "BATOS_HOME": str(folder / "home"),
            "BATOS_SERVER": "auto",  # as outside of a container, where nothing is started by itself
            "OLLAMA_HOST": url,
            "PATH": f"{tools}{os.pathsep}{own['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, [own.get("PYTHONPATH", "")])]),
            "NO_COLOR": "1",
        }


def shell(text: str, folder: Path, environ: Mapping[str, str], seconds: float) -> tuple[int | None, str]:
    """Type a line; return its exit code, None where it ran on until it was stopped, and what it said."""
    process = subprocess.Popen(
        ["bash", "-c", text], cwd=folder, env=environ, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        said, _ = process.communicate()
        return None, said
    return process.returncode, said


def type_all(found: list[Command], folder: Path, environ: Mapping[str, str]) -> Tally:
    """Type commands one after the other."""
    tally = Tally()
    for command in found:
        home = "own-home" if command.page in OWN_HOMES else "home"
        environ = {**environ, "BATOS_HOME": str(folder / home)}
        if command.reason:
            tally.not_run.append({"page": command.page, "command": command.text, "reason": command.reason})
            continue
        before = next((made for begin, made in BEFORE.items() if command.text.startswith(begin)), "")
        if before:
            shell(before, folder, environ, HANGS)
        goes_on = command.text.startswith(GO_ON) and not command.text.startswith("batos serve --idle")
        code, said = shell(fill_names(command), folder, environ, RUNS if goes_on else HANGS)
        tally.run += 1
        if code != (None if goes_on else 0):
            last = said.strip().splitlines()[-1:] or [""]
            tally.failed.append({"page": command.page, "command": command.text, "code": code, "said": last[0][:200]})
            print(f"{command.page}: {command.text}: {code}: {said.strip()[-400:]}", file=sys.stderr)
    return tally


def prepare(folder: Path, environ: Mapping[str, str]) -> None:
    """Make the home as a person has it who read the first page: a question, a method, a summary's name.

    Raises: RuntimeError: a step fails.
    """
    for text in (
        "batos genesis --quiet",
        "batos remember --quiet notes/",
        'batos ask --quiet --effort cycle --persona brick --file harbour.txt "How was the breach closed?"',
        "batos method make --quiet",
    ):
        code, said = shell(text, folder, environ, HANGS)
        if code != 0:
            raise RuntimeError(f"{text}: {code}: {said}")


def measure(found: list[Command]) -> Tally:
    """Type commands in a world of their own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with world(folder) as environ:
            prepare(folder, environ)
            try:
                return type_all(found, folder, environ)
            finally:
                shell("batos stop", folder, environ, HANGS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Type the commands, and report how many are as written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only those of docs/codex.md")
    parser.add_argument("--json", type=Path, help="write the document there too")
    given = parser.parse_args(arguments)
    found = [each for each in commands() if not given.quick or each.page in QUICK]
    tally = measure(found)
    share = round(1 - len(tally.failed) / max(1, tally.run), 4)
    left = round(len(tally.not_run) / max(1, len(found)), 4)
    values = {"as_written": share, "commands": len(found), "run": tally.run, "not_run_share": left}
    goals = [Goal("as_written", share, GOAL, "at_least"), Goal("not_run_share", left, NOT_RUN)]
    report({**values, "failed": tally.failed, "not_run": tally.not_run}, goals, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
