"""Recall of a state that changes: facts and turns of StateBench are remembered as they come, then asked about.

A data set is a file of timelines, a JSON object a line, or a folder of such files (`train.jsonl`, `dev.jsonl`).
Initial facts and writes are remembered as facts, with their key, source, scope, and what they supersede or depend on;
turns by their conversation and speaker. Each timeline is a user of one image. A query recalls at most 1,500 tokens:
what matches, and behind it the newest facts and turns.

A phrase counts, without regard to case, if it occurs in something that was given before. `needed` is the share of the
phrases that an answer must mention and that were recalled, `forbidden_unmarked` that of the phrases that it must not
mention and that were recalled on a line without a mark, `needed_only_marked` that of needed phrases on marked lines
alone. Beside it in the same run: the five best of all that was given, by BM25. By words alone, no embedder.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import os
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from batos.image.ids import iso, utc_now
from batos.image.image import LivingImage, Opening
from batos.memory.document_store import DocumentStore
from batos.memory.known_texts import Incoming, fact_of
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import RecallView, Recollection
from report import Goal, report

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "corpus"
#: Timelines of a quick run, and the parts and tokens that a query recalls at most.
QUICK, PARTS, TOKENS = 6, 60, 1_500
NEEDED, FORBIDDEN, ONLY_MARKED = 95.0, 5.0, 10.0
#: The beginnings of lines that say that they do not simply hold.
MARKS: Final = ("[superseded", "[out of scope", "[untrusted", "[edited", "[retracted")
#: Tracks in which nothing says of a write that it takes the place of another.
DETECTION: Final = "_detection"
SCOPE: Final = "global"
BEST: Final = 5
_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class GivenText:
    """A text that was given: a fact, or a turn of a conversation."""

    text: str
    at: str
    source: str = ""
    scope: str = SCOPE
    fact: tuple[str, str, tuple[str, ...]] | None = None
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query with the phrases that its answer must mention and must not."""

    prompt: str
    needed: Sequence[str]
    forbidden: Sequence[str]


@dataclass(slots=True)
class Count:
    """The phrases that counted and what became of them, and the tokens of each recall."""

    needed: int = 0
    found: int = 0
    only_marked: int = 0
    forbidden: int = 0
    unmarked: int = 0
    tokens: list[int] = field(default_factory=list)

    def add(self, given: Sequence[GivenText], asked: AskedQuery, text: str) -> None:
        """Count the phrases of a query in the text that was recalled for it."""
        before = "\n".join(each.text.lower() for each in given)
        lines = text.lower().splitlines()
        plain = "\n".join(line for line in lines if not line.startswith(MARKS))
        whole = "\n".join(lines)
        for phrase in [each.lower() for each in asked.needed if each.lower() in before]:
            self.needed += 1
            self.found += phrase in whole
            self.only_marked += phrase in whole and phrase not in plain
        for phrase in [each.lower() for each in asked.forbidden if each.lower() in before]:
            self.forbidden += 1
            self.unmarked += phrase in plain
        self.tokens.append(tokens_of(text))

    def shares(self) -> dict[str, Any]:
        """Return the percentages, and what they are of."""
        return {
            "needed": _percent(self.found, self.needed),
            "forbidden_unmarked": _percent(self.unmarked, self.forbidden),
            "needed_only_marked": _percent(self.only_marked, self.needed),
            "counted": [self.needed, self.forbidden],
            "tokens": round(statistics.fmean(self.tokens)) if self.tokens else 0,
        }


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def tokens_of(text: str) -> int:
    """Return about how many tokens a model reads in a text, rather too many: each word and sign, or four letters."""
    return max(len(_TOKEN.findall(text)), math.ceil(len(text) / 4))


