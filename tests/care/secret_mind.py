"""A mind that was told a secret: in questions, memories, files, methods, effects, dreams, a chat and the log."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog
from tests.agency.acting import FACET, Acting, acting
from tests.history import lived
from tests.image.installing import install, provenance

from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.known_texts import Incoming
from batos.terminal import logs
from batos.testing import ScriptedBridge, plain_reply

#: Forty bytes that stand nowhere else.
SECRET = "zq7f3a9c1e5b2d8f4a6c0e9b7d3f1a5c8e2b6d4f"
OTHER = "Who mended the pier of Orm?"


def bridge() -> ScriptedBridge:
    """A bridge that says the secret again to whoever told it."""

    def respond(request: ChatRequest) -> str:
        said = "\n".join(each["content"] for each in request.messages)
        if request.schema:
            return str(plain_reply(request))
        return f"I have noted {SECRET}." if SECRET in said.rpartition("\n")[2] else "Maro winds the clockwork."

    return ScriptedBridge(respond, vectors=lived.meaning)


@asynccontextmanager
async def told_mind(place: Path, **how: Any) -> AsyncIterator[tuple[Acting, Path]]:
    """A mind in files with its log, and the home; `bridge` may be another than that of this module."""
    home = place / "home"
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
    with logs.configure("error", "json", home / "logs"):
        async with acting(place, memory=False, **{"bridge": bridge(), **how}) as mind:
            yield mind, home


async def ask(mind: Acting, text: str, **fields: Any) -> str:
    """A mission that is done and remembered."""
    told = await mind.uvm.missions.ask({"text": text, "effort": "reflex", "user": "tester", **fields})
    assert told["status"] == "done", told
    await mind.uvm.mission_memory.write()
    return str(told["id"])


async def tell(mind: Acting, home: Path) -> dict[str, str]:
    """Tell a mind the secret in every way, and return the missions by what they are."""
    uvm = mind.uvm
    missions = {"other": await ask(mind, OTHER, conversation="new")}
    missions["said"] = await ask(mind, f"My key is {SECRET}. Keep it.", conversation="new")
    missions["later"] = await ask(mind, "What did I say before?", conversation="last")
    missions["alone"] = await ask(mind, "What holds a beam of oak?")
    await mind.send("notes", "log.txt", f"The key: {SECRET}")
    await uvm.document_store.remember([memory("key.md", f"The safe opens with {SECRET}. It stands in the hall.")])
    await uvm.document_store.remember([memory("pier.md", " ".join(lived.FACTS))])
    await uvm.backfill.wait(lambda state: None)
    await mind.ask("dream_new", brief={"text": f"Dream of {SECRET}.", "effort": "reflex", "user": "tester"})
    missions["file"] = await attached(mind)

    def learn(root: Root) -> None:
        source = f"async def {FACET}(self, query):\n    return 'The key is {SECRET}.'\n"
        install(root, root["brick_prototype_obj"], FACET, source, provenance=provenance([missions["alone"]]))
        root["tools_obj"].note = {"key": [SECRET]}

    await uvm.image.writer.apply(learn)
    structlog.get_logger("batos").info("mission.note", mission=missions["said"], text=f"noted {SECRET}")
    structlog.get_logger("batos").info("mission.note", mission=missions["other"], text="nothing")
    (home / "chat_history").write_text(f"\n# 2026\n+The key is {SECRET}\n\n# 2026\n+Hello\n", encoding="utf-8")
    return missions


async def attached(mind: Acting) -> str:
    """A mission with a long file, which is kept as a blob."""
    data = (f"line {SECRET}\n" + "x" * 70_000).encode()
    digest = hashlib.sha256(data).hexdigest()
    ref = {"name": "long.txt", "media_type": "text/plain", "sha256": digest}
    mind.ask.dispatcher.uploads.each = 10**6
    pieces = [data[at : at + 60_000] for at in range(0, len(data), 60_000)]
    for number, piece in enumerate(pieces):
        await mind.ask("attach", sha256=digest, offset=60_000 * number, data=base64_of(piece))
    brief = {"text": "What is in the file?", "effort": "reflex", "user": "tester", "attachments": [ref]}
    told = await mind.ask("submit", brief=brief, follow=True)
    assert told["status"] == "done", json.dumps(told)[:400]
    await mind.uvm.mission_memory.write()
    return str(told["id"])


def base64_of(data: bytes) -> str:
    """Bytes as the wire has them."""
    return base64.b64encode(data).decode()


def memory(name: str, text: str) -> Incoming:
    """A file to be remembered."""
    return lived.document(name, text)
