"""Makes documents of an answered mission: the sentences in which the person stated something, and the answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from batos.image.ids import document_id, iso
from batos.image.records import Brief
from batos.memory.document_chunks import document_chunks
from batos.memory.evidence import Passage
from batos.memory.records.memory_records import BY_METHOD, SAID, MemoryKind, NewDocument
from batos.memory.stated_sentences import statements_of
from batos.memory.terms import clip_line
from batos.protocol.brief import DEFAULT_SCOPE, NO_MEMORY, MissionBrief

#: The kind of contribution by which a mission asks to be remembered.
MEMORABLE: Final = "memory"
#: The reasons of an answer that only notes what was said, or offers to forget it: it says nothing to be remembered.
NOTED: Final = "it states a fact, which is noted"
FORGETS: Final = "it orders to forget, which a person confirms"
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
    says, so that no model takes its own word for a fact.
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
    is_note = slots["provenance"].get("combined", {}).get("ruled") in (NOTED, FORGETS, NOTHING_NEAR)
    if isinstance(answer, str) and answer and not is_note:
        yield document(
            "mission", mission, asked.text, answer, slots["lineage_trust"],
            persona=slots["route"]["personas"][0], is_evidence=is_carried(slots["provenance"]),
        )  # fmt: skip


def is_carried(provenance: Mapping[str, Any]) -> bool:
    """Test if documents carry all that an answer says, and its gate let it pass."""
    states = {each["state"] for each in provenance.get("sentences", ())}
    return _CARRIED in states and states <= {_CARRIED, _UNCHECKED} and provenance["gate"]["ok"]


def scope_of(brief: MissionBrief) -> str:
    """Return the scope that a mission's memories belong to: the one that its person named, else `default`."""
    return (brief.policy and brief.policy.memory) or DEFAULT_SCOPE
