"""Files of tools: listed and run in processes of their own, with limits, and never a crash of the server."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cli.wire_server import eventually

from batos.agency.file_tools import FileTools

GOOD = '''
import os, sys
import batos

@batos.read
def surroundings() -> dict:
    """Tell what this process has."""
    print("this is no reply")
    return {"environment": sorted(os.environ), "pid": os.getpid(), "group": os.getpgid(0), "cwd": os.getcwd(),
            "isolated": sys.flags.isolated, "kernel": "batos.uvm" in sys.modules}

@batos.tool
def switch_lamp(on: bool) -> str:
    """Switch the lamp on or off."""
    return f"the lamp is {'on' if on else 'off'}"

def helper(what):
    return what
'''
ENDLESS = '''
import batos, os, time

@batos.read
def hangs(file: str) -> str:
    """Hang, with a child that does too."""
    if os.fork() == 0:
        time.sleep(600)
    with open(file, "w") as out:
        out.write(str(os.getpgid(0)))
    time.sleep(600)
    return ""

@batos.read
def hoards() -> int:
    """Take all memory."""
    return len("x" * 10**10)

@batos.read
def quits() -> str:
    """End the process."""
    os._exit(3)

@batos.read
def floods() -> str:
    """Return too much."""
    return "x" * 10**6

@batos.read
def scribbles() -> str:
    """Write what is no reply over the reply."""
    for number in range(3, 20):
        try:
            os.write(number, b"no json\\n")
        except OSError:
            pass
    os._exit(0)
'''


def folder_with(place: Path, **files: str) -> Path:
    """A folder with files of tools."""
    folder = place / "tools"
    folder.mkdir(exist_ok=True)
    for name, source in files.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return folder


def in_group(group: int) -> bool:
    """Test if a process of a group is left, beside those that have ended and wait for whoever adopted them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, its_group = each.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                return True
    return False


async def test_a_file_is_listed_and_run_in_a_process_with_nothing_of_ours(tmp_path: Path) -> None:
    """No environment, its own group, the folder as its place, and no part of the kernel; what it prints is no reply."""
    folder = folder_with(tmp_path, lamp=GOOD, _helper="raise ValueError")
    files = FileTools(folder)
    (listed,) = await files.list_files()
    assert [(each.name, each.reads) for each in listed.tools] == [("surroundings", True), ("switch_lamp", False)]
    told = await files.run("switch_lamp", {"on": True})
    assert told == {"outcome": "done", "text": "the lamp is on"}
    said = (await files.run("surroundings", {}))["text"]
    assert '"environment":["LC_CTYPE"]' in said or '"environment":[]' in said
    assert f'"cwd":"{folder}"' in said
    assert '"isolated":1,"kernel":false' in said
    assert str(os.getpgid(0)) not in said
    assert (await files.run("switch_lamp", {"on": "perhaps"}))["outcome"] == "refused"
    assert (await files.run("gone", {}))["outcome"] == "refused"
    assert "lamp" not in sys.modules


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("def broken(:", "SyntaxError: .* (line 1)"),
        ("\n\nraise RuntimeError('not today')", "RuntimeError: not today (line 3)"),
        ("import sys; sys.exit('bye')", "SystemExit: bye (line 1)"),
        ("import os; os._exit(1)", "its process ended without a reply"),
        ("x = 1", "it has no tools"),
        ("import batos\n@batos.read\ndef look(city): 'Look.'", "look cannot be a tool: the parameter city has no type"),
    ],
)
async def test_a_broken_file_is_shown_with_its_error(tmp_path: Path, source: str, why: str) -> None:
    """The others are there all the same."""
    found = await FileTools(folder_with(tmp_path, lamp=GOOD, a_broken=source)).list_files()
    assert [len(each.tools) for each in found] == [0, 2]
    first, _, last = why.partition(".*")
    assert first in found[0].error
    assert last in found[0].error


async def test_a_file_that_changed_is_listed_anew_and_a_name_is_one_files(tmp_path: Path) -> None:
    """Of two files with one name the later is an error."""
    folder = folder_with(tmp_path, lamp=GOOD)
    files = FileTools(folder)
    await files.list_files()
    folder_with(tmp_path, lamp=GOOD.replace("switch_lamp", "turn_lamp"), other=GOOD)
    first, second = await files.list_files()
    assert [each.name for each in first.tools] == ["surroundings", "turn_lamp"]
    assert (second.tools, second.error) == ((), "another file has a tool 'surroundings' too")
    (folder / "other.py").unlink()
    (folder / "lamp.py").chmod(0o666)
    assert "only you may write to" in (await files.list_files())[0].error
    (folder / "lamp.py").chmod(0o644)
    (folder / "linked.py").symlink_to(folder / "lamp.py")
    assert [bool(each.error) for each in await files.list_files()] == [False, True]
    assert await FileTools(tmp_path / "nowhere").list_files() == []


async def test_a_call_is_bounded_in_time_memory_and_size(tmp_path: Path) -> None:
    """What ends without an answer is unknown; the process and its children are gone."""
    files = FileTools(folder_with(tmp_path, wild=ENDLESS))
    hoarded = await files.run("hoards", {})
    assert (hoarded["outcome"], "MemoryError" in hoarded["text"]) == ("failed", True)
    quitted = await files.run("quits", {})
    assert (quitted["outcome"], "without a reply" in quitted["text"]) == ("unknown", True)
    assert (await files.run("floods", {}))["text"].startswith("its result has 1,000,002 bytes of JSON")
    assert (await files.run("scribbles", {}))["outcome"] == "unknown"
    place = tmp_path / "group"
    os.mkfifo(place)  # whoever opens it for reading waits until the tool opens it for writing
    running = asyncio.ensure_future(files.run("hangs", {"file": str(place)}))
    group = int(await asyncio.to_thread(place.read_text))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await eventually(lambda: not in_group(group))
    late = await FileTools(tmp_path / "tools", seconds=0.5).run("hangs", {"file": os.devnull})
    assert (late["outcome"], "did not end within" in late["text"]) == ("unknown", True)
