"""Measures whether memory stays small under endless ingest, and whether all that was said once stays within reach.

Files of ten parts are remembered month after month, each part of five sentences (words by Zipf's law); each file has a
word that no other has. A fifth of a month's files are older ones with another last part, which take their place, and a
fifth are copies of others of that month with a sentence more. After each month the curator folds what is cold or
redundant, and the process answers questions. At the end sentences are looked for by the words that they alone have,
also in the archives; then a fresh process opens the image.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from batos.autotelic.curator import CurationWish, Curator
from batos.events import Events
from batos.image.ids import document_id, iso
from batos.image.image import LivingImage, Opening
from batos.memory import backfill
from batos.memory.document_store import DocumentStore
from batos.memory.fold_store import FoldStore
from batos.memory.records import memory_records, memory_segments
from batos.memory.records.memory_records import NewDocument
from batos.memory.search.chunk_search import ChunkSearch, RecallQuery
from batos.memory.search.metadata import OWN_WORDS, WITH_SUMMARISED, MemoryReach
from memory_scale import DIGEST, PARTS, Texts, document, hybrid, in_a_process, in_this_process, queries, rss_mb, size_mb
from report import Goal, report

MONTH = timedelta(days=31)
SENTENCES, SENTENCE_WORDS, BATCH = 5, 20, 64
#: The shares of a month's files that are older ones with another part, and that are copies with a few other words.
CHANGED, COPIED = 0.2, 0.2
QUERIES, SAMPLED = 40, 400
GROWTH, OPENING = 1.25, 2.0
ARCHIVED = MemoryReach("user", standings=WITH_SUMMARISED, kinds=OWN_WORDS)


class File(NamedTuple):
    """A file: its number, that of the file whose parts it has, and how often the last part of this has changed."""

    number: int
    base: int
    changes: int

    @property
    def only(self) -> str:
        """Return the word that this file alone has."""
        return f"only{self.number}"


class SaidFiles:
    """The files that there are. Texts are made again from their numbers, so that nothing but memory holds them."""

    def __init__(self) -> None:
        self.files: list[File] = []
        self._made = Texts()

    def month(self, many: int, chance: np.random.Generator) -> Iterator[File]:
        """Yield the files of a month: changed ones, new ones, and copies."""
        before = len(self.files)
        for at in range(many):
            number = len(self.files)
            if at < CHANGED * many and before:
                old = self.files[int(chance.integers(0, before))]
                self.files[old.number] = old._replace(changes=old.changes + 1)
                yield self.files[old.number]
                continue
            copied = at > (1 - COPIED) * many and number > before
            base = self.files[int(chance.integers(before, number))] if copied else File(number, number, 0)
            self.files.append(base._replace(number=number))
            yield self.files[-1]

    def parts(self, file: File) -> list[str]:
        """Return the parts of a file."""
        own = self._sentence(f"own {file.number}", f"in {file.only}")
        first = f"{self._part(f'{file.base} 0')} {own}"
        others = [self._part(f"{file.base} {place}") for place in range(1, PARTS - 1)]
        last = self._part(f"{file.base} {PARTS} {file.changes} {file.number if file.changes else ''}")
        return [first, *others, last]

    def _part(self, seed: str) -> str:
        return " ".join(self._sentence(f"{seed} {each}") for each in range(SENTENCES))

    def _sentence(self, seed: str, more: str = "") -> str:
        self._made.seed(zlib.crc32(seed.encode()))
        return " ".join(filter(None, [*self._made.words(SENTENCE_WORDS), more])).capitalize() + "."

    def vectors(self, many: int) -> Any:
        """Return vectors of so many parts."""
        return self._made.vectors(many)


class Soak:
    """A memory that is filled and curated month by month."""

    def __init__(self, image: LivingImage) -> None:
        self.image = image
        self.said = SaidFiles()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.given = 0
        self.search = ChunkSearch()
        self.store = DocumentStore(image, self.clock)
        folds = FoldStore(image, self.store, self.search, self.clock)
        self.curator = Curator(image, folds, self.clock, Events(log=False))

    def clock(self) -> datetime:
        """Return the time, which the months set."""
        return self.now

    def document(self, file: File) -> NewDocument:
        """Return a file as a document."""
        made = document("\n\n".join(self.said.parts(file)))
        name, place = document_id(self.now), f"/files/{file.number}"
        return replace(made, name=name, at=iso(self.now), source=place, title=f"File {file.number}")

    async def ingest(self, files: int, chance: np.random.Generator) -> float:
        """Remember a month's files with vectors of their parts, and return how many parts a second."""
        month = list(self.said.month(files, chance))
        count, spent = 0, 0.0
        for at in range(0, len(month), BATCH):
            latest = {each.number: each for each in month[at : at + BATCH]}  # a file may change twice
            documents = [self.document(each) for each in latest.values()]
            began = time.perf_counter()
            await self.store.add(documents)
            await self.embed()
            spent += time.perf_counter() - began
            count += sum(len(each.chunks) for each in documents)
        self.given += count
        return count / spent

    async def embed(self) -> None:
        """Give vectors to the parts without one, as the background does."""
        with self.image.snapshot() as root:
            missing = backfill.missing_vectors(root, DIGEST)
        if missing:
            matrix = self.said.vectors(len(missing))
            await self.image.writer.apply(partial(backfill.add_vectors, digest=DIGEST, numbers=missing, matrix=matrix))
            await self.store.merge()

    async def curate(self) -> tuple[int, float]:
        """Fold what is cold or redundant; return the number of regions, and seconds."""
        began = time.perf_counter()
        done = await self.curator.curate(CurationWish("user", 30, 10**6))
        await self.embed()
        return len(done["regions"]), time.perf_counter() - began

    def row(self) -> dict[str, Any]:
        """Return how large the memory is now, and how fast it answers."""
        spent = []
        for words, vector in queries(QUERIES + 1):
            began = time.perf_counter()
            with self.image.snapshot() as root:
                hybrid(self.search, root, words, vector)
            spent.append(1e3 * (time.perf_counter() - began))
        with self.image.snapshot() as root:
            active = memory_records.chunk_count(root)
            size = sum(row.size for _, row in memory_segments.segments_of(root))
        return {
            "given": self.given,
            "active": active,
            "index_mb": round(size / 1e6, 1),
            "rss_mb": rss_mb(),
            "query_p50_ms": round(median(spent[1:]), 2),
        }

    def count_found(self, sampled: int, chance: np.random.Generator) -> tuple[int, int, float]:
        """Look for sentences by the words that they alone have.

        Returns how many of how many are found in their own words, also in archives, and the milliseconds of a search.
        """
        many = len(self.said.files)
        chosen = chance.choice(many, min(sampled, many), replace=False).tolist()
        found, spent = 0, []
        for number in chosen:
            word = self.said.files[number].only
            began = time.perf_counter()
            with self.image.snapshot() as root:
                parts = self.search.recall(root, RecallQuery(word, None, "text"), ARCHIVED, 9).best(9)
                found += any(f" {word}." in each.chunk.text for each in parts)
            spent.append(1e3 * (time.perf_counter() - began))
        return found, len(chosen), round(median(spent), 1)


