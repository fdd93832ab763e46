"""A server with an open door over an emulated Ollama, in a thread beside the tests of a module."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.waiting import HANG

from batos.cli.verbs.serve import open_server
from batos.client import addresses
from batos.client.clients import Client
from batos.client.keys import Keyring
from batos.client.portal import Portal
from batos.config import Settings
from batos.events import Events
from batos.uvm import UVM
from ollama_emulator.emulator import Emulator, Options

ANYWHERE = "tcp://127.0.0.1:*"
#: What an answer that is no JSON does not have.
SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
ASKED = {"role": "user", "content": "How do tides work?"}


@dataclass
class OpenDoor:
    """A server with its door: where it is, the home's token, its mind and the daemon behind it."""

    url: str
    home: Path
    mind: UVM
    emulator: Emulator
    portal: Portal

    @property
    def token(self) -> str:
        return Keyring(self.home).token()

    def client(self, key: str | None = None, **more: Any) -> httpx.Client:
        """A client with a key; the home's token unless another is named."""
        shown = {"authorization": f"Bearer {self.token if key is None else key}"}
        return httpx.Client(base_url=self.url, headers={**shown, **more}, timeout=HANG)

    def chat(self, *messages: dict[str, Any], key: str | None = None, **given: Any) -> httpx.Response:
        """A chat completion, whole."""
        with self.client(key) as client:
            body = {"model": "batos:reflex", "messages": [*messages] or [ASKED], **given}
            return client.post("/v1/chat/completions", json=body)

    @contextmanager
    def saying(self, text: str) -> Iterator[None]:
        """Let the model say this, whatever it is asked."""
        self.emulator.faults.add({"match": {"path": "/api/chat", "every": 1}, "do": "text", "text": text})
        yield
        self.emulator.faults.clear()

    def missions(self, **args: Any) -> list[dict[str, Any]]:
        """The missions that `batos missions` lists, newest first."""
        with Client(self.home) as client:
            found = client.call("missions", args)
        listed: list[dict[str, Any]] = found["missions"]
        return listed

    def mission(self, name: str) -> dict[str, Any]:
        """A mission whole."""
        return dict(self.mind.readings.mission(name))


@pytest.fixture(scope="session")
def grown_door_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose genesis is done; each door has a copy."""
    home = tmp_path_factory.mktemp("door") / "home"
    home.mkdir(mode=0o700)
    with open_door(home, http="off") as door:
        door.portal.run(door.mind.readiness.genesis)
    return home


@contextmanager
def open_door(home: Path, options: Options | None = None, **settings: Any) -> Iterator[OpenDoor]:
    """Serve a home with its door open at a free port."""
    emulator, portal = Emulator(options or Options()), Portal()
    with portal.holding(emulator.serving()) as daemon:
        usual: dict[str, Any] = {
            "home": home, "ollama_host": daemon, "user": "tester", "install": "never", "bind": ANYWHERE,
            "events": ANYWHERE, "http": "127.0.0.1:0",
        }  # fmt: skip
        with portal.holding(open_server(Settings(**{**usual, **settings}), told=Events(log=False))) as (mind, _places):
            record = addresses.read_record(home)
            assert record is not None
            yield OpenDoor(record.http, home, mind, emulator, portal)
    portal.close()


@contextmanager
def copied_door(grown: Path, place: Path, options: Options | None = None, **settings: Any) -> Iterator[OpenDoor]:
    """Serve a copy of a grown home."""
    home = place / "home"
    shutil.copytree(grown, home)
    with open_door(home, options, **settings) as door:
        door.portal.run(door.mind.readiness.genesis)  # this daemon has no models yet
        yield door


@pytest.fixture(scope="module")
def door(grown_door_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    """An open door for the tests of a module."""
    with copied_door(grown_door_home, tmp_path_factory.mktemp("served")) as found:
        yield found


def frames(reply: httpx.Response) -> list[Any]:
    """The data of server-sent events, `[DONE]` as it is."""
    told = [each.removeprefix("data: ") for each in reply.text.split("\n\n") if each.startswith("data: ")]
    return [each if each == "[DONE]" else json.loads(each) for each in told]


def lines(reply: httpx.Response) -> list[dict[str, Any]]:
    """The lines of a reply in lines of JSON; an empty one fails."""
    return [json.loads(each) for each in reply.text.removesuffix("\n").split("\n")]
