"""Measures an answer when it is remembered: its parts of the entropy metric, and its word on answers before it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Final, NamedTuple

import structlog

from batos.autotelic import entropy
from batos.autotelic.entropy import AnswerFacts, Content, SentenceFacts, content, likeness
from batos.image import ids, ownership, roots
from batos.image.records import Brief, MissionRecord
from batos.image.roots import Root
from batos.memory.document_store import Change
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import ANSWERED, Recollection
from batos.objects.prototype import own_slots
from batos.protocol.evidence_documents import RecalledPassage
from batos.protocol.mission_documents import ProvenanceDocument, VoiceDocument
from batos.protocol.motion_documents import EntropyParts, OutcomeAct
from batos.records import outcomes, tools
from batos.records.outcomes import NotedAct

#: Earlier answers that an answer is compared with.
_COMPARED: Final = 8
#: The time within which an equal question asks again, and a word of correction means the answer before it.
SOON: Final = timedelta(minutes=10)
#: The newest missions among which a person's one before is looked for.
_NEAREST: Final = 32
#: Decimals that are kept of a part.
_DECIMALS: Final = 4

_log = structlog.get_logger("batos.motion")


class EntropyMeasure(NamedTuple):
    """The measure of one mission: Hrel, Hcog, Hsol if defined, uses of structure for a call, and acts on others."""

    values: tuple[float | None, ...]
    acts: tuple[tuple[str, NotedAct], ...] = ()

    def keep(self, root: Root, mission: str) -> None:
        """Write it, within the commit that remembers the mission."""
        root[roots.ENTROPY][mission] = self.values
        for name, noted in self.acts:
            if roots.find_record(root, name) is not None:
                outcomes.note(root, name, noted)


def read_parts(values: tuple[float | None, ...]) -> EntropyParts:
    """Return the parts of the metric that a mission has, as `EntropyMeasure` keeps them."""
    hrel, hcog, hsol = values[:3]
    return entropy.parts_of({"Hrel": hrel, "Hcog": hcog, "Hsol": hsol})


@dataclass(frozen=True, slots=True)
class AnswerMeter:
    """Measures answers beside those before them, which it finds by their words in what is remembered."""

    recollection: Recollection

    def change(self, root: Root, mission: str, record: MissionRecord) -> Change:
        """Return the change that keeps a mission's measure; nothing of a thought that cannot be read."""
        try:
            measured = self.measure(root, mission, record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _log.warning("measuring.failed", mission=mission, reason=repr(error))
            return lambda root: None
        return lambda root: measured.keep(root, mission)

    def measure(self, root: Root, mission: str, record: MissionRecord) -> EntropyMeasure:
        """Return the measure of a mission that is done and not remembered yet."""
        if tools.sender_in(record):  # what is made counts when it runs
            return EntropyMeasure((None, None, None, 0.0))
        slots, text = own_slots(record.thought), str(record.brief.value["text"])
        question, said = content(text), content(str(slots["answer"]))
        provenance: ProvenanceDocument = slots["provenance"]
        judged = read_answer(question, str(slots["answer"]), provenance, slots.get("voices", ()))
        earlier = list(self._earlier(root, text, str(record.brief.value["user"]), question))
        again = [likeness(said, answer) for near, answer in earlier if near >= entropy.SAME]
        similar = [likeness(said, answer) for _, answer in earlier]
        wanted = _wants_novelty(provenance) and not again
        values = (
            entropy.relevance(judged, max(again, default=None)),
            entropy.diversity(judged),
            entropy.novelty(judged, similar) if wanted else None,
            _count_uses(provenance) / max(1, slots["cost"]["calls"]),
        )
        rounded = tuple(None if each is None else round(each, _DECIMALS) for each in values)
        return EntropyMeasure(rounded, tuple(_acts_of(root, mission, record, question)))

    def _earlier(self, root: Root, text: str, user: str, question: Content) -> Iterator[tuple[float, Content]]:
        """Yield the answers to similar questions of the same person, each behind the likeness of the questions."""
        reach = MemoryReach(user, kinds=ANSWERED, standings=None)
        found = self.recollection.search.recall(root, RecallQuery(text, None, "text"), reach, _COMPARED)
        for each in found.best(_COMPARED):
            slots = own_slots(each.chunk)
            near = likeness(question, content(own_slots(slots["document"])["title"]))
            if near >= entropy.SIMILAR:
                yield near, content(slots["text"])


def read_answer(
    question: Content, answer: str, provenance: ProvenanceDocument, voices: Sequence[VoiceDocument]
) -> AnswerFacts:
    """Return what the metric reads of an answer, its origin and its voices."""
    quotes: dict[str, list[str]] = {}
    for cited in provenance.get("citations", ()):
        quotes.setdefault(cited["sentence"].strip(), []).append(cited["quote"])
    sentences = []
    for each in provenance.get("sentences", ()):
        text = answer[slice(*each["span"])]
        sentences.append(SentenceFacts(content(text), each["state"], content(" ".join(quotes.get(text.strip(), ())))))
    parts = tuple(content(each["answer"]) for each in _leaves(voices) if each["answer"])
    unanswered = len(provenance.get("unanswered", ()))
    return AnswerFacts(question, tuple(sentences), provenance["gate"]["ok"], parts, len(voices), unanswered)


def _leaves(voices: Iterable[VoiceDocument]) -> Iterator[VoiceDocument]:
    """Yield the voices that have no voices of their own."""
    for each in voices:
        within = each.get("voices")
        yield from _leaves(within) if within else (each,)


def _wants_novelty(provenance: ProvenanceDocument) -> bool:
    """Test if a protocol was applied that is there for novelty."""
    protocol = provenance["gate"].get("protocol")
    return protocol is not None and protocol["applied"] and protocol.get("metric") == "Hsol"


def _count_uses(provenance: ProvenanceDocument) -> float:
    """Count the links that led to what is cited, the methods that ran without a fault, and a protocol that was kept."""
    linked = sum("link: " in each.get("why", "") for each in _list_cited(provenance))
    ran = len(provenance.get("methods", ())) if provenance["gate"]["ok"] else 0
    protocol = provenance["gate"].get("protocol")
    return float(linked + ran + (protocol is not None and protocol["applied"]))


def _list_cited(provenance: ProvenanceDocument) -> list[RecalledPassage]:
    """List the passages that an answer cites."""
    cited = {each["document"] for each in provenance.get("citations", ())}
    return [each for each in provenance.get("recalled", ()) if "document" in each and each["document"] in cited]


# -- what a question says of the answers before it


@lru_cache(maxsize=1)
def _corrections() -> re.Pattern[str]:
    table = tomllib.loads(files(__package__).joinpath("corrections.toml").read_text(encoding="utf-8"))
    spaced, unspaced = "|".join(table["spaced"].values()), "|".join(table["unspaced"].values())
    return re.compile(rf"\W*(?:(?:{spaced})(?!\w)|(?:{unspaced}))", re.IGNORECASE)


def corrects(text: str) -> bool:
    """Test if a message begins by saying that the answer before it is wrong, or was not what was asked.

    >>> corrects("No, I meant the other lamp."), corrects("Nobody winds it?"), corrects("Das stimmt nicht.")
    (True, False, True)
    """
    return _corrections().match(text) is not None


def _acts_of(root: Root, mission: str, record: MissionRecord, question: Content) -> Iterator[tuple[str, NotedAct]]:
    """Yield what a new question does with earlier answers: asks again, corrects, goes on, or cites."""
    user = str(record.brief.value["user"])

    def make_act(act: OutcomeAct) -> NotedAct:
        return NotedAct(act, record.brief.accepted_at, user)

    before = _one_before(root, mission, user)
    if before is not None:
        name, asked = before
        is_soon = ids.begun_at(mission) - ids.begun_at(name) <= SOON
        conversation = record.brief.value.get("conversation")
        if is_soon and corrects(record.brief.value["text"]):
            yield name, make_act("corrected")
        elif is_soon and likeness(question, content(asked.value["text"])) >= entropy.SAME:
            yield name, make_act("asked_again")
        elif conversation is not None and conversation == asked.value.get("conversation"):
            yield name, make_act("went_on")
    for name in _cited_missions(root, own_slots(record.thought)["provenance"]):
        yield name, make_act("cited_later")


def _one_before(root: Root, mission: str, user: str) -> tuple[str, Brief] | None:
    """Return the id and the brief of the answered mission that the same person asked right before."""
    older = (each for each in ids.newest_first(root[roots.MISSIONS]) if each < mission)
    for name in islice(older, _NEAREST):
        found = roots.mission_record(root, name)
        if found.brief.value["user"] == user and ownership.is_of_people(found):
            return (name, found.brief) if found.status.word == "done" else None
    return None


def _cited_missions(root: Root, provenance: ProvenanceDocument) -> set[str]:
    """Return the missions whose answers, which are remembered, a new answer cites."""
    found = (root[roots.DOCUMENTS].get(each.get("memory", "")) for each in _list_cited(provenance))
    slots = (own_slots(each) for each in found if each is not None)
    return {str(each["mission"]) for each in slots if each["kind"] in ANSWERED}
