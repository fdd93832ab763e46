"""A bridge that counts what it is paid for, and a journal that can be closed and opened again."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from ZODB.DB import DB
from ZODB.MappingStorage import MappingStorage

from batos.concurrency.threads import CommitThread
from batos.events import Events
from batos.image.classes import class_factory
from batos.image.roots import JournalRoot
from batos.image.writer import Writer
from batos.inference.cost import SpendingLimits
from batos.inference.journal import Journal, Record
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.inference.session import Session, Step

DIGEST = "d" * 64
PLENTY = SpendingLimits(calls=1000, tokens=1_000_000, seconds=86_400.0)


def asked(question: str = "Why?", **changes: Any) -> ChatRequest:
    """A request."""
    given: dict[str, Any] = {
        "model": "robin",
        "messages": ({"role": "system", "content": "s" * 300}, {"role": "user", "content": question}),
        "options": {"num_ctx": 512, "num_predict": 64, "temperature": 0},
    }
    return ChatRequest(**{**given, **changes})


def replied(text: str, **changes: Any) -> Answer:
    """An answer that cost ten tokens and four."""
    given: dict[str, Any] = {
        "text": text,
        "thinking": "",
        "done_reason": "stop",
        "prompt_tokens": 10,
        "answer_tokens": 4,
        "load_seconds": 0.0,
        "total_seconds": 0.5,
    }
    return Answer(**{**given, **changes})


@dataclass
class CountedBridge:
    """Says what `reply` says of a request, or raises it; counts calls begun and answers given, by question."""

    reply: Callable[[ChatRequest], str | Answer | BaseException] = lambda request: (
        f"about {request.messages[-1]['content']}"
    )
    #: Released by the test when calls are to be held; None answers at once.
    gate: asyncio.Event | None = None
    begun: Counter[str] = field(default_factory=Counter)
    given: Counter[str] = field(default_factory=Counter)
    at_once: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """One call."""
        question = identity(request)
        self.begun[question] += 1
        self.at_once[question] += 1
        self.most_at_once = max(self.most_at_once, self.at_once[question])
        try:
            said = self.reply(request)
            if on_token is not None:
                on_token("partly")
            await asyncio.sleep(0)
            if self.gate is not None:
                await self.gate.wait()
            if isinstance(said, BaseException):
                raise said
            if on_token is not None:
                on_token(" and whole")
            self.given[question] += 1
            return said if isinstance(said, Answer) else replied(said)
        finally:
            self.at_once[question] -= 1


def identity(request: ChatRequest) -> str:
    """What tells requests apart here."""
    return json.dumps([request.messages[1:], dict(request.options)], sort_keys=True)


class Desk:
    """A journal in memory that outlives the writers over it, and sessions on it."""

    def __init__(self) -> None:
        self.db = DB(MappingStorage(), class_factory=class_factory)
        self.thread = CommitThread()
        self.writers: list[Writer[JournalRoot]] = []
        self.open()

    def open(self) -> None:
        """A writer as a new process would make it: nothing but the database is left of the last."""
        self.writer: Writer[JournalRoot] = Writer(self.db, self.thread, lambda error: error)
        self.writers.append(self.writer)
        self.journal = Journal(self.db, self.writer)

    def session(self, bridge: Any, earlier: Sequence[str] = ("m-1",), **changes: Any) -> Session:
        """A session of the mission m-1, served from the records of `earlier`."""
        given: dict[str, Any] = {
            "mission": "m-1",
            "journal": self.journal,
            "bridge": bridge,
            "digests": {"robin": DIGEST},
            "limits": PLENTY,
            "events": Events(log=False),
            "earlier": self.journal.read(earlier),
        }
        return Session(**{**given, **changes})

    def records(self, mission: str = "m-1") -> list[Record]:
        """What the journal has of a mission."""
        return self.journal.read([mission])

    def close(self) -> None:
        """Give everything back."""
        self.thread.close()
        for writer in self.writers:
            writer.close()
        self.db.close()


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """A desk, closed behind its user."""
    made = Desk()
    try:
        yield made
    finally:
        made.close()


def step(path: str = "robin/decomposing#0", on_token: Callable[[str], None] | None = None) -> Step:
    """A step."""
    return Step(path, on_token)


async def until(true: Callable[[], object]) -> None:
    """Let the others run until it is so."""
    while not true():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)
