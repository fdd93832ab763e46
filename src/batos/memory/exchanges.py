"""Makes documents of an answered mission: the sentences in which the person stated something beside the question."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from batos.image.ids import document_id, iso
from batos.image.records import Brief
from batos.memory.evidence import Passage
from batos.memory.passages import document_chunks
from batos.memory.records.memory_records import BY_METHOD, SAID, MemoryKind, NewDocument
from batos.memory.segmentation import clip_line, line_of, sentence_spans, terms, words
from batos.protocol.brief import DEFAULT_SCOPE, NO_MEMORY, MissionBrief

#: The terms that a statement has at least.
LEAST_TERMS: Final = 3

_ASKED: Final = re.compile(r"\A\s*[¿(（\[]|[?？؟][\"'”’»)\]」』]*\s*\Z")


class _Signs(NamedTuple):
    """The signs of a question, a request or an order, of all languages."""

    openers: frozenset[str]
    polite: frozenset[str]
    unspaced: re.Pattern[str]


@lru_cache(maxsize=1)
def _signs() -> _Signs:
    listed = tomllib.loads(files(__package__).joinpath("stated_sentences.toml").read_text(encoding="utf-8"))
    openers, polite = (
        frozenset(word for table in listed.values() for word in table.get(key, "").split())
        for key in ("openers", "polite")
    )
    ends = [(table["opening"], table["closing"]) for table in listed.values() if "opening" in table]
    unspaced = "|".join(rf"\A\s*(?:{opening})|(?:{closing})\s*\Z" for opening, closing in ends)
    return _Signs(openers, polite, re.compile(unspaced))


def statements_of(text: str) -> Iterator[str]:
    """Yield the sentences of a person's message that state something, in order: no questions, requests or orders.

    >>> list(statements_of("My cat is called Miso. She is four. What may she eat?"))
    ['My cat is called Miso.', 'She is four.']
    >>> list(statements_of("Please tell me about tides."))
    []
    """
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        if _states(sentence):
            yield sentence


def _states(sentence: str) -> bool:
    signs = _signs()
    if _ASKED.search(sentence) or signs.unspaced.search(sentence) or len(list(terms(sentence))) < LEAST_TERMS:
        return False
    return next((word for word in words(sentence) if word not in signs.polite), "") not in signs.openers


def repeats(question: str, text: str) -> bool:
    """Test if every sentence of a text is one of a question, word for word: then it tells nothing that was not said.

    >>> repeats("I lost my key. What now?", "I lost my key."), repeats("Did I lose it?", "I lost my key.")
    (True, False)
    """
    asked, told = ({line_of(each[start:end]) for start, end in sentence_spans(each)} for each in (question, text))
    return told <= asked and bool(words(text))


#: The kind of contribution by which a mission asks to be remembered.
MEMORABLE: Final = "memory"
#: The reasons of an answer that only notes what was said, or offers a command: it says nothing to be remembered.
NOTED: Final = "it states a fact, which is noted"
FORGETS: Final = "it orders to forget, which a person confirms"
REMINDS: Final = "it orders to be reminded, which a person confirms"
ACTS: Final = "it orders an effect, and has its text"
#: The same where nothing remembered answers, and the model was not asked.
NOTHING_NEAR: Final = "nothing remembered is near enough to answer"
#: The most characters of a title.
_TITLE: Final = 120
#: The state of a sentence that evidence carries, and of one that says nothing to be carried.
_CARRIED, _UNCHECKED = "carried", "not_checkable"


class IndexedDocument(NamedTuple):
    """A text that a method gave to be remembered, and the trust class of all that the text was made from."""

    title: str
    text: str
    trust: str
    is_evidence: bool

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the text, in hex."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def source(self) -> str:
        """Return the source that the text is remembered under: the same for the same text."""
        return f"{BY_METHOD}{self.digest[:16]}"

    def passage(self) -> Passage:
        """Return the text as evidence in the mission itself, before it is remembered."""
        return Passage(0, self.title, self.digest, 0, self.text, self.trust)


def pack(documents: Sequence[IndexedDocument]) -> str:
    """Return documents as one text, which a commit writes in half the time that it needs for a list of them."""
    return json.dumps([each._asdict() for each in documents], ensure_ascii=False)


def unpack(packed: str) -> list[IndexedDocument]:
    """Return the documents that `pack` made a text of."""
    return [IndexedDocument(**each) for each in json.loads(packed)]


def is_memorable(brief: MissionBrief) -> bool:
    """Test if a mission is remembered: a question, unless its person wants nothing of memory in it."""
    return brief.message is None and (brief.policy is None or brief.policy.memory != NO_MEMORY)


def documents_of(mission: str, brief: Brief, slots: Mapping[str, Any], now: datetime) -> Iterator[NewDocument]:
    """Yield the documents of an answered mission, and those that its methods gave to be remembered.

    A `turn` has the sentences that the person stated: they are that person's word, and evidence for later questions. A
    `mission` has the answer, under the question. The answer is evidence only if documents carry all that it
    says, not memories alone, so that no model takes its own word for a fact.
    """
    asked = MissionBrief.from_document(brief.value)

    def document(kind: MemoryKind, source: str, title: str, text: str, trust: str, **about: Any) -> NewDocument:
        title, data = clip_line(title, _TITLE), text.encode("utf-8", "surrogatepass")
        return NewDocument(
            document_id(now), asked.user, scope_of(asked), source, title, "text/plain",
            hashlib.sha256(data).hexdigest(), len(data), trust, iso(now), document_chunks(title, text), kind,
            said_at=brief.accepted_at, mission=mission, conversation=asked.conversation or "", **about,
        )  # fmt: skip

    for given in unpack(slots.get("indexed_documents", "[]")):
        about = {"is_evidence": given.is_evidence}
        yield document("document", given.source, given.title, given.text, given.trust, **about)
    if not is_memorable(asked):
        return
    if stated := " ".join(statements_of(asked.text)):
        yield document("turn", f"{mission}{SAID}", stated, stated, brief.trust, speaker=asked.user)
    answer = slots["answer"]
    if isinstance(answer, str):  # the line before it tells of that moment's memory
        answer = answer.removeprefix(slots["provenance"].get("without_memory", "")).strip()
    is_note = slots["provenance"].get("combined", {}).get("ruled") in (NOTED, FORGETS, REMINDS, ACTS, NOTHING_NEAR)
    if isinstance(answer, str) and answer and not is_note:
        yield document(
            "mission", mission, asked.text, answer, slots["lineage_trust"],
            persona=slots["route"]["personas"][0],
            is_evidence=is_carried(slots["provenance"]) and not is_from_memories(slots["provenance"]),
        )  # fmt: skip


def is_carried(provenance: Mapping[str, Any]) -> bool:
    """Test if documents carry all that an answer says, and its gate let it pass."""
    states = {each["state"] for each in provenance.get("sentences", ())}
    return _CARRIED in states and states <= {_CARRIED, _UNCHECKED} and provenance["gate"]["ok"]


def is_from_memories(provenance: Mapping[str, Any]) -> bool:
    """Test if all that an answer cites is remembered: it says nothing that the memories do not say better."""
    known = {each["document"] for each in provenance.get("recalled", ()) if "memory" in each}
    cited = {each["document"] for each in provenance.get("citations", ())}
    return bool(cited) and cited <= known


def scope_of(brief: MissionBrief) -> str:
    """Return the scope that a mission's memories belong to: the one that its person named, else `default`."""
    return (brief.policy and brief.policy.memory) or DEFAULT_SCOPE
