"""The kernel as a side: a UVM on a home of its own, and fixed replies made from the decisions that it asks for."""

from __future__ import annotations

import json
import logging
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import structlog
from pydantic import BaseModel

from bare_side import CALLS
from batos.brief import as_file
from batos.codex.codex import PILLARS
from batos.config import Settings
from batos.inference.decisions.schema import Decision
from batos.minds.calls import decisions
from batos.uvm import UVM, open_uvm

PERSONA = "BRICK"
QUESTION = "How does the lighthouse keeper keep the lamp burning through the night?"
_SAID = "The keeper winds the clockwork every four hours, and trims the wick when the flame turns yellow"
_NOWHERE = "the keeper leaves all of this to the seagulls and sleeps"
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
    """Return the null server's replies: every decision valid, the first weave with one quotation that is in no
    document.

    That fault provokes the one revision, whose request shows the faulty weave: by its quotation it is told from it.
    """
    quoted = {"citations": [{"document": 1, "quote": _SAID}]}
    woven = {"answer": f"{_SAID}.", "unanswered": []}
    decomposition = decisions.decomposition(len(PILLARS[PERSONA]))
    part, weave = decisions.PART, decisions.WOVEN
    rows = [
        _row("part", _schema_key(part, "known"), part, {"answer": f"{_SAID}.", "known": True, **quoted}),
        _row("revised", [*_schema_key(weave, "unanswered"), _NOWHERE], weave, {**woven, **quoted}),
        _row(
            "woven",
            _schema_key(weave, "unanswered"),
            weave,
            {**woven, "citations": [{"document": 1, "quote": _NOWHERE}]},
        ),
        _row(
            "decomposition",
            _schema_key(decomposition, "q1"),
            decomposition,
            {f"q{number}": f"{slot}: {QUESTION}" for number, slot in enumerate(PILLARS[PERSONA], start=1)},
        ),
    ]
    return json.dumps(rows)


def _schema_key(decision: Decision[Any], field: str) -> list[str]:
    """Return a text that only a body with this decision's schema holds: the key of a field that the others lack."""
    return [f'"{decision.key(field)}":{{']


def _row(name: str, when: list[str], decision: Decision[Any], value: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps({decision.key(key): value[key] for key in decision.model.model_fields})
    read: BaseModel = decision.parse(text)
    if read.model_dump() != value:
        raise ValueError(f"the fixed reply {name!r} is not read back as it was written")
    return {"name": name, "when": when, "text": text}


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

    def size(self) -> int:
        """Return the bytes of the image and the journal on disk."""
        home = self._uvm.settings.home
        return sum((home / name).stat().st_size for name in ("live_image.fs", "journal.fs"))

    async def close(self) -> None:
        """Close the image."""
        await self._stack.aclose()
