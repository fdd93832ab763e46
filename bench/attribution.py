"""Share of statements for which attribution finds the sentence that carries them, and of wrong ones that it refuses.

The file has a line of JSON for each question, in the format of SQuAD: {"id", "context", "question", "answers":
[{"text", "start"}]}. A statement is the question with the first gold answer put for its question word; the second form
is the answer alone. The evidence is every passage of the file at once, and the gold sentence is the one in which the
answer stands. A wrong statement has another question's answer of the same kind (number, date, name) from the same
passage. `own_passage` is the same with the question's own passage as the only evidence.

`--embedder minilm` adds vectors of all-MiniLM-L6-v2 (bench/minilm_side.py says what it needs), `--embedder hashing` the
emulator's own, which know words and no meanings; their figures stand beside those by words alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from batos.gate.attribution import Attribution, SentenceVectors, answer_sentences, attribute
from batos.gate.evidence_index import EvidenceIndex
from batos.inference.ollama.bridge import Bridge
from batos.memory.evidence import Evidence, Passage
from report import Goal, report
from routing import BESIDE, emulator, missing

QUICK = 24
SEED = 7
EMBEDDER = "all-minilm:latest"
#: Texts of one request for vectors.
BATCH = 64
FORMS = ("statement", "bare")

_QUESTION_WORD = re.compile(
    r"\b(what|who|whom|whose|which|when|where|why|how (?:many|much|long|old|far|often|big|large|high|tall)|how)\b",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\b(?:1[0-9]{3}|20\d\d)\b|january|february|march|april|june|july|august|september|october|november|december"
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|billion)\b"
)
_NAME = re.compile(r"\b[A-Z]")


@dataclass(frozen=True, slots=True)
class Item:
    """A question with its passage, its answer, where the answer stands, and a wrong answer of the same kind if any."""

    question: str
    passage: int
    answer: str
    start: int
    wrong: str | None


Embedded: TypeAlias = Mapping[str, Sequence[float]]


def kind(answer: str) -> str | None:
    """Return if an answer is a date, a number or a name; None if it is none of them."""
    if _DATE.search(answer.lower()):
        return "date"
    if _NUMBER.search(answer.lower()):
        return "number"
    return "name" if _NAME.search(answer) else None


def statement(question: str, answer: str) -> str:
    """Return a question with an answer put for its question word, or at its end."""
    bare = re.sub(r"\?+([\"'”’]?)\s*\Z", r"\1", question.strip())
    found = _QUESTION_WORD.search(bare)
    return f"{bare[: found.start()]}{answer}{bare[found.end() :]}" if found else f"{bare} {answer}"


def read(path: Path, *, quick: bool) -> tuple[list[str], list[Item]]:
    """Return the passages of a file and its items; of a quick run the first few."""
    if not path.is_file():
        sys.exit(f"no questions at {path}: name a file with --data, or the corpus' folder in BATOS_CORPUS")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = rows[:QUICK] if quick else rows
    passages = list(dict.fromkeys(row["context"] for row in rows))
    others: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        others[row["context"]].append(row["answers"][0]["text"])
    chance = random.Random(SEED)  # a draw that is the same each time
    items = []
    for row in rows:
        answer = row["answers"][0]
        wrong = _wrong(answer["text"], others[row["context"]], chance)
        items.append(Item(row["question"], passages.index(row["context"]), answer["text"], answer["start"], wrong))
    return passages, items


def _wrong(answer: str, others: Iterable[str], chance: random.Random) -> str | None:
    own, of = answer.lower(), kind(answer)
    found = [each for each in others if kind(each) == of and each.lower() not in own and own not in each.lower()]
    return chance.choice(found) if of and found else None


def index_of(passages: Mapping[int, str]) -> EvidenceIndex:
    """Return the index of passages by their number."""
    return EvidenceIndex(
        Evidence(tuple(Passage(number + 1, "passage", "0" * 64, 0, text) for number, text in passages.items()))
    )


def answer_text(item: Item, answer: str, form: str) -> str:
    """Return an answer in a form."""
    return statement(item.question, answer) if form == "statement" else answer


def vectors_of(text: str, index: EvidenceIndex, embedded: Embedded | None) -> SentenceVectors | None:
    """Return the vectors of an answer's sentences and of the evidence, if there are any."""
    if embedded is None:
        return None
    own = [embedded[text[start:end]] for start, end in answer_sentences(text)]
    return SentenceVectors(own, [embedded[each.quote] for each in index.sentences])


