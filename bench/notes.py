"""Answers about one's own notes: whether the right note is shown, what is answered without one, and what is declined.

The data is a folder with `documents/`, in which each file is a note, with `questions.jsonl` ({"question", "note",
"has"}; a note of null: no note answers it) and with `sentences.jsonl` ({"text"}): sentences that are to be answered,
neither declined for want of a note nor taken for something to be noted. `part` tells which questions the thresholds
were fitted on (bench/notes_fit.py); --part takes those of one.

All files are remembered as the verb `remember` does, and each question is a mission of its own, of which nothing stays.
`evidence_right` is the share of questions whose note was shown, `by_vectors` with the vectors of an embedding model and
`by_words` without; `perhaps` the share for which it was shown as perhaps about the matter, and counts as shown.
`shown_for_nothing` is the share of the questions without a note to which a note was shown without that mark.
With a model that writes: `right` is the share of right answers where the note was shown, `invented` the number of
answers to which no note was shown, whose first line does not say so, and which have a number, a date or a name that
stands in no note. `declined_or_noted_wrongly` counts the sentences that were not answered.

    python bench/notes.py [--data DIR] [--gguf FILE|NAME] [--embedder FILE|NAME | --words] [--part fit|look] [--n N]
                          [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from batos.memory.evidence import PERHAPS
from batos.uvm import UVM
from report import Goal, report
from tasks_arms_side import remember_folder, remembered_names
from voice_side import daemon, uvm_over

DATA: Final = Path(__file__).resolve().parents[1] / "tests" / "data" / "notes"
#: Questions and sentences of a quick run.
QUICK: Final = 4
#: The least share of questions whose note is shown.
EVIDENCE: Final = {"by_words": 0.9, "by_vectors": 0.95}
_MANY: Final = 10_000
_VALUE: Final = re.compile(r"\d+(?:[.,:]\d+)*|(?<=[a-z,;] )[A-Z]\w{2,}")


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes by their paths, questions about them, and sentences that are to be answered."""

    documents: Mapping[str, str]
    questions: Sequence[Mapping[str, Any]]
    sentences: Sequence[str]

    @classmethod
    def read(cls, folder: Path, part: str, most: int) -> Notes:
        """Read the data of a folder, so many questions and sentences of a part (0: all)."""
        paths = sorted(each for each in (folder / "documents").rglob("*") if each.is_file())
        documents = {each.relative_to(folder / "documents").as_posix(): each.read_text("utf-8") for each in paths}
        questions = [each for each in rows(folder / "questions.jsonl") if part in ("", each.get("part", ""))]
        sentences = [each["text"] for each in rows(folder / "sentences.jsonl")]
        return cls(documents, questions[: most or None], sentences[: most or None])

    def has_value(self, value: str) -> bool:
        """Test if a value stands in a note."""
        return any(value.casefold() in text.casefold() for text in self.documents.values())


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """The answer to a text: its words, the notes shown (True: as perhaps about it), and its first line about memory.

    An answer `is_declined` where no model was asked.
    """

    text: str
    shown: Mapping[str, bool]
    line: str
    is_declined: bool


class Home:
    """A home in which the notes are remembered."""

    def __init__(self, uvm: UVM) -> None:
        self._uvm = uvm
        self._kept = remembered_names(uvm)
        self._source = {each["document"]: each["source"] for each in uvm.readings.memories(_MANY)["memories"]}

    async def ask(self, text: str) -> ShownAnswer:
        """Ask by reflex, and forget the exchange."""
        told = await self._uvm.missions.ask({"text": text, "effort": "reflex"})
        await self._uvm.mission_memory.write()
        if left := sorted(remembered_names(self._uvm) - self._kept):
            await self._uvm.document_store.forget(left, self._uvm.settings.asker)
        about = told["provenance"]
        recalled = [each for each in about["recalled"] if each.get("memory") in self._source]
        shown = {self._source[str(each.get("memory"))]: str(each.get("why")).startswith(PERHAPS) for each in recalled}
        return ShownAnswer(told["answer"], shown, about.get("without_memory", ""), not told["cost"]["calls"])


@asynccontextmanager
async def open_home(url: str, notes: Notes, *, vectors: bool, **settings: Any) -> AsyncIterator[Home]:
    """Open a home over an Ollama, with all notes remembered."""
    async with uvm_over(url, **settings) as uvm:
        await remember_folder(uvm, notes.documents, vectors=vectors)
        yield Home(uvm)


