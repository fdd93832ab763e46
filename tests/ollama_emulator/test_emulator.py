"""The emulator as a process: one line when it accepts, a log, and an end without noise."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.waiting import HANG, until

from ollama_emulator.emulator import Emulator, Options
from ollama_emulator.emulator_errors import OptionError

_FREE_PORT = ("--port", "0", "--model", "llama3.2:1b")


@contextmanager
def _process(log: Path, **environ: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ollama_emulator", *_FREE_PORT, "--log", str(log)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environ},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _, errors = process.communicate(timeout=HANG)
            raise AssertionError(f"it ended with {process.returncode}: {errors}")
        yield process, line
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_serves_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    """The line names the real address and what it is; a signal ends it with 0 and nothing on standard error."""
    with _process(tmp_path / "log") as (process, line):
        assert "not a model" in line
        url = line.split()[3]
        assert httpx.get(f"{url}/api/version", timeout=HANG, trust_env=False, verify=False).status_code == 200  # no TLS
        process.send_signal(number)
        assert process.wait(HANG) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_the_log_holds_a_line_for_each_request(tmp_path: Path) -> None:
    """Written as the request comes, so that who is killed at the n-th request was seen."""
    log = tmp_path / "log"
    with _process(log) as (_, line):
        url = line.split()[3]
        with httpx.Client(base_url=url, timeout=HANG, trust_env=False, verify=False) as client:  # no TLS
            client.get("/api/tags")
            client.post("/api/chat", json={"model": "llama3.2:1b", "messages": [], "keep_alive": 5})
        entries = [json.loads(text) for text in log.read_text().splitlines()]
    assert [(entry["n"], entry["path"]) for entry in entries] == [(1, "/api/tags"), (2, "/api/chat")]
    assert entries[1]["model"] == "llama3.2:1b"
    assert entries[1]["body"] == {"model": "llama3.2:1b", "keep_alive": 5}


async def test_a_request_is_in_the_log_before_it_is_answered(tmp_path: Path) -> None:
    """Who is killed while he waits for the n-th answer finds n lines: also for what is refused or not routed."""
    log = tmp_path / "log"
    emulator = Emulator(Options(log=log, models=("llama3.2:1b",), load_s=3600))
    async with (
        emulator.serving() as url,
        httpx.AsyncClient(base_url=url, timeout=HANG, trust_env=False, verify=False) as client,
    ):
        for path in ("/api/ps", "/nowhere", "/api/blobs/x"):
            await client.get(path)
        waiting = asyncio.create_task(client.post("/api/chat", json={"model": "llama3.2:1b"}))
        await until(lambda: emulator.scheduler.loading)
        assert len(log.read_text().splitlines()) == 4
        assert not waiting.done()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """With the field, before anything listens."""
    with pytest.raises(OptionError) as refused:
        Emulator(Options(log=tmp_path / "nowhere" / "log"))
    assert refused.value.field == "log"


def test_what_the_environment_says_wrong_is_told(tmp_path: Path) -> None:
    """On standard error, by name, as the daemon tells it in its log; it goes on with the default."""
    with _process(tmp_path / "log", OLLAMA_MAX_QUEUE="many") as (process, line):
        assert "listening" in line
        process.terminate()
        process.wait(HANG)
        assert process.stderr is not None
        assert "OLLAMA_MAX_QUEUE='many', default 512" in process.stderr.read()


@pytest.mark.parametrize(
    "options", [Options(host="0.0.0.0"), Options(models=("nowhere",)), Options(parallel=0)]  # refused
)  # fmt: skip
def test_impossible_settings_are_refused(options: Options) -> None:
    """An address that others can reach, a model that nobody serves, no slot at all."""
    with pytest.raises(OptionError):
        Emulator(options)
