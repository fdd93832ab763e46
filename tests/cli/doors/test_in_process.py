"""Two shells at one home: what reads looks beside the image's owner, what writes waits a moment for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.cli.processes import WITH_MODELS, User, emulator, held
from tests.fork_server import ForkedCommand

from batos.cli.doors.door import Door
from batos.cli.doors.in_process import open_to_read
from batos.config import Settings
from batos.protocol.brief import as_file
from batos.protocol.errors import NoServer, NotFound

QUESTION = "How does a sluice gate hold back the water of a canal?"


async def _nothing(*_asked: object) -> dict[str, Any]:
    """Answer nothing."""
    return {}


#: The door that is opened where an image cannot be read beside its owner.
OTHER = Door(_nothing)
READING = (
    ("status",),
    ("missions",), ("show", "last"), ("show", "last", "--prompts"), ("inspect",), ("inspect", "last"),
    ("inspect", "brick_prototype_obj"), ("method", "list"), ("tools",), ("approvals",),
)  # fmt: skip


@contextmanager
def asking(user: User, *, answered: bool = False) -> Iterator[ForkedCommand]:
    """A process that has the image: its question is at the daemon, which answers it at some time, or never."""
    with emulator(*WITH_MODELS, "--tok-s", "100" if answered else "0", faults=[] if answered else held()) as slow:
        owner = User(user.home, slow).start("ask", "--json", "--effort", "reflex", QUESTION)
        try:
            owner.told_until("inference.start")
            yield owner
        finally:
            owner.kill()
            owner.communicate()


def test_what_reads_is_answered_beside_the_owner(user: User) -> None:
    """While a question runs every reading verb tells how it stands, and the owner is not disturbed."""
    with asking(user) as owner:
        for arguments in READING:
            ran = user.run(*arguments, "--json")
            assert ran.code == 0, (arguments, ran.out, ran.err)
        lines = user.run("missions", "--json").document["data"]["missions"]
        assert [(line["status"], line["text"]) for line in lines] == [("running", QUESTION)]
        assert f"process {owner.pid}" in user.run("missions").err
        stands = user.run("status", "--json").document["data"]
        assert (stands["server"], str(owner.pid) in stands["holder"]) == (None, True)
        assert [each["text"] for each in stands["running"]] == [QUESTION]
        assert owner.poll() is None


def test_what_a_dead_process_left_is_not_taken_for_its_successors(user: User) -> None:
    """Beside an owner the mission that it runs stands well, and one that a killed process ran waits for `resume`."""
    names = []
    for _ in range(2):
        with asking(user):
            names.append(user.run("show", "last", "--json").document["data"]["id"])
            left = ["stands   the process that ran it has ended" in user.run("show", name).out for name in names]
    assert left == [True, False]


def test_what_writes_waits_a_moment_and_then_names_the_way_out(user: User) -> None:
    """Who has the image is told at once; where it stays taken the error names `batos serve` first, and exits with 5."""
    with asking(user) as owner:
        ran = user.run("ask", QUESTION, environ={"BATOS_BUSY_SECONDS": "0.2"})  # any pace: it stays taken
        assert ran.code == 5
        assert f"Waiting for process {owner.pid}" in ran.err
        assert "at most 0.2 s" in ran.err
        told = user.run("submit", "--json", QUESTION, environ={"BATOS_BUSY_SECONDS": "0"}).document["error"]
        assert (told["code"], str(owner.pid) in told["message"]) == ("image_busy", True)
        assert told["remedy"].startswith("Run `batos serve`")


def test_a_question_is_answered_when_the_image_comes_free(user: User) -> None:
    """The second shell's waits for the first one's end and is then worked on."""
    with asking(user, answered=True) as owner:
        ran = user.run("ask", "--effort", "reflex", "-q", QUESTION)
        assert ran.code == 0, ran.err
        assert owner.wait() == 0
    lines = user.run("missions", "--json").document["data"]["missions"]
    assert [line["status"] for line in lines] == ["done", "done"]


def test_a_look_changes_nothing(user: User) -> None:
    """Not a byte, not a time, and no file beside it."""
    user.run("ask", "-q", "--effort", "reflex", QUESTION)
    before = _state(user.home)
    for arguments in READING[:3]:
        assert user.run(*arguments, "-q").code == 0
    assert _state(user.home) == before


async def test_only_looks_go_through_it(grown: Path) -> None:
    """What asks, steers or hands over is refused by name."""
    async with open_to_read(Settings(home=grown), nullcontext(OTHER)) as way:
        assert (await way.call("missions"))["missions"] == []
        with pytest.raises(NoServer, match="cancel does more than read the image"):
            await way.call("cancel", {"mission": "last"})
        for refused in (way.attach([as_file("a.txt", b"The pier broke.")]), way.begin("m-1")):
            with pytest.raises(NoServer):
                await refused
        assert (await way.left_behind(), way.served, way.holder) == ([], False, "")


async def test_an_image_that_is_on_no_disk_is_opened_by_the_other_door(tmp_path: Path) -> None:
    """Whether there is one shows when that opens it."""
    settings = Settings(home=tmp_path, image="memory://image")
    async with open_to_read(settings, nullcontext(OTHER)) as way:
        assert way is OTHER


async def test_reading_makes_no_image(tmp_path: Path) -> None:
    """A home that has none, or is misspelt, is told so and stays empty: a backup can still be restored there."""
    with pytest.raises(NotFound, match="no image yet"):
        async with open_to_read(Settings(home=tmp_path), nullcontext(OTHER)):
            pass
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


def _state(home: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the home but its logs, with its time and content."""
    files = (each for each in home.rglob("*") if each.is_file() and "logs" not in each.parts)
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes()) for each in files}
