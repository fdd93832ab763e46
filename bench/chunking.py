"""Measures how well cut parts carry what questions need: recall, precision and IoU of characters at five parts.

`--data DIR` has texts (`*.md`) and `questions.csv`: question, references (JSON: the spans that answer it), corpus_id.
The parts of all texts are in one index; a question gets the five nearest by cosine. `structure` is the chunker of
BAT OS. Beside it: recursive cuts of 200 tokens and fixed ones of 400 that overlap by 200, each by the text alone; the
recursive ones with the headings above, as the parts of BAT OS are embedded; the passages of a file that is attached;
and cuts where the topic of the sentences changes (topics_side.py).

all-MiniLM-L6-v2 embeds (bench/minilm_side.py says what it needs), or the model of the Ollama at `--url`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import sys
import urllib.request
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.memory.passages import passages, structural_chunks
from batos.memory.text_units import CHARACTERS, Chunk, chunks_of, units_of
from report import Goal, report
from routing import EMULATORS, emulator, missing
from topics_side import topic_chunks

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
FOUND, BATCH = 5, 32
POINTS, TIMES = 3.0, 1.15
RECURSIVE, TOPICS, STRUCTURE = "recursive 200", "topics", "structure"
MINILM = "all-MiniLM-L6-v2"
SEPARATORS: Final = ("\n\n", "\n", ".", "?", "!", " ", "")

Spans: TypeAlias = list[tuple[int, int]]
Matrix: TypeAlias = NDArray[np.float32]
Embed: TypeAlias = Callable[[Sequence[str]], Matrix]
#: A text, a question about it, and the spans that answer this.
Question: TypeAlias = tuple[str, str, Spans]


class EmbeddingServer:
    """Embeds by /api/embed, each text once."""

    def __init__(self, url: str, model: str) -> None:
        self._url, self._model = url, model
        self._known: dict[str, Matrix] = {}

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return a vector of length one for each text."""
        unknown = sorted({*texts} - self._known.keys(), key=len)
        for at in range(0, len(unknown), BATCH):
            some = unknown[at : at + BATCH]
            body = json.dumps({"model": self._model, "input": some, "truncate": True}).encode()
            asked = urllib.request.Request(f"{self._url}/api/embed", body, {"Content-Type": "application/json"})  # noqa: S310
            with urllib.request.urlopen(asked, timeout=600) as answered:  # noqa: S310
                rows = np.array(json.load(answered)["embeddings"], np.float32)
            self._known.update(zip(some, rows / np.linalg.norm(rows, axis=1, keepdims=True), strict=True))
        return np.array([self._known[text] for text in texts])


def by_words(texts: Sequence[str]) -> Matrix:
    """Embed by the words of a text, without a model: for a quick run."""
    rows: Matrix = np.full((len(texts), 256), 1e-3, np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in re.findall(r"\w+", text.casefold()):
            row[zlib.crc32(word.encode()) % 256] += 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def load(folder: Path) -> tuple[dict[str, str], list[Question]]:
    """Return the texts by their names, and the questions about those that are there."""
    texts = {path.stem: path.read_bytes().decode("utf-8") for path in sorted(folder.glob("*.md"))}
    csv.field_size_limit(2**31 - 1)
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["corpus_id"] in texts]
    return texts, [
        (row["corpus_id"], row["question"], [(r["start_index"], r["end_index"]) for r in json.loads(row["references"])])
        for row in rows
    ]


def recursive_spans(text: str, most: int) -> Spans:
    """Cut at the first separator that a text has, join what fits, and cut what is too long at the next one."""
    spans, at = [], 0
    for part in _split(text, most, SEPARATORS):
        bare = part.strip()
        if bare:
            start = at + part.index(bare)
            spans.append((start, start + len(bare)))
        at += len(part)
    return spans


def _split(text: str, most: int, separators: Sequence[str]) -> Iterator[str]:
    mark = next(each for each in separators if each in text)
    rest = separators[separators.index(mark) + 1 :]
    joined = ""
    for part in filter(None, re.split(f"(?={re.escape(mark)})", text) if mark else text):
        if len(part) >= most and rest:
            yield from filter(None, [joined])
            joined = ""
            yield from _split(part, most, rest)
        elif joined and len(joined) + len(part) > most:
            yield joined
            joined = part
        else:
            joined += part
    yield from filter(None, [joined])


def fixed_spans(text: str, most: int, step: int) -> Spans:
    """Cut everywhere at the same length."""
    return [(at, min(at + most, len(text))) for at in range(0, max(1, len(text) - (most - step)), step)]


def passage_spans(text: str) -> Spans:
    """Cut as a file that is attached to a question is cut."""
    return [(each.start, each.start + len(each.text)) for each in passages([("", "", text)])]


def with_headings(text: str, spans: Spans) -> list[Chunk]:
    """Return spans with the headings that stand above their beginning."""
    units = units_of(text)
    above = chunks_of(text, units, [(at, at + 1) for at in range(len(units))])
    starts = [unit.start for unit in units]
    at = [max(0, int(np.searchsorted(starts, start, "right")) - 1) for start, _ in spans]
    return [
        Chunk(start, end, above[place].heading if above else "") for (start, end), place in zip(spans, at, strict=True)
    ]


