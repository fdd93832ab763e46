"""The kernel as a side: a UVM on a home of its own, and fixed replies made from the decisions that it asks for."""

from __future__ import annotations

import json
import logging
import os
import tomllib
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import structlog

from bare_side import CALLS
from batos.config import Settings
from batos.genesis.codex import codex as codices
from batos.genesis.codex.codex import PILLARS
from batos.minds.calls import decisions
from batos.protocol.brief import as_file
from batos.uvm import UVM, open_uvm

PERSONA = "BRICK"
QUESTION = "How does the lighthouse keeper keep the lamp burning through the night?"
_SAID = "The keeper winds the clockwork every four hours, and trims the wick when the flame turns yellow"
_NOWHERE = "The keeper leaves all of this to the seagulls and sleeps"
DOCUMENT = f"""The lamp and its keeper

{_SAID}. The oil is carried up in cans of brass, since tin rusts in the salt air. On nights of fog the bell is rung by
hand, for the clockwork drives the lens and nothing else.

A second keeper sleeps in the room below the gallery. A wire runs from the lens to a small bell over the bed: when the
lens slows, the bell rings, and whoever hears it first climbs the stairs.

In the morning the curtains are drawn around the lens, for the sun through such a glass would set the tower on fire. The
brass is polished, the log is written, and the wick for the next night is cut and laid beside the lamp.
"""


@dataclass(slots=True)
class FsyncCount:
    """Counts the fsyncs of this process and makes them."""

    made: int = 0

    def __call__(self, descriptor: int) -> None:
        self.made += 1
        _fsync(descriptor)


_fsync = os.fsync
FSYNCS = FsyncCount()


def count_fsyncs() -> None:
    """Count every fsync of this process from here on."""
    vars(os)["fsync"] = FSYNCS


def fixed_replies() -> str:
    """Return the null server's replies: the first weave says something that no document carries.

    That fault provokes the one revision, whose request shows the faulty weave and its fault.
    """
    decomposition = decisions.decomposition(len(PILLARS[PERSONA]))
    divided = {f"q{number}": f"{slot}: {QUESTION}" for number, slot in enumerate(PILLARS[PERSONA], start=1)}
    text = json.dumps(divided)
    if decomposition.parse(text).model_dump() != divided:
        raise ValueError("the fixed division is not read back as it was written")
    said = f"{_SAID}."
    rows = [
        {"name": "decomposition", "when": ['"q1":{'], "text": text},
        {"name": "revised", "when": [_head("revise")], "text": said},
        {"name": "woven", "when": [_head("weave")], "text": f"{_NOWHERE}."},
        {"name": "part", "when": [_head("facet")], "text": said},
    ]
    return json.dumps(rows)


def _head(template: str) -> str:
    """Return the words with which a template of the shipped codex begins, as they stand in a request's body."""
    prompts = tomllib.loads(codices.read_shipped()[f"{PERSONA.lower()}.toml"])["prompts"]
    return json.dumps(prompts[template].strip().partition("$")[0].strip(), ensure_ascii=False)[1:-1]


class KernelSide:
    """An open UVM on a fresh home, its genesis done; a mission is asked as every door asks it."""

    name = "kernel"

    def __init__(self, uvm: UVM, stack: AsyncExitStack) -> None:
        self._uvm = uvm
        self._stack = stack
        self._file = as_file("lamp.txt", DOCUMENT.encode())

    @classmethod
    async def open(cls, url: str, home: Path, missions: int) -> Self:
        """Open the image for so many missions at once, with the shipped log level; fsyncs are counted from then on."""
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
        count_fsyncs()
        # The null server answers whatever comes at once, as the other sides take it to; the card has room for it.
        daemon = {"ollama_host": url, "parallel": 8, "vram": "48GiB"}
        settings = Settings.model_validate(
            {"home": home, "missions": missions, "user": "bench", "install": "never", **daemon}
        )
        async with AsyncExitStack() as stack:
            uvm = await stack.enter_async_context(open_uvm(settings))
            await uvm.readiness.genesis()
            return cls(uvm, stack.pop_all())

    async def mission(self, number: int) -> None:
        """Ask one question about one document, a cycle of BRICK, which must have been revised."""
        brief = {"text": f"{QUESTION} (asked the {number}. time)", "persona": PERSONA, "effort": "cycle"}
        shown = await self._uvm.missions.ask(brief, [self._file])
        if shown["status"] != "done" or shown["cost"]["calls"] != CALLS:
            raise RuntimeError(f"the mission ended {shown['status']} after {shown['cost']['calls']} calls: {shown}")

    async def beat(self, *, on: bool) -> None:
        """Let the mind wake by itself from now on, or no more; its job is started as in a server."""
        self._uvm.heartbeat.keep()
        await self._uvm.heartbeat.turn("bench", on=on)

    def size(self) -> int:
        """Return the bytes of the image and the journal on disk."""
        home = self._uvm.settings.home
        return sum((home / name).stat().st_size for name in ("live_image.fs", "journal.fs"))

    async def close(self) -> None:
        """Close the image."""
        await self._stack.aclose()