def read_timelines(data: Path, *, quick: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the timelines of a file or folder, each with the name of its file."""
    files = [data] if data.is_file() else sorted(data.glob("*.jsonl"))
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        step = max(1, len(lines) // QUICK)
        for line in lines[::step][:QUICK] if quick else lines:
            yield file.stem, json.loads(line)


def _fact(row: Mapping[str, Any], at: str) -> GivenText:
    source = row.get("source") or {}
    where = "/".join(filter(None, (source.get("type"), source.get("identity"), source.get("authority"))))
    fact = (row["key"], row.get("supersedes") or "", tuple(row.get("depends_on") or ()))
    return GivenText(str(row["value"]), at, where, row.get("scope") or SCOPE, fact)


def events_of(timeline: Mapping[str, Any]) -> Iterator[GivenText | AskedQuery]:
    """Yield what is given and asked, in order."""
    for row in timeline["initial_state"].get("persistent_facts") or ():
        yield _fact(row, row.get("ts") or timeline["events"][0]["ts"])
    for event in timeline["events"]:
        if event["type"] == "conversation_turn":
            yield GivenText(event["text"], event["ts"], speaker=event["speaker"])
        elif event["type"] == "query":
            truth = event["ground_truth"]
            yield AskedQuery(event["prompt"], truth.get("must_mention") or (), truth.get("must_not_mention") or ())
        else:
            yield from (_fact(row, event["ts"]) for row in event.get("writes") or ())


class Memory:
    """An image in which each timeline is a user."""

    def __init__(self, image: LivingImage, *, matching: bool) -> None:
        """Take the image; `matching`: a query recalls what has a word of it, alone."""
        self._image = image
        self._view = RecallView("marked", newest=not matching)
        self._store = DocumentStore(image, utc_now)
        self._recollection = Recollection()

    async def remember(self, user: str, given: GivenText) -> None:
        """Remember a fact or a turn."""
        moment = iso(datetime.fromisoformat(given.at).replace(tzinfo=UTC))
        digest = hashlib.sha256(f"{moment}\0{given.speaker}\0{given.text}".encode()).hexdigest()
        trust = "model" if given.speaker == "assistant" else "user"
        incoming = Incoming(
            user, given.scope, given.source, given.text[:60], "text/plain", given.text, digest, trust,
            "turn", moment, given.speaker, f"c-{user}",
        )  # fmt: skip
        await self._store.remember([fact_of(incoming, *given.fact) if given.fact else incoming])

    async def recall(self, user: str, asked: AskedQuery) -> str:
        """Return what is recalled for a query: whole parts, the best first, as many as the tokens allow."""
        return await asyncio.to_thread(self._recall, user, asked)

    def _recall(self, user: str, asked: AskedQuery) -> str:
        reach = MemoryReach(user, frozenset({SCOPE}))
        with self._image.snapshot() as root:
            query = RecallQuery(asked.prompt)
            page = self._recollection.recall(root, query, reach, PARTS, self._view)
        texts: list[str] = []
        left = TOKENS
        for part in page["recalled"]:
            left -= tokens_of(part["text"]) + 1
            if left < 0:
                break
            texts.append(part["text"])
        return "\n".join(texts)


def best_by_words(given: Sequence[GivenText], prompt: str) -> str:
    """Return the five texts that match a query best by BM25 (k1 1.2, b 0.75), each once."""
    texts = list(dict.fromkeys(each.text for each in given))
    rows = [Counter(_WORD.findall(text.lower())) for text in texts]
    mean = statistics.fmean(sum(row.values()) for row in rows) if rows else 1.0
    scores = [0.0] * len(rows)
    for word in set(_WORD.findall(prompt.lower())):
        holding = sum(word in row for row in rows)
        rare = math.log(1 + (len(rows) - holding + 0.5) / (holding + 0.5))
        for place, row in enumerate(rows):
            if row[word]:
                scores[place] += rare * row[word] * 2.2 / (row[word] + 1.2 * (0.25 + 0.75 * sum(row.values()) / mean))
    order = sorted(range(len(rows)), key=lambda place: -scores[place])
    return "\n".join(texts[place] for place in order[:BEST])


@dataclass(slots=True)
class Counts:
    """The counts of one part of the data: all of it, by track, and the best by words beside."""

    all: Count = field(default_factory=Count)
    words: Count = field(default_factory=Count)
    by_track: defaultdict[str, Count] = field(default_factory=lambda: defaultdict(Count))

    def document(self) -> dict[str, Any]:
        """Return the shares as the report has them."""
        tracks = {name: each.shares() for name, each in sorted(self.by_track.items())}
        found = [each for name, each in self.by_track.items() if name.endswith(DETECTION)]
        of = sum(each.forbidden for each in found)
        detected = {"found": _percent(of - sum(each.unmarked for each in found), of), "of": of}
        return {**self.all.shares(), "by_track": tracks, "detected": detected, "bm25": self.words.shares()}


async def measure(
    timelines: Sequence[tuple[str, Mapping[str, Any]]], show: str = "", *, matching: bool = False
) -> dict[str, Any]:
    """Go through all timelines; `show` is a track whose faults are told on stderr."""
    image = await asyncio.to_thread(LivingImage, Opening("memory://", "memory://journal"))
    parts: defaultdict[str, Counts] = defaultdict(Counts)
    writes, recalls = [], []
    try:
        await image.prepare()
        memory = Memory(image, matching=matching)
        for number, (part, timeline) in enumerate(timelines):
            user, given = f"u{number}", list[GivenText]()
            for each in events_of(timeline):
                began = time.perf_counter()
                if isinstance(each, GivenText):
                    await memory.remember(user, each)
                    writes.append(time.perf_counter() - began)
                    given.append(each)
                    continue
                text = await memory.recall(user, each)
                recalls.append(time.perf_counter() - began)
                words = best_by_words(given, each.prompt)
                for counts in (parts[part], parts["all"]):
                    counts.all.add(given, each, text)
                    counts.by_track[timeline["track"]].add(given, each, text)
                    counts.words.add(given, each, words)
                if show == timeline["track"]:
                    _show(given, each, text)
    finally:
        await asyncio.to_thread(image.close)
    told = parts.pop("all").document()
    told["sets"] = {name: counts.document() for name, counts in parts.items()}
    told["ms"] = {
        "write": round(1000 * statistics.median(writes), 2),
        "recall": round(1000 * statistics.median(recalls), 2),
    }
    return told


def _show(given: Sequence[GivenText], asked: AskedQuery, text: str) -> None:
    one = Count()
    one.add(given, asked, text)
    if one.unmarked or one.found < one.needed or one.only_marked:
        told = {"needed": asked.needed, "forbidden": asked.forbidden, "counts": (one.found, one.needed, one.unmarked)}
        print(f"\n{asked.prompt} {told}\n{text}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    corpus = Path(os.environ.get("BATOS_CORPUS", BESIDE))
    parser.add_argument("--data", type=Path, metavar="DIR", default=corpus / "statebench")
    parser.add_argument("--show", metavar="TRACK", default="", help="tell the faults of this track on stderr")
    parser.add_argument("--matching", action="store_true", help="recall what has a word of the query, alone")
    parser.add_argument("--quick", action="store_true", help="a smoke run: the shape of the report, not its figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report there too")
    options = parser.parse_args(arguments)
    timelines = list(read_timelines(options.data, quick=options.quick))
    if not timelines:
        sys.exit(f"there is no timeline in {options.data}")
    told = asyncio.run(measure(timelines, options.show, matching=options.matching))
    goals = [
        Goal("needed", told["needed"], NEEDED, "at_least"),
        Goal("forbidden_unmarked", told["forbidden_unmarked"], FORBIDDEN),
        Goal("needed_only_marked", told["needed_only_marked"], ONLY_MARKED),
    ]
    report(told, goals, options.json)


if __name__ == "__main__":
    main()
