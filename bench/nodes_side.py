"""A node of a bench: works on an image that others work on too, with an emulator in a process of its own.

Its lines of stdout are documents: `ready`, and `done` with the moment of each mission that ended.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.events import Events
from batos.protocol.mission_documents import MissionDocument
from batos.uvm import UVM, open_uvm

#: Calls that an emulator answers at once.
SLOTS = 4


@contextmanager
def emulator(latency_ms: float) -> Iterator[str]:
    """Run an emulator that embeds nothing, so that no router has to learn, and yield its address."""
    # A stalled answer has its slot; the emulator's own latency comes before that.
    stall = {"match": {"path": "/api/chat"}, "do": "stall", "times": 10**9, "seconds": latency_ms / 1_000}
    source = (
        "import asyncio\n"
        "from ollama_emulator.emulator import Emulator, Options\n"
        "async def main():\n"
        f"    made = Emulator(Options(parallel={SLOTS}, vram=80.0))\n"
        "    made.faults.add({'match': {'path': '/api/embed'}, 'do': 'status'})\n"
        f"    made.faults.add({stall!r})\n"
        "    async with made.serving() as url:\n"
        "        print(url, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def say(**told: Any) -> None:
    """Write a line for the parent."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


async def work(given: Mapping[str, Any]) -> None:
    """Open the node, and keep as many missions in flight as `load` says."""
    with emulator(given["latency_ms"]) as url:
        settings = Settings(
            home=Path(given["home"]), image=given["image"], journal=given["journal"], ollama_host=url, user="bench",
            install="never", missions=given["missions"], lease=given["lease"], vram="80GiB",
        )  # fmt: skip
        async with open_uvm(settings, Events(log=False)) as uvm:
            await uvm.readiness.genesis()
            uvm.sharing.take_up()
            # A first mission finds out what the model can do: that is not measured.
            await ask(uvm, "Who winds the lamp before the first night?")
            say(ready=uvm.image.fence)
            await asyncio.to_thread(sys.stdin.readline)
            numbers = count()
            await asyncio.gather(*(load(uvm, given["name"], numbers) for _ in range(given["load"])))
            await asyncio.Event().wait()


async def load(uvm: UVM, name: str, numbers: Iterator[int]) -> None:
    """Ask one question after another, for ever."""
    while True:
        found = await ask(uvm, f"How does the keeper of pier {name} trim the wick on night {next(numbers)}?")
        say(done=time.monotonic(), status=found["status"], calls=found["cost"]["calls"])


async def ask(uvm: UVM, text: str) -> MissionDocument:
    """Ask a question that takes five calls, one after another."""
    return await uvm.missions.ask({"text": text, "persona": "BRICK", "effort": "cycle"})


if __name__ == "__main__":
    asyncio.run(work(json.loads(sys.argv[1])))
