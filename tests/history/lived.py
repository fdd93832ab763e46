"""A home in which something happened, and copies of its image that were stopped at a commit."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.image.installing import install
from ZODB.FileStorage import FileIterator

from batos.image.readable import ReadableImage, open_read_only
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.memory.known_texts import Incoming
from batos.memory.records import memory_segments
from batos.memory.search.chunk_search import RecallQuery, VectorQuery
from batos.memory.search.metadata import MemoryReach
from batos.methods.lifecycle.method_reports import MethodReader
from batos.missions.readings import Readings
from batos.uvm import UVM

FACTS = (
    "The pier of Orm was mended in March by the Velda yard.",
    "The Velda yard closed in May. Its slipway is at Orm.",
    "Maro winds the clockwork of the lamp every four hours.",
    "The sluice gate at Tyne is opened at high water by Maro.",
)
FACET = "tamland_facet_"
QUERIES = ("Who mended the pier of Orm?", "What does Maro do?", "My cat Miso", "Velda yard slipway")


def document(name: str, text: str) -> Incoming:
    """A file to be remembered."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Incoming("tester", "default", f"/docs/{name}", name, "text/markdown", text, digest, "external")


def meaning(text: str) -> list[float]:
    """A vector of a text: how often it has each of some letters."""
    return [1.0 + text.lower().count(letter) for letter in "aeioulmnrst"]


def counting(step: int) -> str:
    """A facet that counts its uses in a slot, in another wording at each step."""
    return (
        f"async def {FACET}(self, query):\n"
        f"    told = await self.infer_('Step {step}: ' + query)\n"
        "    self.visits = getattr(self, 'visits', 0) + 1\n"
        "    self._p_changed = True\n"
        "    return told\n"
    )


def learn(step: int, root: Root) -> None:
    """Give the facet its next revision."""
    install(root, root["brick_prototype_obj"], FACET, counting(step))


async def live(uvm: UVM, seed: int) -> list[str]:
    """Missions, documents, changes of them, forgetting, methods, vectors: in an order that the seed decides.

    The missions' ids are returned.
    """
    dice, missions, store = random.Random(seed), list[str](), uvm.document_store
    for step in range(16):
        told = dice.choice(("ask", "ask", "think", "remember", "remember", "forget", "edit", "method", "embed"))
        held = uvm.readings.memories(99)["memories"]
        if told == "remember" or not held:
            await store.remember([document(f"{step % 5}.md", f"{dice.choice(FACTS)} {dice.choice(FACTS)} {step}.")])
        elif told == "method":
            await uvm.image.writer.apply(partial(learn, step))
        elif told == "embed":
            await uvm.backfill.wait(lambda state: None)
        elif told == "think":
            brief = {"text": dice.choice(QUERIES), "persona": "BRICK", "effort": "cycle"}
            missions.append((await uvm.missions.ask(brief))["id"])
        elif told == "forget":
            await store.forget([dice.choice(held)["document"]])
        elif told == "edit":
            await store.edit(dice.choice(held)["document"], f"{dice.choice(FACTS)} Edited {step}.")
        else:
            brief = {"text": f"My cat is called Miso{step}. {dice.choice(QUERIES)}", "effort": "reflex"}
            missions.append((await uvm.missions.ask(brief | {"conversation": "new"} if step % 3 else brief))["id"])
            if step % 2:
                await uvm.mission_memory.write()
    return missions


def commits(path: Path) -> dict[bytes, int]:
    """The commits of a file, and where each ends."""
    with closing(FileIterator(str(path))) as found:
        return {each.tid: each._tend + 8 for each in found}


def stopped(home: Path, copy: Path, tid: bytes) -> Path:
    """A copy of a home whose files end with this commit, as if the process had been stopped there."""
    copy.mkdir()
    for name in ("live_image.fs", "journal.fs"):
        ends = [end for each, end in commits(home / name).items() if each <= tid]
        with (home / name).open("rb") as file:
            (copy / name).write_bytes(file.read(ends[-1] if ends else 4))
    if (home / "blobs").exists():
        shutil.copytree(home / "blobs", copy / "blobs")
    shutil.copytree(home / "codex", copy / "codex")
    return copy


@contextmanager
def readings_of(uvm: UVM, copy: Path) -> Iterator[Readings]:
    """What reads a stopped copy."""
    uri = f"file://{copy}/live_image.fs"
    with open_read_only(uri, f"file://{copy}/journal.fs") as pair:
        image = ReadableImage(uri, pair.image, pair.journal)
        yield Readings(uvm.settings, image, Entries(pair.journal), MethodReader(image), uvm.clock)


#: The answer to a question by vectors alone.
BY_VECTORS = f"recall vectors {QUERIES[0]}"


def is_something(said: Any) -> bool:
    """Tell if an answer has a method, or a memory."""
    return bool(said["recalled"] if isinstance(said, dict) else said[0])


def said_by_a_copy(uvm: UVM, copy: Path) -> dict[str, Any]:
    """Every answer that reading a stopped copy gives."""
    with readings_of(uvm, copy) as then:
        return all_that_is_said(then)


def all_that_is_said(readings: Readings) -> dict[str, Any]:
    """Every answer that reading the mind gives."""
    names = readings.root_names()
    lines = readings.newest(1_000)
    missions = [each["id"] for each in lines]
    said: dict[str, Any] = {"names": names, "lines": lines}
    for line in readings.lifecycle.list_methods():
        method = line["method"]
        said[f"method {method}"] = readings.lifecycle.describe(method), readings.lifecycle.history(method)
    for name in (*names["objects"], *missions):
        said[f"inspect {name}"] = readings.inspect(name)
    for mission in missions:
        said[f"show {mission}"] = readings.mission(mission), readings.prompts(mission)
        conversation = readings.mission(mission)["brief"].get("conversation")
        if conversation is not None and readings.mission(mission)["status"] == "done":
            said[f"turns {mission}"] = readings.turns(conversation)
    said["methods"] = readings.lifecycle.list_methods(), readings.lifecycle.tools()
    said["memories"] = readings.memories(1_000)
    for each in said["memories"]["memories"]:
        said[f"memory {each['document']}"] = readings.memory(each["document"])
    with readings.image.snapshot() as root:
        digest = next(iter(memory_segments.embedded_digests(root)), "")
    for query in QUERIES:
        for mode in ("linked", "text", "vectors"):
            vector = None if mode == "text" or not digest else VectorQuery(digest, meaning(query))
            found = readings.recall(RecallQuery(query, vector, mode), 10, MemoryReach("tester"))
            said[f"recall {mode} {query}"] = found
    return said
