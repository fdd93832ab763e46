"""Measures what memory costs as it grows: ingest, search, opening, memory and disk, beside two other stores.

Documents of ten parts, a hundred words each (by Zipf's law), are remembered in batches, each with vectors that a model
would have made (clustered, 384 numbers): the time of a model is not in it. Then a fresh process opens the image,
answers its first question and many more, by words and by vectors at once, and a server answers one. Beside it: SQLite
with FTS5 and a table of vectors that are compared in memory, and LanceDB where it is installed (`make EXTRAS=dev,bench
venv`).
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos import Client
from batos.client import addresses
from batos.image.ids import document_id, iso, utc_now
from batos.image.image import LivingImage, Opening
from batos.memory import backfill
from batos.memory.document_store import DocumentStore
from batos.memory.exchanges import MEMORABLE, IndexedDocument, pack
from batos.memory.records.memory_records import ChunkText, NewDocument
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery, VectorQuery
from batos.memory.search.metadata import MemoryReach
from batos.missions.commits import VOTERS
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.testing import ScriptedBridge, scripted_uvm
from report import Goal, report
from vector_stores_side import LIBRARIES, PEERS

DIGEST, DIMENSIONS, CLUSTERS = "a model's digest", 384, 200
WORDS, PART_WORDS, PARTS, BATCH = 200_000, 100, 10, 64
FOUND, QUERY_WORDS = 20, 8
INGEST, QUERY_MS, OPENING, RSS_MB = 3_000, 15.0, 2.0, 400
MILLION = 1_000_000
#: Texts that a mission gives to memory, and how many times a commit without them theirs may take.
CONTRIBUTED, COMMIT_RATIO = 100, 2.0
HARBOUR = Path(__file__).resolve().parents[1] / "examples" / "harbour.txt"

Matrix: TypeAlias = NDArray[np.float32]
#: Runs a part of this bench in a home, with flags, and returns what it tells.
Run: TypeAlias = Callable[..., dict[str, Any]]


class Texts:
    """Documents that are made up: the same for the same seed."""

    def __init__(self, seed: int = 7) -> None:
        self._chance = np.random.default_rng(seed)
        weights = 1 / np.arange(1, WORDS + 1)
        self._shares = np.cumsum(weights / weights.sum())
        self._centers = self._chance.standard_normal((CLUSTERS, DIMENSIONS)).astype(np.float32)

    def seed(self, seed: int) -> None:
        """Begin again: what comes next follows from the seed alone."""
        self._chance = np.random.default_rng(seed)

    def words(self, many: int) -> list[str]:
        """Return so many words, the common ones often."""
        found: NDArray[np.int64] = np.asarray(np.searchsorted(self._shares, self._chance.random(many)))
        return [f"{'aeiou'[number % 5]}w{number:x}" for number in found.tolist()]

    def text(self) -> str:
        """Return a document's text."""
        return "\n\n".join(" ".join(self.words(PART_WORDS)).capitalize() + "." for _ in range(PARTS))

    def vectors(self, many: int) -> Matrix:
        """Return vectors of length 1, in clusters."""
        noise = self._chance.standard_normal((many, DIMENSIONS)).astype(np.float32)
        found = self._centers[self._chance.integers(0, CLUSTERS, many)] + noise
        normal: Matrix = found / np.linalg.norm(found, axis=1, keepdims=True)
        return normal


