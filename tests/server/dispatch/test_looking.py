"""How it stands where no server runs."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.processes import User, status_with_daemon

from batos.config import Settings
from batos.protocol.server_documents import StatusDocument
from batos.server.dispatch.looking import read_status

#: The keys of a status, with a server and without one.
TOLD = {
    *(
        "server",
        "holder",
        "genesis",
        "image",
        "ollama",
        "ready",
        "reasons",
        "queue",
        "approvals",
        "running",
        "missions",
        "heartbeat",
    ),
    *(
        "missions",
        "counters",
        "days",
        "vram",
        "failures",
        "models",
        "learning",
        "jobs",
        "forms",
        "nodes",
        "erasure",
        "heartbeat",
    ),
}


def test_the_image_is_looked_at_and_ollama_asked(user: User) -> None:
    """It ends with 0, has what a server's screen has, and --ready says as before that none runs."""
    name = json.loads(user.run("submit", "--json", "--effort", "reflex", "Why?").out)["data"]["id"]
    found = status_with_daemon(user)
    assert found.keys() == TOLD
    assert (found["server"], found["holder"], found["ready"]) == (None, "", False)
    assert [each["code"] for each in found["reasons"]] == ["no_server"]
    assert (found["missions"], found["queue"]["waiting"], found["running"]) == ({"queued": 1}, 1, [])
    assert (found["ollama"]["answers"], found["ollama"]["missing"], found["image"]["error"]) == (True, [], None)
    said = user.run("status")
    assert said.code == 0
    assert "no server runs (batos serve); what is queued or running waits for it" in said.out
    assert user.run("status", "--ready").code == 6
    assert user.run("show", name, "--json").document["data"]["status"] == "queued"


async def looked_at(home: Path) -> StatusDocument:
    """The status of a home whose daemon is away; asked until that is heard in the 1.5 s that a daemon has to answer."""
    while True:
        found = await read_status(Settings(home=home, ollama_host="http://127.0.0.1:9"))
        if "ollama_timeout" not in [each["code"] for each in found["reasons"]]:
            return found


async def test_a_home_in_which_nothing_is(tmp_path: Path) -> None:
    """There is no mind yet, nothing is made by looking, and a daemon that is away is told."""
    home = tmp_path / "home"
    found = await looked_at(home)
    assert found.keys() == TOLD
    assert [each["code"] for each in found["reasons"]] == ["no_server", "image", "ollama_unreachable"]
    error = found["image"]["error"]
    assert error is not None
    assert (error["remedy"], found["ollama"]["answers"]) == ("Run `batos genesis`.", False)
    assert not home.exists()


async def test_an_image_that_is_damaged(tmp_path: Path) -> None:
    """What is wrong with it is told, and is no reason to say nothing."""
    (tmp_path / "live_image.fs").write_bytes(b"this is no database")
    found = await looked_at(tmp_path)
    assert found["image"]["error"] is not None
    assert found["image"]["error"]["code"] == "image_damaged"
    assert "image_damaged" in [each["code"] for each in found["reasons"]]
