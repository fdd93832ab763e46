"""Has a model write the summary of a region, in a mission of its own, and keeps only what the region carries."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import structlog

from batos.gate.attribution import attribute
from batos.gate.evidence_index import EvidenceIndex
from batos.memory.curation import extracts
from batos.memory.curation.extracts import SummaryLine
from batos.memory.curation.fold_store import ReadRegion, WrittenSummary
from batos.memory.evidence import Evidence, Passage
from batos.protocol.brief import NO_MEMORY, File, as_file
from batos.protocol.errors import BatosError

#: Characters of a region that a model is shown: the most central sentences, which the window of a small one holds.
SHOWN: Final = 6_000
#: Sentences that it is asked for: as many as there are memories, between these.
FEWEST, MOST = 3, 12
#: Missions in a row that may fail before a run goes on by the rule.
PATIENCE: Final = 2
#: The door of missions that no person asked for.
DOOR: Final = "kernel"

#: Asks a mission, and returns its report; raises BatosError where there is no answer.
Ask: TypeAlias = Callable[[Mapping[str, Any], Sequence[File]], Awaitable[Mapping[str, Any]]]

_log = structlog.get_logger("batos.memory")


class ModelSummaries:
    """Writes summaries by missions that neither use nor leave memories."""

    def __init__(self, ask: Ask, answers: Callable[[], Awaitable[bool]], check: Callable[[], Awaitable[None]]) -> None:
        self._ask = ask
        self._answers = answers
        self._check = check
        self._failed = 0

    async def can_write(self) -> bool:
        """Test if a model would answer now."""
        self._failed = 0
        if not await self._answers():
            return False
        try:
            await self._check()
        except BatosError as error:
            _log.info("curator.by_rule", reason=error.as_dict())
            return False
        return True

    async def write(self, read: ReadRegion, by_rule: WrittenSummary) -> WrittenSummary | None:
        """Return the sentences of a model that memories of the region carry, each with its memory.

        A memory that no sentence is about has the line of the rule. None: there is no answer, or nothing of it stands;
        after some failures in a row no more is asked in this run.
        """
        if self._failed == PATIENCE:
            return None
        try:
            told = await self._ask(*_brief_of(read))
        except BatosError as error:
            self._failed += 1
            _log.warning("curator.no_answer", reason=error.as_dict())
            return None
        self._failed = 0
        carried = carried_sentences(read, str(told.get("answer") or ""))
        if not carried:
            return None
        ruled = {each.name: each for each in by_rule.lines}
        lines = [
            SummaryLine(each.name, extracts.titled_text(each.title, " ".join(carried[each.name])))
            if each.name in carried
            else ruled[each.name]
            for each in read.texts
        ]
        return WrittenSummary(lines, "model", str(told["id"]))


def carried_sentences(read: ReadRegion, answer: str) -> dict[str, list[str]]:
    """Return the sentences of an answer that a region carries, by the memory that carries each best, in their order."""
    passages = tuple(_passages(read))
    whose = {each.number: each.document for each in passages}
    found: dict[str, list[str]] = {}
    for sentence in attribute(answer, "", EvidenceIndex(Evidence(passages))).select("carried"):
        name = whose.get(max(sentence.carriers, key=lambda each: each.score).document)
        if name is not None:
            found.setdefault(name, []).append(" ".join(sentence.text.split()))
    return found


def _passages(read: ReadRegion) -> Iterator[Passage]:
    """Yield the texts of a region as evidence, without what does not hold in them."""
    for number, (text, line) in enumerate(zip(read.texts, read.lines, strict=True), start=1):
        yield Passage(number, text.title, line["sha256"], 0, text.text, line["trust"], text.name)


def _brief_of(read: ReadRegion) -> tuple[dict[str, object], list[File]]:
    """Return the brief of the mission, the same each time: what a killed process paid for is not paid again."""
    shown = "\n\n".join(each.text for each in extracts.central(read.texts, SHOWN) if each.text)
    data = shown.encode("utf-8", "replace")
    sentences = min(MOST, max(FEWEST, len(read.texts)))
    return {
        "text": f"Summarise these notes in at most {sentences} short sentences, in their own words. Name in each"
        " sentence what it is about. State nothing else.",
        "user": read.lines[0]["user"],
        "effort": "reflex",
        "priority": -9,
        "policy": {"memory": NO_MEMORY, "install": "never"},
        "idempotency_key": f"curate {hashlib.sha256(data).hexdigest()}",
        "origin": {"door": DOOR, "client": "curator"},
    }, [as_file("notes.txt", data, len(data))]
