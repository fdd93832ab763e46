"""Conversations for tests: turns written straight into an image, and a recorder that answers by a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.minds.scripted import change

from batos.image import roots
from batos.image.ids import conversation_id, iso, mission_id, utc_now
from batos.image.records import Brief, Status
from batos.inference.ollama.bridge import ChatRequest
from batos.objects.prototype import UvmObject
from batos.protocol.errors import BatosError
from batos.uvm import UVM

#: How many turns one commit of a test's conversation holds.
BATCH = 2_000


async def write_turns(
    uvm: UVM, turns: Sequence[tuple[str, str]], user: str = "tester", trust: str = "model", name: str = ""
) -> str:
    """A conversation, or the one of that name, with these questions and answers behind what it has.

    They are written as missions that are done; no model is asked.
    """
    name = name or conversation_id(utc_now())
    for start in range(0, len(turns), BATCH):
        batch = turns[start : start + BATCH]
        await change(uvm, lambda root, batch=batch: _write(root, name, batch, user, trust))  # type: ignore[misc]
    return name


def _write(root: Any, name: str, turns: Sequence[tuple[str, str]], user: str, trust: str) -> None:
    conversation, missions = roots.conversation(root, name, user), root[roots.MISSIONS]
    newest = missions.maxKey() if missions else ""
    for question, answer in turns:
        newest = mission_id(utc_now(), newest)
        missions[newest] = _mission(newest, {"conversation": name, "text": question, "user": user}, answer, trust)
        roots.move_tally(root, newest, None, "done")
        kept = conversation.turns
        kept[kept.maxKey() + 1 if kept else 1] = newest


def _mission(name: str, brief: dict[str, Any], answer: str, trust: str) -> tuple[Brief, Status, UvmObject]:
    now = iso(utc_now())
    status = Status("done", now)
    status.published = True
    route = {"personas": ["BRICK"], "effort": "reflex", "confidence": 1.0, "reason": "", "scores": {}}
    slots = {"mission": name, "answer": answer, "lineage_trust": trust, "trust": "model", "route": route}
    value = {"id": name, "attachments": [], "origin": {"door": "cli", "client": "tests"}, **brief}
    return Brief(value, now), status, UvmObject(slots)


def exchanges(number: int, size: int = 200) -> list[tuple[str, str]]:
    """So many turns, each with a name and a number of its own, of about so many bytes."""
    return [
        (
            f"Question {place} to Anna Lund about jar {1000 + place}?",
            f"Jar {1000 + place} is sealed. " + "x " * (size // 2),
        )
        for place in range(1, number + 1)
    ]


def is_record(request: ChatRequest) -> bool:
    """Whether a request asks for a record of turns."""
    return request.schema is not None and list(request.schema["properties"]) == ["record"]


def recording(
    record: Callable[[ChatRequest], str | BatosError], otherwise: Callable[[ChatRequest], str | BatosError]
) -> Callable[[ChatRequest], str | BatosError]:
    """Answers records by one function, all else by another."""

    def respond(request: ChatRequest) -> str | BatosError:
        if not is_record(request):
            return otherwise(request)
        said = record(request)
        return said if isinstance(said, BatosError) else json.dumps({"record": said})

    return respond
