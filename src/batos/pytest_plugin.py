"""A plugin of pytest: `ollama`, `uvm` and `batos_server` for tests of programs that use BAT OS (docs/testing.md)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from batos.client.clients import Client
    from batos.config import Settings
    from batos.protocol.lent_tools import CallReply
    from batos.uvm import UVM
    from ollama_emulator.emulator import Emulator, Options


class EmulatedOllama:
    """An emulated Ollama that runs beside the test: its address, what it was asked, and what is to go wrong."""

    def __init__(self, url: str, emulator: Emulator) -> None:
        self.url = url
        self.emulator = emulator

    @property
    def requests(self) -> list[dict[str, object]]:
        """Return the requests that it got, oldest first: n, time, method, path, model, body, status."""
        return list(self.emulator.requests)

    def fails(self, fault: Mapping[str, object]) -> None:
        """Let something go wrong from now on: {"do": "status", "status": 503} (docs/emulator.md has them all)."""
        self.emulator.faults.add(dict(fault))

    def recovers(self) -> None:
        """Let nothing go wrong any more."""
        self.emulator.faults.clear()


class FakedTools:
    """Tools whose results a test declares, and the calls that missions made of any tool, oldest first."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, object]]] = []
        self._replies: dict[str, CallReply] = {}

    def returns(self, tool: str, result: object) -> None:
        """Let a tool bring a result, a text or any JSON, from now on; its function is not called."""
        from batos.client.tool_functions import as_text

        self._replies[tool] = {"outcome": "done", "text": as_text(result)}

    def fails(self, tool: str, why: str) -> None:
        """Let a tool fail for a reason from now on; its function is not called."""
        self._replies[tool] = {"outcome": "failed", "text": why}

    def answer(self, tool: str, arguments: Mapping[str, object]) -> CallReply | None:
        """Note a call, and return what is declared of its tool; None: the tool itself is called."""
        self.calls.append((tool, dict(arguments)))
        return self._replies.get(tool)


class BatosServer:
    """A server that runs beside the test: its home, its address, clients of it, and what its missions' tools bring."""

    def __init__(self, home: Path, address: str, tools: FakedTools) -> None:
        self.home = home
        self.address = address
        self.tools = tools

    def client(self) -> Client:
        """Make a client for the test itself; the program under test makes its own."""
        from batos.client.clients import Client

        return Client(self.home)


@pytest.fixture
def ollama_options() -> Options:
    """Give the emulator's machine and models; a test's own fixture of this name gives others."""
    from ollama_emulator.emulator import Options

    return Options()


@pytest.fixture
def ollama(ollama_options: Options, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedOllama]:
    """Run an emulated Ollama, which OLLAMA_HOST names while the test runs."""
    from batos.client.portal import Portal
    from ollama_emulator.emulator import Emulator

    emulator, portal = Emulator(ollama_options), Portal()
    with portal.holding(emulator.serving()) as url:
        monkeypatch.setenv("OLLAMA_HOST", url)
        yield EmulatedOllama(url, emulator)
    portal.close()


@pytest.fixture(scope="session")
def batos_grown_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a home whose genesis is done and whose router has learnt, which takes seconds; each test has a copy."""
    from batos.client.portal import Portal
    from ollama_emulator.emulator import Emulator

    home = tmp_path_factory.mktemp("batos") / "home"
    home.mkdir(mode=0o700)
    emulator, portal = Emulator(), Portal()
    with portal.holding(emulator.serving()) as url:
        portal.run(_grow, _settings(url, home, {}))
    portal.close()
    return home


async def _grow(settings: Settings) -> None:
    from batos.events import Events
    from batos.uvm import open_uvm

    async with open_uvm(settings, Events(log=False)) as mind:
        await mind.readiness.genesis()


@pytest.fixture
def batos_home(batos_grown_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a home of the test's own, genesis done, which BATOS_HOME names while it runs."""
    home = tmp_path / "batos"
    shutil.copytree(batos_grown_home, home)
    monkeypatch.setenv("BATOS_HOME", str(home))
    return home


@pytest.fixture
def batos_settings() -> dict[str, object]:
    """Give settings for `uvm` and `batos_server`; a test's own fixture of this name gives others."""
    return {}


async def _open(ollama: EmulatedOllama, batos_home: Path, batos_settings: Mapping[str, object]) -> AsyncIterator[UVM]:
    """Open the image of the test's home over the emulated Ollama; genesis is done."""
    from batos.client.portal import in_a_task
    from batos.events import Events
    from batos.uvm import open_uvm

    async with in_a_task(open_uvm(_settings(ollama.url, batos_home, batos_settings), Events(log=False))) as found:
        await found.readiness.genesis()
        yield found


def _explain_refusal() -> None:
    """Say what is missing."""
    pytest.fail("the fixture `uvm` is asynchronous: pip install pytest-asyncio, or use `batos_server`", pytrace=False)


if find_spec("pytest_asyncio") is not None:
    import pytest_asyncio

    uvm = pytest_asyncio.fixture(_open, name="uvm")
else:
    uvm = pytest.fixture(_explain_refusal, name="uvm")


@pytest.fixture
def batos_server(ollama: EmulatedOllama, batos_home: Path, batos_settings: dict[str, object]) -> Iterator[BatosServer]:
    """Run a server over the emulated Ollama, in the home that BATOS_HOME names; genesis is done."""
    from batos.cli.verbs.serve import open_server
    from batos.client.portal import Portal
    from batos.events import Events

    portal = Portal()
    settings = _settings(ollama.url, batos_home, batos_settings)
    with portal.holding(open_server(settings, told=Events(log=False))) as (mind, places):
        portal.run(mind.readiness.genesis)
        tools = FakedTools()
        mind.readiness.tool_places.stand_ins.append(tools.answer)
        yield BatosServer(batos_home, places.bind.near, tools)
    portal.close()


def _settings(url: str, home: Path, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a mind that learns no methods, unless told otherwise."""
    from batos.config import Settings

    anywhere = "tcp://127.0.0.1:*"
    usual = {"user": "tester", "install": "never", "bind": anywhere, "events": anywhere}
    return Settings(**{**usual, "home": home, "ollama_host": url, **given})
