"""What every test stands on: a home of its own, a watched event loop, the corpus, and hypothesis profiles."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest
import structlog
from tests.living import Count
from tests.timing import SLOW_CALLBACK, TABLE, Timing, read_table

from batos.loopwatch import BlockingCallback, WatchedLoop
from ollama_emulator.voices import model_cache

pytest_plugins = ["pytester"]

# The suite runs often, with other examples each time; `make fuzz` runs many.
# Neither is judged by the machine's pace.
_NO_PACE = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("ci", _NO_PACE, max_examples=20)
hypothesis.settings.register_profile("fuzz", _NO_PACE, max_examples=5000)
hypothesis.settings.load_profile(os.environ.get("BATOS_HYPOTHESIS", "ci"))

#: What a person tells the tests themselves.
KEPT = frozenset({"BATOS_CORPUS", "BATOS_MCP_SUITE", "BATOS_LIVE_OLLAMA", "BATOS_LIVE_MODEL", "BATOS_HYPOTHESIS"})

_watched: list[WatchedLoop] = []
#: Numbers for the homes of tests that have no folder of their own.
_numbers = itertools.count()


def _make_watched_loop() -> WatchedLoop:
    loop = WatchedLoop()
    _watched.append(loop)
    return loop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], WatchedLoop]]:
    """Every async test and fixture runs on a loop that times what it runs."""
    return {"watched": _make_watched_loop}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make times` writes anew which files have long tests."""
    parser.addoption("--write-times", action="store_true", help="write tests/times.json from the times of this run")


def pytest_configure(config: pytest.Config) -> None:
    """Files with long tests come first; `make live` says how many tests ran, and none is a failure.

    The folders that tests make are their owner's alone to write: a home that is not is refused.
    """
    os.umask(0o022)
    config.pluginmanager.register(Timing(read_table(), TABLE if config.getoption("--write-times") else None))
    if config.getoption("markexpr") == "live":
        config.pluginmanager.register(Count(os.environ.get("BATOS_LIVE_OLLAMA", "no daemon")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `live` is skipped unless BATOS_LIVE_OLLAMA names a daemon: it needs a real one and its models.

    One marked `real` is skipped where llama.cpp is not installed or its small models are not in the cache.
    """
    reasons = {}
    if not os.environ.get("BATOS_LIVE_OLLAMA"):
        reasons["live"] = "needs a real Ollama: set BATOS_LIVE_OLLAMA to its address"
    cached = [model_cache.cached_model(name) for name in ("smollm2", model_cache.EMBEDDER)]
    if find_spec("xllamacpp") is None or not all(path.is_file() for path in cached):
        reasons["real"] = "needs llama.cpp and small models: `make real` brings them"
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker) is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The thousands of items live to the end, so that the collector of garbage would look through them for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def loop_is_never_blocked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which one callback blocked its event loop; `blocks_loop` excuses it.

    A callback that is only slow is told at the end of the run.
    """
    _watched.clear()
    yield
    blocked: list[BlockingCallback] = [one for loop in _watched for one in loop.blocked]
    request.node.user_properties.extend((SLOW_CALLBACK, str(one)) for loop in _watched for one in loop.slow)
    _watched.clear()
    if blocked and request.node.get_closest_marker("blocks_loop") is None:
        pytest.fail("the event loop was blocked:\n" + "\n".join(f"  {one}" for one in blocked), pytrace=False)


@pytest.fixture(autouse=True)
def plain_tracebacks() -> Iterator[None]:
    """What is logged looks plain, as the program's own logs do: where `rich` is there, structlog lets it draw every
    local of every frame, which takes up to half a second on the loop of whoever logs.

    What a test, or a bench that it runs, has set for logs ends with it.
    """
    before = structlog.get_config()
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*before["processors"][:-1], plain])
    yield
    structlog.configure(**before)


@pytest.fixture(autouse=True)
def own_home(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No test sees the person's settings: BATOS_* and OLLAMA_* are cleared, and the home is a folder yet to be made.

    The home lies in `tmp_path` where a test has that: most have none, and a folder for each would be made for nothing.
    OLLAMA_HOST names a port at which nothing listens, but for a test marked `live`, which gets the person's.
    Processes that a test starts inherit this, and the loop watch (they exit 70 when they blocked their loop).
    """
    live = request.node.get_closest_marker("live") is not None
    host = os.environ["BATOS_LIVE_OLLAMA"] if live else "http://127.0.0.1:9"
    for name in list(os.environ):
        if name.startswith(("BATOS_", "OLLAMA_")) and name not in KEPT:
            monkeypatch.delenv(name)
    if "tmp_path" in request.fixturenames:
        home: Path = request.getfixturevalue("tmp_path") / "home"
    else:
        homes = tmp_path_factory.getbasetemp() / "homes"
        homes.mkdir(exist_ok=True)
        home = homes / str(next(_numbers))
    monkeypatch.setenv("BATOS_HOME", str(home))
    monkeypatch.setenv("BATOS_HTTP", "off")  # one address for all servers of tests would be taken by the first
    monkeypatch.setenv("BATOS_SERVER", "never")
    monkeypatch.setenv("BATOS_DEBUG_LOOP", "1")
    monkeypatch.setenv("BATOS_DEBUG_EVENTS", "1")
    monkeypatch.setenv("OLLAMA_HOST", host)
    return home


@pytest.fixture(scope="module")
def reused_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all examples of a property write to, where `tmp_path` would be made for each of them."""
    return tmp_path_factory.mktemp("reused")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> Iterator[None]:
    """A suite that a shell started in the background ignores Ctrl-C, and what it starts would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of recorded exchanges and data sets that is kept beside the checkout (BATOS_CORPUS moves it)."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "corpus"
    folder = Path(os.environ.get("BATOS_CORPUS", beside))
    if not folder.is_dir():
        pytest.skip(f"no corpus at {folder}: set BATOS_CORPUS to run the tests that are fed from recordings")
    return folder
