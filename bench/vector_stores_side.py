"""Holds the stores that memory is measured beside: SQLite with FTS5 and a table of vectors, and LanceDB."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float32]
#: Finds so many parts for words and a vector.
Ask: TypeAlias = Callable[[str, Matrix, int], object]
#: Takes a folder and batches (documents, the vectors of their parts); returns the parts a second, and how to ask.
Peer: TypeAlias = Callable[[Path, Iterable[tuple[list[str], Matrix]]], tuple[float, Ask]]


def parts_of(texts: Iterable[str]) -> list[str]:
    """Return the parts of documents."""
    return [part for text in texts for part in text.split("\n\n")]


def sqlite(home: Path, batches: Iterable[tuple[list[str], Matrix]]) -> tuple[float, Ask]:
    """Measure SQLite: a commit a batch, full-text by FTS5, vectors in half precision that are compared in memory."""
    database = sqlite3.connect(home / "memory.db")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE VIRTUAL TABLE parts USING fts5(text)")
    database.execute("CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB)")
    spent, first = 0.0, 1
    for texts, matrix in batches:
        began = time.perf_counter()
        rows = list(enumerate(parts_of(texts), start=first))
        with database:
            database.executemany("INSERT INTO parts (rowid, text) VALUES (?, ?)", rows)
            halves = zip(range(first, first + len(rows)), map(bytes, matrix.astype("<f2")), strict=True)
            database.executemany("INSERT INTO vectors VALUES (?, ?)", halves)
        spent, first = spent + time.perf_counter() - began, first + len(rows)
    stored = b"".join(row[0] for row in database.execute("SELECT vector FROM vectors ORDER BY id"))
    held = np.frombuffer(stored, "<f2").reshape(first - 1, -1).astype(np.float32)

    def ask(words: str, vector: Matrix, most: int) -> object:
        query = " OR ".join(f'"{word}"' for word in words.split())
        by_words = database.execute(
            "SELECT rowid, text FROM parts WHERE parts MATCH ? ORDER BY rank LIMIT ?", (query, most)
        ).fetchall()
        scores = held @ vector
        nearest = np.argpartition(-scores, min(most, len(scores) - 1))[:most] + 1
        texts = [
            database.execute("SELECT text FROM parts WHERE rowid = ?", (int(each),)).fetchone() for each in nearest
        ]
        return by_words, texts

    return (first - 1) / spent, ask


def lancedb(home: Path, batches: Iterable[tuple[list[str], Matrix]]) -> tuple[float, Ask]:
    """Measure LanceDB: an append a batch, its full-text index at the end, vectors compared with all."""
    library: Any = import_module("lancedb")
    database = library.connect(home)
    table: Any = None
    spent, first = 0.0, 1
    for texts, matrix in batches:
        began = time.perf_counter()
        rows = [
            {"id": number, "text": text, "vector": vector}
            for number, (text, vector) in enumerate(zip(parts_of(texts), matrix, strict=True), start=first)
        ]
        table = database.create_table("parts", rows) if table is None else (table.add(rows), table)[1]
        spent, first = spent + time.perf_counter() - began, first + len(rows)
    began = time.perf_counter()
    table.create_fts_index("text")
    spent += time.perf_counter() - began

    def ask(words: str, vector: Matrix, most: int) -> object:
        by_words = table.search(words, query_type="fts").limit(most).to_list()
        return by_words, table.search(vector).limit(most).to_list()

    return (first - 1) / spent, ask


PEERS: Mapping[str, Peer] = {"sqlite": sqlite, "lancedb": lancedb}
#: The library of each.
LIBRARIES: Mapping[str, str] = {"sqlite": "sqlite3", "lancedb": "lancedb"}
