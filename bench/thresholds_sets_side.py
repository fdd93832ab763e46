"""Reads labelled answers and questions of several sets in one form, for bench/thresholds.py.

Each has its document, so that a fold shares none with another, its kind and its language. The corpus' README and
tests/gate/test_judged.py describe the files.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Final

from attribution import kind, read, statement
from batos.gate.carrying import spans_of
from batos.memory.evidence import Evidence, Passage, scores
from batos.memory.passages import passages
from batos.memory.segmentation import sentence_spans
from batos.reckoning.reckon import reckon
from tasks_data_side import read_data
from tasks_side import score

TABLES: Final = Path(__file__).resolve().parents[1] / "tests" / "gate" / "data"
TODAY: Final = "2026-11-28"
#: Questions over several passages, by the set that they count for: three are of one sort.
HOPS: Final = {"hotpot_train100": "hops", "2wiki_train500": "hops", "musique_train100": "hops", "lihua_world": "chats"}
#: Passages beside those that answer, and answers of the same kind.
BESIDE: Final = 7
#: The share of a large set that is taken, as a divisor.
THIN: Final = 3
#: Passages of a long text around what answers, and its characters that are one document.
AROUND, BLOCK = 3, 20_000
#: Kinds of tasks and of rows whose right answers say what a sentence of a document says.
OF_ONE_FACT: Final = frozenset(("lookup", "follow_up", "folder", "fact", "fact wrong", "other notation"))


@dataclass(frozen=True, slots=True)
class Example:
    """A question with the evidence, the places of what answers it, and an answer that is right or wrong, if any.

    A place is the number of a passage with the start and the end of a sentence in its file.
    """

    set: str
    document: str
    kind: str
    language: str
    question: str
    evidence: Evidence
    gold: tuple[tuple[int, int, int], ...] = ()
    answer: str = ""
    is_right: bool = True
    computed: str = ""

    @property
    def key(self) -> tuple[str, str, str, bool]:
        """Return what tells it from others."""
        return self.document, self.question, self.answer, self.is_right


def fold_of(text: str, folds: int) -> int:
    """Return a number below `folds` for a name: always the same, whatever else there is."""
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % folds


def is_taken(text: str) -> bool:
    """Test if an entry of a large set is taken."""
    return fold_of(f"thin {text}", THIN) == 0


def quality(corpus: Path) -> Iterator[Example]:
    """Yield right and wrong statements, and answers alone, to questions to articles; the article is the evidence."""
    path = corpus / "quality" / "dev.jsonl"
    texts, items = read(path, quick=False)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    articles: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        number = texts.index(row["context"])
        if number not in articles[row["title"]]:
            articles[row["title"]].append(number)
    evidence = {
        title: Evidence(tuple(Passage(each + 1, "passage", "0" * 64, 0, texts[each]) for each in numbers))
        for title, numbers in articles.items()
    }
    for row, item in zip(rows, items, strict=True):
        gold = tuple((item.passage + 1, *span) for span in _spans_with(texts[item.passage], item.start))
        told = Example("quality", row["title"], "", "en", item.question, evidence[row["title"]], gold)
        yield from _statements(told, item.answer, item.wrong)


def _statements(told: Example, answer: str, wrong: str | None) -> Iterator[Example]:
    """Yield the right and the wrong answer to a question, each as a statement and alone."""
    of = kind(answer) or "other"
    for is_right, each in ((True, answer), (False, wrong)):
        if each:
            said = statement(told.question, each)
            yield replace(told, kind=f"{of} stated", answer=said, is_right=is_right)
            yield replace(told, kind=f"{of} alone", answer=each, is_right=is_right)


def _spans_with(text: str, place: int) -> list[tuple[int, int]]:
    return [(start, end) for start, end in sentence_spans(text) if start <= place < end]


def hops(corpus: Path) -> Iterator[Example]:
    """Yield the same for questions whose words stand in several passages, among passages that do not answer them."""
    for name, of in HOPS.items():
        folder = corpus / "retrieval" / name
        pages = {row["id"]: row for row in _rows(folder / "corpus.jsonl")}
        order = list(pages)
        rows = [row for row in _rows(folder / "queries.jsonl") if _is_found(row, pages)]
        group = group_rows(rows)
        for row in rows:
            if len(rows) < 2 * THIN * BESIDE or is_taken(row["id"]):
                yield from _hop(of, row, pages, order, group[row["id"]])


def _is_found(row: Mapping[str, Any], pages: Mapping[str, Any]) -> bool:
    answer = row["answer"].casefold()
    gold = [each for each in row["gold_ids"] if each in pages]
    return answer not in ("yes", "no") and any(answer in pages[each]["text"].casefold() for each in gold)


def group_rows(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the name of a group for each question: questions that share a passage are in the same one."""
    parent: dict[str, str] = {}

    def root(each: str) -> str:
        while parent.setdefault(each, each) != each:
            each = parent[each]
        return each

    for row in rows:
        first, *others = row["gold_ids"]
        for other in others:
            parent[root(other)] = root(first)
    return {row["id"]: root(row["gold_ids"][0]) for row in rows}


