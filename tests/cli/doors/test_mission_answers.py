"""A person at a terminal is asked about a plan and about single calls; without a terminal both wait."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.cli.processes import BATOS, User
from tests.waiting import HANG

from batos.cli.doors.mission_answers import plan_table

LOOK = "Look up when the pier of Maro opens."
TOOLS = '''
import batos


@batos.tool
def switch_lamp(on: bool = True) -> str:
    """Switch the lamp on."""
    open("lamp.log", "a").write("on\\n")
    return "The lamp is on."
'''


def typed(user: User, answers: Sequence[tuple[str, str]], *arguments: str, editor: str = "") -> tuple[int, str]:
    """Run `batos` on a terminal of its own, and type each answer behind its prompt; its code, and all that it said."""
    outer, inner = pty.openpty()
    environ = {**user.environ(), "EDITOR": editor, "VISUAL": editor, "NO_COLOR": "1", "COLUMNS": "160"}
    with subprocess.Popen([*BATOS, *arguments], stdin=inner, stdout=inner, stderr=inner, env=environ) as process:
        os.close(inner)
        said, left, seen = "", [*answers], 0
        while chunk := _read(outer):
            said += chunk
            if left and left[0][0] in said[seen:]:
                seen = len(said)
                os.write(outer, left.pop(0)[1].encode())
        code = process.wait(HANG)
    os.close(outer)
    assert not left, said
    return code, said.replace("\r\n", "\n")


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65536).decode(errors="replace")
    except OSError:  # the other end is closed
        return ""


@pytest.fixture
def papers(user: User, tmp_path: Path) -> User:
    """A user who granted a folder of papers."""
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "pier.md").write_text("The pier of Maro opens at nine. Oak piles hold it.\n")
    assert user.run("grants", "add", "folder", str(folder)).code == 0
    return user


def test_a_plan_is_edited_and_run_at_a_terminal(papers: User, tmp_path: Path) -> None:
    """The table is shown, a wrong edit is told line by line and asked about again, and the right one runs."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\ngrep -q oops "$1" && sed -i s/oops/query/ "$1" || sed -i s/query/oops/ "$1"\n')
    editor.chmod(0o700)
    prompt = "[q]uit:"
    code, said = typed(
        papers, [(prompt, "e\n"), (prompt, "r\n"), (prompt, "e\n"), (prompt, "r\n")],
        "ask", "--plan", "--effort", "reflex", LOOK, editor=str(editor),
    )  # fmt: skip
    assert 'call  papers.search_  {"query": "pier Maro opens"}' in said
    assert "error: plan: line 3: the arguments of papers.search_" in said
    assert "The pier of Maro opens at nine." in said
    assert code == 0


def test_a_plan_that_is_left_waits(papers: User) -> None:
    """Nothing of it is done; another shell approves it, and the mission is run."""
    code, said = typed(papers, [("[q]uit:", "q\n")], "ask", "--plan", LOOK)
    assert code == 7
    assert "Nothing of it is done. `batos approve a-" in said
    assert papers.run("approve", "last").code == 0
    ran = papers.run("resume")
    assert (ran.code, "opens at nine" in ran.out) == (0, True)


def test_without_a_terminal_a_plan_is_printed_and_waits(papers: User, tmp_path: Path) -> None:
    """Its lines, its id, and the code of what waits for a person; a file with other lines approves those."""
    asked = papers.run("ask", "--plan", "--effort", "reflex", LOOK)
    assert asked.code == 7
    name, *lines = asked.out.strip().split("\n")
    assert name.startswith("a-")
    assert lines[-1] == 'call papers.search_ {"query": "pier Maro opens"}'
    told = papers.run("ask", "--plan", "--json", LOOK)
    (question,) = [each for each in told.documents if each.get("event") == "mission.question"]
    assert told.code == 7
    assert told.document["error"]["approval"] == question["approval"]
    assert 'call papers.search_ {"query"' in question["lines"]
    mine = tmp_path / "mine.txt"
    mine.write_text('call papers.read_ {"address": "pier.md"}\n')
    assert papers.run("approve", name, "--plan", str(mine)).code == 0
    assert papers.run("approve", name, "--plan", str(tmp_path / "none")).code == 2
    assert "papers.read_ brought 1 text" in papers.run("resume").err


@pytest.mark.parametrize(("answer", "log"), [("y\n", ["on"]), ("n\n", [])])
def test_a_call_of_a_tool_of_the_home_is_asked_about(user: User, answer: str, log: list[str]) -> None:
    """With its exact arguments; without a yes it is not made, and the answer is given all the same."""
    folder = user.home / "tools"
    folder.mkdir(mode=0o700)
    (folder / "lamp.py").write_text(TOOLS)
    (folder / "lamp.py").chmod(0o600)
    code, said = typed(user, [("[y/N]:", answer)], "ask", "--effort", "reflex", "Switch the lamp on.")
    assert "It asks since it may change something.\ncall switch_lamp {}" in said
    file = folder / "lamp.log"
    assert (code, file.read_text().split() if file.exists() else []) == (0, log)


def test_the_table_of_a_plan_has_all_its_lines() -> None:
    """Parts without a call too; nothing in them moves a cursor."""
    lines = ["# Why?", "call tide {}", "part guide: Where?", "part cook: \x1b[2JHow?", "call tide {}",
             'call w {"q": 1}',
             'effect notes.append_ {"path": "a"}']  # fmt: skip
    assert plan_table("\n".join(lines)).split("\n") == [
        "Why?",
        "line    of             has",
        "call    tide           {}",
        "part    guide:         Where?",
        "part    cook:          \\x1b[2JHow?",
        "call    tide           {}",
        'call    w              {"q": 1}',
        'effect  notes.append_  {"path": "a"}',
    ]