async def measure_evidence(
    home: Home, notes: Notes
) -> tuple[dict[str, float], list[tuple[Mapping[str, Any], ShownAnswer]]]:
    """Ask all questions; return the shares of those whose note was shown, and the answers."""
    answers = [(each, await home.ask(each["question"])) for each in notes.questions]
    noted = [(each, told) for each, told in answers if each["note"]]
    for each, told in noted:
        if each["note"] not in told.shown:
            print(f"not shown: {each['question']} ({each['note']}): {dict(told.shown)}", file=sys.stderr)
    others = [told for each, told in answers if not each["note"]]
    found = {
        "evidence_right": _share(each["note"] in told.shown for each, told in noted),
        "perhaps": _share(told.shown.get(each["note"], False) for each, told in noted),
        "shown_for_nothing": _share(not all(told.shown.values()) for told in others),
        "said_so": _share(bool(told.line) or told.is_declined for told in others if not told.shown),
    }
    return found, answers


def score_answers(notes: Notes, answers: Sequence[tuple[Mapping[str, Any], ShownAnswer]]) -> dict[str, Any]:
    """Return the shares of right answers, and how many were invented."""
    shown = [(each, told) for each, told in answers if each["note"] and each["note"] in told.shown]
    invented = [
        f"{each['question']} -> {told.text}"
        for each, told in answers
        if not told.shown and not told.line and not told.is_declined and _invents(told.text, each["question"], notes)
    ]
    for each in invented:
        print(f"invented: {each}", file=sys.stderr)
    right = _share(each["has"].casefold() in told.text.casefold() for each, told in shown)
    return {"right": right, "invented": len(invented)}


def _invents(answer: str, question: str, notes: Notes) -> bool:
    """Test if an answer has a number, a date or a name that stands neither in a note nor in its question."""
    return any(not notes.has_value(each) and each not in question for each in _VALUE.findall(answer))


async def measure_sentences(home: Home, notes: Notes) -> dict[str, Any]:
    """Ask all sentences; return how many were not answered."""
    wrong = [each for each in notes.sentences if (await home.ask(each)).is_declined]
    for each in wrong:
        print(f"not answered: {each}", file=sys.stderr)
    return {"declined_or_noted_wrongly": len(wrong)}


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure by words, and by vectors where there is an embedder; answers where a model writes."""
    notes = Notes.read(given.data, given.part, QUICK if given.quick else given.n)
    found: dict[str, Any] = {"notes": len(notes.documents), "questions": len(notes.questions), "part": given.part}
    writer = argparse.Namespace(url=None, gguf=given.gguf)
    async with daemon(writer) as url, open_home(url, notes, vectors=False) as home:
        found["by_words"], answers = await measure_evidence(home, notes)
        found |= await measure_sentences(home, notes)
        if given.gguf and given.words:
            found |= score_answers(notes, answers)
    if not given.words:
        models = [*([given.gguf] if given.gguf else []), given.embedder]
        async with (
            daemon(argparse.Namespace(url=None, gguf=models)) as url,
            open_home(url, notes, vectors=True) as home,
        ):
            found["by_vectors"], answers = await measure_evidence(home, notes)
            if given.gguf:
                found |= score_answers(notes, answers)
    found["evidence_right"] = {name: found[name]["evidence_right"] for name in EVIDENCE if name in found}
    return found


def goals_of(found: Mapping[str, Any]) -> list[Goal]:
    """Return the goals of what was measured."""
    goals = [Goal("declined_or_noted_wrongly", found["declined_or_noted_wrongly"], 0)]
    goals += [
        Goal(f"evidence_right {name}", value, EVIDENCE[name], "at_least")
        for name, value in found["evidence_right"].items()
    ]
    if "right" in found:
        goals += [Goal("right", found["right"], 0.75, "at_least"), Goal("invented", found["invented"], 0)]
    return goals


def rows(file: Path) -> list[Any]:
    """Return the lines of a file of JSON."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _share(found: Any) -> float:
    held = list(found)
    return round(sum(held) / len(held), 3) if held else 0.0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the flags."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, metavar="DIR", default=DATA)
    found.add_argument("--gguf", metavar="FILE|NAME", help="the real model that writes answers")
    found.add_argument("--embedder", metavar="FILE|NAME", default="all-minilm", help="the real model of the vectors")
    found.add_argument("--words", action="store_true", help="by words alone: no vectors")
    found.add_argument("--part", choices=["", "fit", "look"], default="", help="of the questions")
    found.add_argument("--n", type=int, default=0, metavar="N", help="questions and sentences; 0: all")
    found.add_argument("--quick", action="store_true", help="a few by words alone: shape, not figures")
    found.add_argument("--json", type=Path, default=None, metavar="FILE")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    given = parser().parse_args(arguments)
    given.words = given.words or given.quick
    found = asyncio.run(measure(given))
    report(found, goals_of(found), given.json)


if __name__ == "__main__":
    main()