def measure(
    items: Sequence[Item], indexes: Sequence[EvidenceIndex], form: str, embedded: Embedded | None
) -> dict[str, Any]:
    """Return precision, recall, the share of wrong answers that is refused, and the times; an index for each item."""
    right = carried = carriers = refused = wrong = 0
    times: list[float] = []
    for item, index in zip(items, indexes, strict=True):
        text = answer_text(item, item.answer, form)
        vectors = vectors_of(text, index, embedded)
        began = time.perf_counter()
        found = attribute(text, item.question, index, vectors=vectors)
        times.append((time.perf_counter() - began) * 1000)
        hits = [_is_gold(item, carrier.document, carrier.start, carrier.end) for carrier in _carriers(found)]
        carried, carriers, right = carried + bool(hits), carriers + len(hits), right + any(hits)
        if item.wrong is not None:
            text = answer_text(item, item.wrong, form)
            wrong += 1
            refused += not _carriers(attribute(text, item.question, index, vectors=vectors_of(text, index, embedded)))
    return {
        "precision": _share(right, carried),
        "recall": _share(right, len(items)),
        "not_carried": _share(refused, wrong),
        "ms": round(statistics.fmean(times), 3),
        "ms_p99": round(sorted(times)[int(len(times) * 0.99)], 3),
        "carriers": _share(carriers, carried),
    }


def _carriers(found: Attribution) -> list[Any]:
    return [carrier for each in found.sentences for carrier in each.carriers]


def _is_gold(item: Item, document: int, start: int, end: int) -> bool:
    return document == item.passage + 1 and start <= item.start < end


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


async def embed(host: str, texts: Sequence[str]) -> Embedded:
    """Return the vector of each text."""
    found: dict[str, Sequence[float]] = {}
    async with Bridge(host) as bridge:
        for at in range(0, len(texts), BATCH):
            batch = texts[at : at + BATCH]
            found.update(zip(batch, (await bridge.embed(EMBEDDER, batch)).vectors, strict=True))
            print(f"\r{len(found)} of {len(texts)} vectors", end="", file=sys.stderr)
    print(file=sys.stderr)
    return found


def texts_of(items: Sequence[Item], index: EvidenceIndex) -> list[str]:
    """Return every sentence that needs a vector, each once."""
    answers = [
        answer_text(item, each, form) for form in FORMS for item in items for each in (item.answer, item.wrong) if each
    ]
    sentences = [text[start:end] for text in answers for start, end in answer_sentences(text)]
    return list(dict.fromkeys([*sentences, *(each.quote for each in index.sentences)]))


def figures_of(passages: Sequence[str], items: Sequence[Item], host: str | None) -> dict[str, Any]:
    """Measure both forms over all passages and over the own one, and with vectors where an embedder is."""
    began = time.perf_counter()
    index = index_of(dict(enumerate(passages)))
    building = (time.perf_counter() - began) * 1000
    everywhere = [index] * len(items)
    alone = [index_of({number: text}) for number, text in enumerate(passages)]
    own = [alone[item.passage] for item in items]
    found = measure(items, everywhere, "statement", None)
    found["bare"] = measure(items, everywhere, "bare", None)
    found["own_passage"] = {form: measure(items, own, form, None) for form in FORMS}
    if host is not None:
        embedded = asyncio.run(embed(host, texts_of(items, index)))
        found["with_embedder"] = {form: measure(items, everywhere, form, embedded) for form in FORMS}
    counts = {"passages": len(passages), "sentences": len(index.sentences), "statements": len(items)}
    return {**found, "wrong": sum(item.wrong is not None for item in items), **counts, "index_ms": round(building, 1)}


def goals(found: Mapping[str, Any]) -> list[Goal]:
    """Return the goals: those of statements by words alone."""
    return [
        Goal("precision", found["precision"], 0.97, "at_least"),
        Goal("recall", found["recall"], 0.93, "at_least"),
        Goal("not_carried", found["not_carried"], 0.55, "at_least"),
        Goal("ms", found["ms"], 5.0),
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description="Measure how well sentences of answers find the evidence that carries them."
    )
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, metavar="FILE", default=corpus / "quality" / "dev.jsonl")
    parser.add_argument(
        "--embedder", choices=("minilm", "hashing", "none"), default="none", help="vectors beside words"
    )
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    passages, items = read(options.data, quick=options.quick)
    absent = missing() if options.embedder == "minilm" else None
    if absent:
        sys.exit(absent)
    if options.embedder == "none":
        found = figures_of(passages, items, None)
    else:
        with emulator(options.embedder) as host:
            found = figures_of(passages, items, host)
    report({**found, "embedder": options.embedder}, goals(found), options.json)


if __name__ == "__main__":
    main()