async def soak(home: Path, chunks: int, months: int, sampled: int, *, curated: bool) -> dict[str, Any]:
    """Fill a memory month by month, and tell what became of it."""
    image = LivingImage(Opening(f"file://{home}/live_image.fs", f"file://{home}/journal.fs"))
    chance = np.random.default_rng(13)
    try:
        await image.prepare()
        run, rows = Soak(image), []
        for month in range(months):
            rate = await run.ingest(chunks // PARTS // months, chance)
            regions, seconds = await run.curate() if curated else (0, 0.0)
            rows.append({**run.row(), "ingest_per_s": round(rate), "regions": regions, "curate_s": round(seconds, 1)})
            print(month + 1, json.dumps(rows[-1]), file=sys.stderr, flush=True)
            run.now += MONTH
        found, of, ms = run.count_found(sampled, chance)
        disk = size_mb(home)
        await asyncio.to_thread(image.db.pack)
        told = {"months": rows, "found": found, "sampled": of, "archive_search_ms": ms, "disk_mb": disk}
    finally:
        await asyncio.to_thread(image.close)
    return told


def goals_of(told: dict[str, Any]) -> list[Goal]:
    """Return the goals: nothing is out of reach, and what is held grows no more from the half on."""
    rows = told["months"]
    half, last = rows[len(rows) // 2 - 1], rows[-1]
    return [
        Goal("share of sentences said once that are found", told["found"] / told["sampled"], 1.0, "at_least"),
        Goal("bytes of the indexes beside those at half of the parts", growth(half, last, "index_mb"), GROWTH),
        Goal("memory of the process beside that at half of the parts", growth(half, last, "rss_mb"), GROWTH),
        Goal("seconds until an opened image has answered", told["opened"]["opening_s"], OPENING),
    ]


def growth(half: dict[str, Any], last: dict[str, Any], name: str) -> float:
    """Return how many times as large a value is at the end as it was at the half."""
    return float(round(last[name] / (half[name] or 1), 3))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and report."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--chunks", type=int, default=100_000, help="parts that are remembered in all")
    options.add_argument("--months", type=int, default=10)
    options.add_argument("--control", action="store_true", help="do not curate")
    options.add_argument("--quick", action="store_true", help="few parts: the shape alone")
    options.add_argument("--json", type=Path, help="write the document there too")
    given = options.parse_args(arguments)
    chunks, months, sampled = (80, 2, 8) if given.quick else (given.chunks, given.months, SAMPLED)
    with tempfile.TemporaryDirectory(prefix="batos-soak-") as folder:
        home = Path(folder)
        told = asyncio.run(soak(home, chunks, months, sampled, curated=not given.control))
        for old in home.glob("*.old"):  # a pack leaves the file as it was beside the new one
            old.unlink()
        told["packed_mb"] = size_mb(home)
        run = in_this_process if given.quick else in_a_process
        told["opened"] = run("answer", home, "--chunks", chunks, "--queries", 10)
    report(told, goals_of(told), given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