def chunkers(embed: Embed) -> Mapping[str, Callable[[str], list[Chunk]]]:
    """Return the chunkers that are compared."""
    size = int(200 * CHARACTERS)

    def topics(text: str) -> list[Chunk]:
        units = units_of(text)
        return topic_chunks(text, units, embed([text[unit.start : unit.end] for unit in units]))

    return {
        RECURSIVE: lambda text: [Chunk(*span, "") for span in recursive_spans(text, size)],
        f"{RECURSIVE} with headings": lambda text: with_headings(text, recursive_spans(text, size)),
        "fixed 400/200": lambda text: [Chunk(*span, "") for span in fixed_spans(text, 2 * size, size)],
        "passages of a file": lambda text: [Chunk(*span, "") for span in passage_spans(text)],
        STRUCTURE: structural_chunks,
        TOPICS: topics,
    }


def measure(
    texts: Mapping[str, str], questions: Sequence[Question], cut: Callable[[str], list[Chunk]], embed: Embed
) -> dict[str, Any]:
    """Return a chunker's figures in percent, over all questions and by text."""
    chunks = [(name, chunk) for name, text in texts.items() for chunk in cut(text)]
    rows = embed(["\n".join(filter(None, (one.heading, texts[name][one.start : one.end]))) for name, one in chunks])
    nearness = embed([question for _, question, _ in questions]) @ rows.T
    found = []
    for (name, _, spans), near in zip(questions, nearness, strict=True):
        best = [chunks[at] for at in np.argsort(-near, kind="stable")[:FOUND]]
        found.append(
            _shares(spans, [(c.start, c.end) for n, c in best if n == name], sum(c.end - c.start for _, c in best))
        )
    of = np.array([name for name, _, _ in questions])
    shares = 100 * np.array(found)
    mean = float(np.mean([chunk.end - chunk.start for _, chunk in chunks]))
    return {
        "chunks": len(chunks),
        "characters": round(mean),
        **_figures_of(shares),
        "by_text": {name: _figures_of(shares[of == name]) for name in texts if (of == name).any()},
    }


def _figures_of(shares: NDArray[Any]) -> dict[str, float]:
    return dict(zip(("recall", "precision", "iou"), np.round(shares.mean(axis=0), 2).tolist(), strict=True))


def _shares(wanted: Spans, got: Spans, length: int) -> tuple[float, float, float]:
    needed = {at for start, end in wanted for at in range(start, end)}
    hit = len(needed & {at for start, end in got for at in range(start, end)})
    return hit / len(needed), hit / max(1, length), hit / (length + len(needed) - hit)


def example_texts() -> tuple[dict[str, str], list[Question]]:
    """Return two small texts and a question about each sentence, for a quick run."""
    texts, questions = {}, []
    for name, things in (("light", ("lamp", "lens", "wick")), ("water", ("pump", "valve", "tank"))):
        text = ""
        for thing in things:
            text += f"# {thing}\n\n"
            for number in range(8):
                line = f"The {thing} of room {number} was mended by keeper {thing}{number}."
                questions.append(
                    (name, f"Who mended the {thing} of room {number}?", [(len(text), len(text) + len(line))])
                )
                text += f"{line} "
            text += "\n\n"
        texts[name] = text
    return texts, questions


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, default=corpus / "chunking", help="the folder of texts and questions")
    parser.add_argument("--url", help="the Ollama that embeds")
    parser.add_argument("--model", default="all-minilm:latest", help="the model that embeds")
    parser.add_argument("--gguf", metavar="FILE", help="this embedding model, by llama.cpp")
    parser.add_argument("--quick", action="store_true", help="two made-up texts, and no model")
    parser.add_argument("--json", type=Path, help="write the document to this file too")
    options = parser.parse_args(arguments)
    if options.quick:
        return _run(*example_texts(), by_words, "words", options.json)
    if not (options.data / "questions.csv").exists():
        sys.exit(f"no questions in {options.data}: name a folder with --data, or the corpus' folder in BATOS_CORPUS")
    if options.url:
        return _run(
            *load(options.data), EmbeddingServer(options.url.rstrip("/"), options.model), options.model, options.json
        )
    if options.gguf:
        EMULATORS["gguf"] = (*EMULATORS["hashing"], "--gguf", options.gguf)
    elif absent := missing():
        sys.exit(absent)
    with emulator("gguf" if options.gguf else "minilm") as url:
        named = Path(options.gguf).name if options.gguf else MINILM
        return _run(*load(options.data), EmbeddingServer(url, options.model), named, options.json)


def _run(
    texts: Mapping[str, str], questions: Sequence[Question], embed: Embed, named: str, json_file: Path | None
) -> int:
    found = {}
    for name, cut in chunkers(embed).items():
        found[name] = each = measure(texts, questions, cut, embed)
        print(f"{name:28} {each['chunks']:5} parts, recall {each['recall']}, IoU {each['iou']}", file=sys.stderr)
    ours, plain = found[STRUCTURE], found[RECURSIVE]
    goals = [
        Goal("recall_points_above_recursive", round(ours["recall"] - plain["recall"], 2), POINTS, "at_least"),
        Goal("iou_times_recursive", round(ours["iou"] / max(plain["iou"], 1e-9), 3), TIMES, "at_least"),
    ]
    report({"embedder": named, "questions": len(questions), "chunkers": found}, goals, json_file)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