def _hop(
    name: str, row: Mapping[str, Any], pages: Mapping[str, Any], order: Sequence[str], document: str
) -> Iterator[Example]:
    own = [each for each in row["gold_ids"] if each in pages]
    at = order.index(own[0])
    ids = list(dict.fromkeys((*own, *(order[(at + step) % len(order)] for step in range(1, BESIDE + 1)))))
    ids.sort(key=lambda each: fold_of(each, 1_000))
    shown = [
        Passage(number, each, "0" * 64, 0, pages[each]["text"], document=each) for number, each in enumerate(ids, 1)
    ]
    ranked = scores(shown, row["question"])
    best = max(ranked) or 1.0
    evidence = Evidence(tuple(replace(each, weight=score / best) for each, score in zip(shown, ranked, strict=True)))
    answer = row["answer"].casefold()
    gold = tuple(
        (each.number, start, end)
        for each in evidence.passages
        if each.name in own
        for start, end in sentence_spans(each.text)
        if answer in each.text[start:end].casefold()
    )
    if gold:
        told = Example(name, document, "", "en", row["question"], evidence, gold)
        yield from _statements(told, row["answer"], _rival(row["answer"], [pages[each]["text"] for each in own]))


def _rival(answer: str, texts: Iterable[str]) -> str | None:
    """Return another date, number or name of the same texts."""
    of = kind(answer)
    if of is None:
        return None
    found = {text[start:end] for text in texts for start, end in spans_of(text, of, "English")}  # type: ignore[arg-type]
    others = sorted(each for each in found if each.casefold() not in answer.casefold() and answer not in each)
    return others[fold_of(answer, len(others))] if others else None


def tasks(corpus: Path) -> Iterator[Example]:
    """Yield the right and the wrong answer to each task. A wrong one is left out where no check of a value fails, and
    where the result is computed: the answer to such a question is led by it.
    """
    data = read_data(corpus / "tasks")
    for task in data.tasks:
        files = data.files_of(task)
        evidence = Evidence(passages([(name, "0" * 64, text) for name, text in files.items()]))
        found = reckon(task["question"], evidence.passages, date.fromisoformat(TODAY))
        line = found.line if found else ""
        told = Example("tasks", task["files"][0], task["kind"], task["language"], task["question"], evidence)
        told = replace(told, computed=line)
        yield replace(told, answer=task["expected"])
        if not line and score(task, task["wrong"]).misses_a_value:
            yield replace(told, answer=task["wrong"], is_right=False)


def tables(_: Path) -> Iterator[Example]:
    """Yield the answers of the two tables of tests/gate/data with the verdict that each deserves."""
    for name in ("built", "kept"):
        texts = json.loads((TABLES / f"{name}-documents.json").read_text(encoding="utf-8"))
        for row in _rows(TABLES / f"{name}.jsonl"):
            document = row["document"]
            dated = document.startswith("@")
            found = passages([("note.txt", "a" * 64, document[12:] if dated else texts.get(document, ""))])
            evidence = Evidence(tuple(replace(each, day=document[1:11] if dated else "") for each in found))
            told = Example("tables", f"{name} {document}", row["kind"], row["language"], row["question"], evidence)
            right = row["expect"] != "faulty"
            yield replace(told, answer=row["answer"], is_right=right, computed=row.get("computed", ""))


def long_texts(corpus: Path) -> Iterator[Example]:
    """Yield questions to long texts, with some passages around the sentence that answers first."""
    with (corpus / "chunking" / "questions.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            text, whole = _long_text(corpus / "chunking" / f"{row['corpus_id']}.md")
            place = json.loads(row["references"])[0]["start_index"]
            at = next((n for n, each in enumerate(whole) if each.start <= place < each.start + len(each.text)), None)
            if at is not None:
                near = whole[max(0, at - AROUND) : at + AROUND + 1]
                gold = tuple((whole[at].number, *span) for span in _spans_with(text, place))
                document = f"{row['corpus_id']} {place // BLOCK}"
                yield Example("long texts", document, row["corpus_id"], "en", row["question"], Evidence(near), gold)


@cache
def _long_text(path: Path) -> tuple[str, tuple[Passage, ...]]:
    text = path.read_text(encoding="utf-8")
    return text, passages([(path.name, "0" * 64, text)])


def timelines(corpus: Path) -> Iterator[Example]:
    """Yield questions to conversations, with the lines that have a word that the answer must have."""
    for row in _rows(corpus / "statebench" / "train.jsonl"):
        said: list[str] = [each["value"] for each in row["initial_state"]["persistent_facts"]]
        for event in row["events"]:
            if event["type"] == "conversation_turn":
                said.append(event["text"])
            elif event["type"] == "query" and is_taken(row["id"]):
                yield from _question(row, [" ".join(each.split()) for each in said], event)


def _question(row: Mapping[str, Any], said: Sequence[str], event: Mapping[str, Any]) -> Iterator[Example]:
    text = "\n".join(f"- {each}" for each in said)
    wanted = [each.casefold() for each in event["ground_truth"]["must_mention"]]
    spans = [span for span in sentence_spans(text) if any(each in text[slice(*span)].casefold() for each in wanted)]
    if spans:
        evidence = Evidence((Passage(1, "conversation", "0" * 64, 0, text),))
        gold = tuple((1, *span) for span in spans)
        yield Example("timelines", row["track"], row["domain"], "en", event["prompt"], evidence, gold)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        sys.exit(f"no data at {path}: name the corpus' folder with --corpus or in BATOS_CORPUS")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