def batches(chunks: int) -> Iterator[tuple[list[str], Matrix]]:
    """Yield batches of texts with the vectors of their parts, as many parts as asked for."""
    made = Texts()
    for begin in range(0, chunks // PARTS, BATCH):
        texts = [made.text() for _ in range(min(BATCH, chunks // PARTS - begin))]
        yield texts, made.vectors(len(texts) * PARTS)


def queries(many: int) -> list[tuple[str, Matrix]]:
    """Return questions: words, and a vector."""
    made = Texts(seed=11)
    return [(" ".join(made.words(QUERY_WORDS)), made.vectors(1)[0]) for _ in range(many)]


def document(text: str) -> NewDocument:
    """Return a text as a document of its paragraphs."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    parts, start = [], 0
    for each in text.split("\n\n"):
        parts.append(ChunkText(start, "", each))
        start += len(each) + 2
    now = utc_now()
    return NewDocument(
        document_id(now), "user", "default", f"/{digest}", "A title", "text/plain", digest, len(text), "external",
        iso(now), tuple(parts),
    )  # fmt: skip


async def ingest(home: Path, chunks: int) -> float:
    """Remember so many parts, and return how many a second."""
    image = LivingImage(Opening(f"file://{home}/live_image.fs", f"file://{home}/journal.fs"))
    try:
        await image.prepare()
        store = DocumentStore(image, utc_now)
        spent, first = 0.0, 1
        for texts, matrix in batches(chunks):
            documents = [document(text) for text in texts]
            began = time.perf_counter()
            await store.add(documents)
            count = len(matrix)
            numbers = range(first, first + count)
            await image.writer.apply(partial(backfill.add_vectors, digest=DIGEST, numbers=numbers, matrix=matrix))
            await store.merge()
            spent, first = spent + time.perf_counter() - began, first + count
        return (first - 1) / spent
    finally:
        await asyncio.to_thread(image.close)


async def answer(home: Path, many: int) -> dict[str, Any]:
    """Open an image, and time the first answer and the ones after it."""
    asked = queries(many + 1)
    began = time.perf_counter()
    image = LivingImage(Opening(f"file://{home}/live_image.fs", f"file://{home}/journal.fs"))
    await image.prepare()
    search, spent = ChunkSearch(), []
    try:
        for number, (words, vector) in enumerate(asked):
            if number:
                began = time.perf_counter()
            with image.snapshot() as root:
                hybrid(search, root, words, vector)
            spent.append(time.perf_counter() - began)
    finally:
        await asyncio.to_thread(image.close)
    return {"opening_s": round(spent[0], 3), **percentiles(spent[1:]), "rss_mb": rss_mb()}


def hybrid(search: ChunkSearch, root: Any, words: str, vector: Matrix) -> list[Any]:
    """Return the best parts by words, vectors and links, with their texts loaded."""
    query = RecallQuery(words, VectorQuery(DIGEST, vector))
    return list(search.recall(root, query, MemoryReach("user"), FOUND).best(FOUND))


def serve(home: Path) -> dict[str, float]:
    """Return the memory in MB of a server that has begun on the image, and of one that has answered a question."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("BATOS_", "OLLAMA_"))}
    environ = {**own, "BATOS_HOME": str(home), "BATOS_USER": "user", "OLLAMA_HOST": "http://127.0.0.1:9"}  # no daemon
    environ["BATOS_HTTP"] = "off"
    batos = (sys.executable, "-m", "batos")
    places = ("--bind", "tcp://127.0.0.1:*", "--events", "tcp://127.0.0.1:*")
    with subprocess.Popen([*batos, "serve", "-q", *places], env=environ) as server:
        try:
            while addresses.running_server(home) is None:
                if server.poll() is not None:
                    raise RuntimeError("the server did not start")
                time.sleep(0.05)
            before = rss_mb(server.pid)
            words, _ = queries(1)[0]
            with Client(home) as client:
                if not client.call("recall", {"query": words})["recalled"]:
                    raise RuntimeError("the server recalled nothing")
            return {"server_begun_mb": before, "server_mb": rss_mb(server.pid)}
        finally:
            server.terminate()


async def contribute(home: Path, many: int) -> dict[str, float]:
    """Return the milliseconds of a mission's commit: without memories, and with 100 texts that its methods gave.

    The catalogue writes the documents afterwards, in a commit of its own.
    """
    spent: dict[int, list[float]] = {0: [], CONTRIBUTED: []}
    made = Texts(seed=13)
    answered = await answer_of_a_mission(home / "mission")
    image = LivingImage(Opening(f"file://{home}/missions.fs", "", voters=VOTERS))
    try:
        await image.prepare()
        for number in range(2 * max(3, many // 2)):
            mission = await image.accept({"text": "Why is the sea salt?", "user": "user", "attachments": []})
            with image.transaction(mission) as transaction:
                thought = image.find(transaction.root, mission)[2]
                texts = [" ".join(made.words(PART_WORDS)) for _ in range(number % 2 * CONTRIBUTED)]
                for slot, value in answered.items():
                    setattr(thought, slot, value)
                if texts:
                    given = [IndexedDocument(f"text {number}", each, "model", True) for each in texts]
                    thought.indexed_documents = pack(given)
                began = time.perf_counter()
                await transaction.commit(thought)
                spent[len(texts)].append(time.perf_counter() - began)
    finally:
        await asyncio.to_thread(image.close)
    plain, full = (1e3 * median(spent[count]) for count in (0, CONTRIBUTED))
    return {"commit_ms": round(plain, 2), "commit_100_ms": round(full, 2), "commit_ratio": round(full / plain, 2)}


async def answer_of_a_mission(home: Path) -> dict[str, Any]:
    """Return what the answer of a mission over a file writes: the slots of its thought."""
    file = as_file("harbour.txt", HARBOUR.read_bytes())
    async with scripted_uvm(home, ScriptedBridge()) as uvm:
        told = await uvm.missions.ask({"text": "How was the breach closed?", "effort": "cycle"}, (file,))
        with uvm.image.snapshot() as root:
            return {**own_slots(uvm.image.find(root, told["id"])[2]), "contributions": [(MEMORABLE, {})]}


def percentiles(spent: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile in milliseconds."""
    ordered = sorted(spent)
    return {
        "query_p50_ms": round(1e3 * median(ordered), 2),
        "query_p95_ms": round(1e3 * ordered[int(0.95 * (len(ordered) - 1))], 2),
    }


def rss_mb(process: int | Literal["self"] = "self") -> float:
    """Return the memory that a process has, in MB; where the system does not tell, the most that this one has had."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:  # no Linux
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024, 1)


def size_mb(folder: Path) -> float:
    """Return the bytes of a folder on the disk."""
    return round(sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6, 1)


def in_a_process(what: str, home: Path, *more: object) -> dict[str, Any]:
    """Run a part of this bench in a process of its own, so that its memory is its own."""
    command = [sys.executable, __file__, "--part", what, "--home", str(home), *map(str, more)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": "0"})
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def in_this_process(what: str, home: Path, *more: object) -> dict[str, Any]:
    """Run a part here, where only the shape of what it tells matters."""
    return part(_options().parse_args(["--part", what, "--home", str(home), *map(str, more)]))


def part(given: argparse.Namespace) -> dict[str, Any]:
    """Run one part, as `in_a_process` asks for it."""
    if given.part == "ingest":
        rate = asyncio.run(ingest(given.home, given.chunks))
        return {"ingest_per_s": round(rate), "ingest_rss_mb": rss_mb()}
    if given.part == "contribute":
        return asyncio.run(contribute(given.home, given.queries))
    if given.part == "serve":
        return serve(given.home)
    if given.part == "answer":
        return asyncio.run(answer(given.home, given.queries))
    peer = PEERS[given.part]
    rate, ask = peer(given.home, batches(given.chunks))
    spent = []
    for words, vector in queries(given.queries):
        began = time.perf_counter()
        ask(words, vector, FOUND)
        spent.append(time.perf_counter() - began)
    return {"ingest_per_s": round(rate), **percentiles(spent), "rss_mb": rss_mb()}


def measure(sizes: Sequence[int], many: int, run: Run = in_a_process) -> dict[str, Any]:
    """Measure ours and the others at each size."""
    told: dict[str, Any] = {}
    for chunks in sizes:
        with tempfile.TemporaryDirectory(prefix="batos-scale-") as folder:
            home = Path(folder, "ours")
            home.mkdir()
            flags = ("--chunks", chunks, "--queries", many)
            row = run("ingest", home, *flags)
            row |= {**run("answer", home, *flags), **run("serve", home, *flags)}
            row["disk_mb"] = size_mb(home)
            row |= run("contribute", home, *flags)
            told[str(chunks)] = {"ours": row, **peers(Path(folder), flags)}
        print(chunks, json.dumps(told[str(chunks)]), file=sys.stderr)
    return told


def peers(folder: Path, flags: Sequence[object]) -> dict[str, Any]:
    """Measure the others that are installed."""
    told: dict[str, Any] = {}
    for name in PEERS:
        if find_spec(LIBRARIES[name]) is None:
            print(f"{name} is not installed: make EXTRAS=dev,bench venv", file=sys.stderr)
            continue
        home = folder / name
        home.mkdir()
        told[name] = {**in_a_process(name, home, *flags), "disk_mb": size_mb(home)}
    return told


def goals_of(told: Mapping[str, Any]) -> list[Goal]:
    """Return the goals, for the largest size up to 100,000 parts."""
    size = max((size for size in map(int, told) if size < MILLION), default=0)
    if not size:
        return []
    ours = told[str(size)]["ours"]
    return [
        Goal("parts remembered a second", ours["ingest_per_s"], INGEST, "at_least"),
        Goal("ms of a query by words and vectors, median", ours["query_p50_ms"], QUERY_MS),
        Goal("seconds until an opened image has answered", ours["opening_s"], OPENING),
        Goal("MB of a process that answers", ours["rss_mb"], RSS_MB),
        Goal("MB of a server that has answered", ours["server_mb"], RSS_MB),
        Goal("times a commit without, of one with 100 memories", ours["commit_ratio"], COMMIT_RATIO),
    ]


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", default="10000,100000", help="parts, by commas; 1000000 takes half an hour")
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--quick", action="store_true", help="few parts: the shape alone")
    options.add_argument("--json", type=Path, help="write the document there too")
    for hidden, kind in (("--part", str), ("--home", Path), ("--chunks", int)):
        options.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    given = _options().parse_args(arguments)
    if given.part:
        print(json.dumps(part(given)))
        return 0
    sizes = [int(each) for each in given.sizes.split(",")]
    told = measure([100], 3, in_this_process) if given.quick else measure(sizes, given.queries)
    report({"sizes": told}, goals_of(told), given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
