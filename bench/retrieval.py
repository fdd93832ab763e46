"""Recall of memory on questions whose passages are known: by text, by vectors, by both, and with links.

A data set is a folder with `corpus.jsonl` ({"id", "title", "text"}) and `queries.jsonl` ({"question", "gold_ids"});
`--data` names one, or a folder of several. All passages are remembered by the product's own store, get their vectors
from its embedder over the bridge, and are found by its search. Recall@k is the share of a question's passages among the
first k.

`--embedder minilm` offers all-MiniLM-L6-v2 by numpy (bench/minilm_side.py says what it needs), `--gguf FILE` an
embedding model by llama.cpp, `--embedder none` measures words alone. Beside it in the same run: the nearest vectors of
title and text, and bm25s where it is installed (`make EXTRAS=dev,bench venv`).

`--untitled` takes the titles away and shuffles the passages.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.image.ids import utc_now
from batos.image.image import LivingImage, Opening
from batos.image.roots import Root
from batos.inference import model_names
from batos.inference.embedder import Embedder
from batos.inference.ollama.bridge import Bridge
from batos.memory.backfill import VectorBackfill
from batos.memory.document_store import DocumentStore
from batos.memory.known_texts import Incoming
from batos.memory.records.memory_records import chunk_count, find_chunk
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery, VectorQuery
from batos.memory.search.linked_recall import RecallMode
from batos.memory.search.metadata import MemoryReach
from batos.objects.prototype import own_slots
from report import Goal, report
from routing import EMULATORS, MINILM, emulator, missing

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
MODEL: Final = "all-minilm:latest"
MODES: Final[tuple[RecallMode, ...]] = ("text", "vectors", "hybrid", "linked")
DEPTHS: Final = (2, 5, 10)
#: Questions and passages of a quick run.
QUICK = 8
#: Recall@5 in percent to aim at, by the beginning of a set's name; with titles, and without.
GOALS: Final = {"2wiki": 97.0, "hotpot": 97.0, "musique": 70.0}
UNTITLED: Final = {"2wiki": 85.0}
BATCH: Final = 64


@dataclass(frozen=True, slots=True)
class DataSet:
    """Passages by their ids (title and text), and questions with the ids of their passages."""

    name: str
    passages: Mapping[str, tuple[str, str]]
    questions: Sequence[tuple[str, frozenset[str]]]


def read_set(folder: Path, *, untitled: bool, quick: bool) -> DataSet:
    """Read a data set; without titles its passages are shuffled, since their order may tell of them."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = asked[:QUICK] if quick else asked
    if quick:
        wanted = {each for row in asked for each in row["gold_ids"]}
        rows = [row for place, row in enumerate(rows) if row["id"] in wanted or place < QUICK]
    if untitled:
        random.Random(0).shuffle(rows)
    passages = {row["id"]: ("" if untitled else row["title"], row["text"]) for row in rows}
    return DataSet(folder.name, passages, [(row["question"], frozenset(row["gold_ids"])) for row in asked])


def sets_of(data: Path) -> list[Path]:
    """Return the folders of the sets in a folder, or that folder."""
    if (data / "corpus.jsonl").exists():
        return [data]
    found = sorted(each.parent for each in data.glob("*/corpus.jsonl"))
    return [each for each in found if any(each.name.startswith(name) for name in GOALS)] or found


def shares(questions: Sequence[tuple[str, frozenset[str]]], found: Iterable[Sequence[str]]) -> dict[str, float]:
    """Return Recall@k in percent, for each depth."""
    hits: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for (_, gold), ids in zip(questions, found, strict=True):
        for depth in DEPTHS:
            hits[depth].append(len(gold & {*ids[:depth]}) / len(gold))
    return {f"recall@{depth}": round(100 * statistics.fmean(each), 1) for depth, each in hits.items()}


class Memory:
    """The passages of a set in an image, with the vectors of an embedder where there is one."""

    def __init__(self, image: LivingImage, data: DataSet, embedder: Embedder | None) -> None:
        self._image = image
        self._data = data
        self._embedder = embedder
        self._search = ChunkSearch()

    async def remember(self) -> dict[str, float]:
        """Remember all passages; return the seconds of that, and those of the vectors."""
        store = DocumentStore(self._image, utc_now)
        given = [_incoming(name, title, text) for name, (title, text) in self._data.passages.items()]
        began = time.perf_counter()
        for at in range(0, len(given), BATCH):
            await store.remember(given[at : at + BATCH])
        told = {"index_s": round(time.perf_counter() - began, 2)}
        if self._embedder is not None:
            began = time.perf_counter()
            await self._embed(store, self._embedder)
            told["vectors_s"] = round(time.perf_counter() - began, 2)
        return told

    async def _embed(self, store: DocumentStore, embedder: Embedder) -> None:
        async def find() -> Embedder:
            return embedder

        backfill = VectorBackfill(self._image, store, find, lambda: True, lambda state: None)
        backfill.job.start()
        state = await backfill.wait(_tell)
        if state.missing:
            raise RuntimeError(f"the embedder did not serve: {state.reason}")

    async def find(self) -> dict[str, Any]:
        """Ask all questions in each mode; return the recall and the milliseconds of a query, without its vector."""
        vectors = await self._vectors()
        told: dict[str, Any] = {}
        with self._image.snapshot() as root:
            for mode in MODES if vectors else ("text", "linked"):
                spent, found = [], []
                for place, (question, _) in enumerate(self._data.questions):
                    vector = vectors[place] if vectors and mode != "text" else None
                    began = time.perf_counter()
                    found.append(self._ids(root, RecallQuery(question, vector, mode)))
                    spent.append(1000 * (time.perf_counter() - began))
                told[mode] = {**shares(self._data.questions, found), "ms": round(statistics.median(spent), 2)}
        return told

    async def nearest(self) -> dict[str, float] | None:
        """Return the recall of the nearest vectors of title and text, compared by numpy: what a plain store finds."""
        if self._embedder is None:
            return None
        questions = np.array([each.vector for each in await self._vectors()], np.float32)
        with self._image.snapshot() as root:
            chunks = {number: find_chunk(root, number) for number in range(1, chunk_count(root) + 1)}
            numbers, matrix = self._search.vectors_of(root, self._embedder.digest, list(chunks))
            sources = {
                number: own_slots(own_slots(each)["document"])["source"] for number, each in chunks.items() if each
            }
        order = np.argsort(-(questions @ matrix.T), axis=1)[:, : 4 * max(DEPTHS)]
        found = [dict.fromkeys(sources[int(numbers[place])] for place in row) for row in order.tolist()]
        return shares(self._data.questions, [list(each) for each in found])

    def _ids(self, root: Root, query: RecallQuery) -> list[str]:
        """Return the passages of the parts that were found, the best first, each once."""
        found = self._search.recall(root, query, MemoryReach(None), 4 * max(DEPTHS))
        sources = [own_slots(own_slots(each.chunk)["document"])["source"] for each in found.best(4 * max(DEPTHS))]
        return list(dict.fromkeys(sources))

    async def _vectors(self) -> list[VectorQuery]:
        if self._embedder is None:
            return []
        rows = await embed(self._embedder, [question for question, _ in self._data.questions])
        return [VectorQuery(self._embedder.digest, row) for row in rows]


