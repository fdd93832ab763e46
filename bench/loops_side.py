"""Runs missions whose calls are heard token by token, and finds the loops in them by brute force."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from batos.inference.ollama.bridge import Answer, Bridge, ChatRequest
from batos.inference.ollama.chat import REPEATED, chat_body
from batos.inference.ollama.repetition import BLANK_TOKENS, LONGEST_UNIT, LOOP_TOKENS, TIMES
from batos.memory.segmentation import whole_sentences
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, Runaway
from batos.uvm import UVM, Seams
from ollama_emulator.emulator import Emulator, Options
from voice_side import AttachedQuestion, uvm_over

#: Asked without a text: what a small model answers in rows, lines and rounds.
PROMPTS = (
    "Write a table of the numbers from one to thirty with their squares.",
    "Write a Python program that prints a pattern of stars.",
    "Write a poem in which every verse ends with the same line.",
    "List the months of the year, each with the number of its days.",
    "Tell a story about a lighthouse keeper and his sister in ten sentences.",
    "Write a letter to the harbour master about the broken bell.",
    "Write a shopping list for a week with thirty things.",
    "Write a song with a refrain of four lines that comes three times.",
    "Write a JSON list with the names of twelve rivers.",
    "Explain step by step how to mend a clock, in twelve steps.",
    "Write the multiplication table of seven.",
    "Write a dialogue of two sailors who always agree with each other.",
)
#: The most tokens of an answer: what has not begun to repeat itself by then hardly does.
MOST_TOKENS = 400
#: Faults by which the emulator says blanks, or one word, without end.
ENDLESS_WORDS = ("blanks", "repeat")


@dataclass(slots=True)
class HeardCall:
    """A call as the bridge heard it: its request, its pieces, and the answer; None if nothing of it stands."""

    request: ChatRequest
    pieces: list[str] = field(default_factory=list)
    answer: Answer | None = None
    runaway: bool = False

    @property
    def stopped(self) -> bool:
        """Test if the watch stopped it."""
        return self.runaway or (self.answer is not None and self.answer.done_reason == REPEATED)

    def tokens_behind(self) -> int:
        """Return the tokens behind the end of the fourth repetition of the loop in which it ends, 0 without a loop.

        The token at which it was stopped is not among the pieces.
        """
        fourth, at, behind = end_of_fourth("".join(self.pieces)), 0, 0
        for piece in self.pieces if fourth else ():
            behind += at >= fourth
            at += len(piece)
        return behind + self.stopped if fourth else 0

    @property
    def is_run(self) -> bool:
        """Test if it ends in blanks or in one token, which may go on for longer."""
        last = self.pieces[-LOOP_TOKENS:]
        return len(set(last)) == 1 or not "".join(last).strip()

    @property
    def keeps_well(self) -> bool:
        """Test if whole sentences stand of a stopped text, and all behind them is wasted."""
        text = "".join(self.pieces)
        if self.answer is None:
            return self.request.keep is None or not whole_sentences(text, len(text) // (TIMES + 1))
        ends, used = 0, 0
        for piece in self.pieces:
            if ends >= len(self.answer.text):
                break
            ends, used = ends + len(piece), used + 1
        whole = text.startswith(self.answer.text) and whole_sentences(self.answer.text, len(text))
        return bool(whole) and self.answer.wasted >= len(self.pieces) + 1 - used


def end_of_fourth(text: str) -> int:
    """Return where the fourth repetition of the loop ends in which a text ends, the first one's; 0 without a loop."""
    found = []
    for unit in range(1, min(LONGEST_UNIT, len(text) // TIMES) + 1):
        start = len(text) - unit
        while start and text[start - 1] == text[start - 1 + unit]:
            start -= 1
        if len(text) - start >= TIMES * unit:
            found.append(start + TIMES * unit)
    return min(found, default=0)


class HeardBridge(Bridge):
    """The product's bridge, which remembers each call."""

    calls: list[HeardCall]

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Ask a model and remember what was heard."""
        options = {"seed": 1, **request.options}  # the same words when nobody watches
        options["num_predict"] = min(MOST_TOKENS, options.get("num_predict", MOST_TOKENS))
        request = replace(request, options=options)
        call = HeardCall(request)
        self.calls.append(call)

        def on_piece(piece: str) -> None:
            call.pieces.append(piece)
            if on_token is not None:
                on_token(piece)

        try:
            call.answer = await super().think(request, on_piece, stream=stream)
        except Runaway:
            call.runaway = True
            raise
        return call.answer


@dataclass(slots=True)
class LoopTally:
    """The counts of one daemon."""

    missions: int = 0
    failed: int = 0
    calls: list[HeardCall] = field(default_factory=list)
    honest_stopped: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the counts; `missed` are loops that went on to the end of an answer beyond the bound."""
        stopped = [call for call in self.calls if call.stopped]
        loops = [call.tokens_behind() for call in stopped if not call.is_run]
        runs = [call.tokens_behind() for call in stopped if call.is_run]
        tokens = sum(len(call.pieces) for call in self.calls)
        wasted = sum(call.answer.wasted if call.answer else len(call.pieces) for call in self.calls)
        free = [call for call in self.calls if not call.stopped and call.request.schema is None]
        return {
            "missions": self.missions,
            "failed": self.failed,
            "calls": len(self.calls),
            "stopped": len(stopped),
            "stopped_within": max(loops, default=0),
            "runs_within": max(runs, default=0),
            "kept": sum(call.answer is not None for call in stopped),
            "kept_badly": sum(not call.keeps_well for call in stopped),
            "missed": sum(call.tokens_behind() > (BLANK_TOKENS if call.is_run else LOOP_TOKENS) for call in free),
            "honest_stopped": self.honest_stopped,
            "wasted": round(wasted / max(1, tokens), 4),
        }


async def is_honest(url: str, call: HeardCall) -> bool:
    """Ask once more with nobody watching, and test if the loop ends within a round and the answer by itself."""
    body = chat_body(call.request, dict(call.request.options), stream=False)
    async with httpx.AsyncClient(base_url=url, timeout=300, trust_env=False) as client:
        reply = (await client.post("/api/chat", content=json.dumps(body))).json()
    text, heard = str(reply["message"]["content"]), "".join(call.pieces)
    if reply.get("done_reason") != "stop" or not text.startswith(heard):
        return False
    units = (size for size in range(1, len(heard)) if heard[-TIMES * size : -size] == heard[(1 - TIMES) * size :])
    unit = next(units, len(heard))
    return text[len(heard) :][:unit] != heard[-unit:]


async def hear_missions(url: str, questions: Sequence[AttachedQuestion | str]) -> LoopTally:
    """Ask each question by a mission of one call, and on_piece what the model says."""
    tally, bridge = LoopTally(), HeardBridge(url)
    bridge.calls = []
    async with bridge, uvm_over(url, seams=Seams(bridge=bridge)) as uvm:
        bridge.calls.clear()
        for asked in questions:
            tally.missions += 1
            tally.failed += await _ask(uvm, asked) != "done"
    tally.calls = bridge.calls
    for call in filter(lambda each: each.stopped, bridge.calls):
        honest = await is_honest(url, call)
        tally.honest_stopped += honest
        end = json.dumps("".join(call.pieces)[-160:], ensure_ascii=False)
        kept = len(call.answer.text) if call.answer else 0
        print(f"stopped{' and honest' * honest}, {kept} characters kept: {end}", file=sys.stderr, flush=True)
    return tally


async def _ask(uvm: UVM, asked: AttachedQuestion | str) -> str:
    """Return the status of a mission at its end, or the code of the error by which it failed."""
    text = asked if isinstance(asked, str) else asked.text
    files = [] if isinstance(asked, str) else [as_file("text.txt", asked.context.encode())]
    try:
        shown = await uvm.missions.ask({"text": text, "effort": "reflex"}, files)
    except BatosError as error:
        return error.code
    return str(shown["status"])


@asynccontextmanager
async def endless_daemon(folder: Path, fault: str = "") -> AsyncIterator[str]:
    """Serve an emulator whose texts do not end by themselves, or are blanks or one word by a fault."""
    file = folder / f"faults-{fault}.json"
    file.write_text(json.dumps([{"match": {"path": "/api/chat", "every": 1}, "do": fault}] if fault else []))
    async with Emulator(Options(endless=not fault, tok_s=2000.0, faults=file)).serving() as url:
        yield url
