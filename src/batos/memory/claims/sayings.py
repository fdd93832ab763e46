"""Makes documents of facts and of the turns of conversations, as the store keeps them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from batos.image.ids import document_id, iso
from batos.image.memory_records import ChunkText, MemoryKind, NewDocument
from batos.memory.passages import passages

#: The most characters of a turn's title.
_TITLE: Final = 60


@dataclass(frozen=True, slots=True)
class SaidBy:
    """Whose memory it is, in which scope, and of which trust."""

    user: str
    scope: str
    trust: str = "user"


@dataclass(frozen=True, slots=True)
class FactKey:
    """What a fact is about: its key, and the keys of facts that it supersedes or that it depends on."""

    key: str
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()


def turn_document(
    said: SaidBy, conversation: str, speaker: str, text: str, said_at: str, now: datetime
) -> NewDocument:
    """Return a turn of a conversation: who said it (`user`, `assistant`, a name), and when (ISO 8601, UTC)."""
    title = " ".join(text.split())[:_TITLE]
    digest = _digest(conversation, speaker, said_at, text)
    about = {"said_at": said_at, "conversation": conversation, "speaker": speaker}
    return _document(said, "turn", "", (title, text, digest), now, about)


def fact_document(said: SaidBy, fact: FactKey, value: str, source: str, said_at: str, now: datetime) -> NewDocument:
    """Return a fact: the value that its key has from `said_at` on.

    The key's words are its title, so that it is found by them. A source that ends in `/` and a rank (`user/manager`)
    gives it that rank.
    """
    title = " ".join(fact.key.replace("_", " ").replace("-", " ").split())
    digest = _digest(fact.key, value)
    about = {"said_at": said_at, "key": fact.key, "supersedes": fact.supersedes, "depends_on": fact.depends_on}
    return _document(said, "fact", source, (title, value, digest), now, about)


def _document(
    said: SaidBy, kind: MemoryKind, source: str, words: tuple[str, str, str], now: datetime, about: dict[str, Any]
) -> NewDocument:
    title, text, digest = words
    chunks = tuple(ChunkText(each.start, "", each.text) for each in passages([(title, digest, text)]))
    return NewDocument(
        document_id(now), said.user, said.scope, source, title, "text/plain", digest,
        len(text.encode("utf-8", "surrogatepass")), said.trust, iso(now), chunks, kind=kind, **about,
    )  # fmt: skip


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