def _incoming(name: str, title: str, text: str) -> Incoming:
    """Return a passage as it is remembered. Its digest is that of its name: a text that stands twice is not one."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return Incoming("bench", "default", name, title, "text/plain", text, digest, "external")


def _tell(state: object) -> None:
    print(f"  {state}", file=sys.stderr)


async def embed(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Return the vectors of texts, batch by batch."""
    rows = [await embedder.vectors(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
    return np.array([row for batch in rows for row in batch], np.float32)


def plain_words(data: DataSet) -> dict[str, float] | None:
    """Return the recall of bm25s with its own stop words; None where it is not installed."""
    try:
        bm25s: Any = import_module("bm25s")
    except ModuleNotFoundError:
        return None
    index = bm25s.BM25()
    texts = [f"{title}\n{text}" for title, text in data.passages.values()]
    index.index(bm25s.tokenize(texts, stopwords="en", show_progress=False), show_progress=False)
    asked = bm25s.tokenize([question for question, _ in data.questions], stopwords="en", show_progress=False)
    places, _ = index.retrieve(asked, k=min(max(DEPTHS), len(texts)), show_progress=False)
    ids = list(data.passages)
    return shares(data.questions, [[ids[place] for place in row] for row in places.tolist()])


async def measure(data: DataSet, host: str | None) -> dict[str, Any]:
    """Measure one set."""
    image = await asyncio.to_thread(LivingImage, Opening("memory://", "memory://journal"))
    try:
        await image.prepare()
        if host is None:
            return await _measure(image, data, None)
        async with Bridge(host) as bridge:
            listed = {row.name: row.digest for row in await bridge.list()}
            return await _measure(image, data, Embedder(bridge, MODEL, listed[model_names.with_tag(MODEL)]))
    finally:
        await asyncio.to_thread(image.close)


async def _measure(image: LivingImage, data: DataSet, embedder: Embedder | None) -> dict[str, Any]:
    memory = Memory(image, data, embedder)
    told: dict[str, Any] = {"passages": len(data.passages), "questions": len(data.questions)}
    told |= await memory.remember()
    told |= await memory.find()
    told["bm25s"] = plain_words(data)
    told["dense"] = await memory.nearest()
    print(data.name, json.dumps(told), file=sys.stderr)
    return told


def goals_of(told: Mapping[str, Mapping[str, Any]], wanted: Mapping[str, float]) -> list[Goal]:
    """Return the goals of the sets that have one."""
    return [
        Goal(f"{name}: recall@5", row["linked"]["recall@5"], goal, "at_least")
        for name, row in told.items()
        for begin, goal in wanted.items()
        if name.startswith(begin)
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, metavar="DIR", default=corpus / "retrieval")
    parser.add_argument("--embedder", choices=("minilm", "hashing", "none"), help="which embedder is offered")
    parser.add_argument("--gguf", metavar="FILE", help="this embedding model, by llama.cpp")
    parser.add_argument("--untitled", action="store_true", help="without titles, the passages shuffled")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    sets = [read_set(each, untitled=options.untitled, quick=options.quick) for each in sets_of(options.data)]
    if not sets:
        sys.exit(f"{options.data} has no set (a corpus.jsonl): name a folder that has with --data or BATOS_CORPUS")
    chosen = options.embedder or ("none" if missing() or options.quick else "minilm")
    if chosen == "minilm" and missing() and not options.gguf:
        sys.exit(missing())
    if options.gguf:
        chosen, EMULATORS["gguf"] = "gguf", (*EMULATORS["hashing"], "--gguf", options.gguf)
    with emulator(chosen) if chosen != "none" else nullcontext(None) as host:
        told = {each.name: asyncio.run(measure(each, host)) for each in sets}
    goals = goals_of(told, UNTITLED if options.untitled else GOALS)
    embedder = MINILM if chosen == "minilm" else Path(options.gguf).name if options.gguf else chosen
    report({"embedder": embedder, "untitled": options.untitled, "sets": told}, goals, options.json)


if __name__ == "__main__":
    main()
