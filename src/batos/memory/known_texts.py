"""Holds texts that are to be remembered, facts among them, and tells those that are remembered already from others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from batos.image import roots
from batos.image.records import TRUST
from batos.image.roots import Root
from batos.memory.claims.claim_statements import family
from batos.memory.records import memory_claims, memory_places, memory_standings, memory_wordings
from batos.memory.records.memory_records import MemoryKind, NewDocument
from batos.memory.search.recollection import line_of
from batos.objects.prototype import own_slots
from batos.protocol.memory_documents import RememberedLine


class GivenContent(NamedTuple):
    """A content that somebody has, by the digest of what it was taken from, and where it came from.

    A fact has a key, and may name other facts by theirs. `trust` is the class of whoever gives it.
    """

    user: str
    scope: str
    source: str
    sha256: str
    kind: MemoryKind = "document"
    key: str = ""
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()
    trust: str = "external"

    @property
    def place(self) -> str:
        """Return the source whose older content it takes the place of; a fact's older value is history."""
        return "" if self.kind == "fact" else self.source


@dataclass(frozen=True, slots=True)
class Incoming:
    """A text that is to be remembered. `source` is where it came from, "" for words that a person typed.

    `sha256` is the digest of what the text was taken from. `kind`, `said_at`, `speaker` and `conversation` tell of a
    turn or a mail who said it and when. A fact has a `key`; `supersedes` and `depends_on` name other facts by theirs.
    `left_out` has a phrase for each part of its file that the text lacks.
    """

    user: str
    scope: str
    source: str
    title: str
    media_type: str
    text: str
    sha256: str
    trust: str
    kind: MemoryKind = "document"
    said_at: str = ""
    speaker: str = ""
    conversation: str = ""
    key: str = ""
    supersedes: str = ""
    depends_on: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Return the source whose older content it takes the place of; a fact's older value is history."""
        return "" if self.kind == "fact" else self.source


def fact_of(given: Incoming, key: str, supersedes: str = "", depends_on: tuple[str, ...] = ()) -> Incoming:
    """Return a text as the fact of a key, whose words are its title: it is found by them.

    >>> typed = Incoming("ann", "default", "", "18 March", "text/plain", "18 March", "0", "user")
    >>> fact_of(typed, "launch_date").title
    'launch date'
    """
    title = " ".join(key.replace("_", " ").replace("-", " ").split()) or key
    digest = hashlib.sha256(f"{key}\0{given.text}".encode("utf-8", "surrogatepass")).hexdigest()
    return replace(
        given, title=title, sha256=digest, kind="fact",
        key=key, supersedes=supersedes, depends_on=depends_on,
    )  # fmt: skip


@dataclass(slots=True)
class SortedTexts:
    """The lines of texts that are known and the documents of those that are not, by their places among the given.

    `copies` are the documents whose content came from further places, each with one of these.
    """

    lines: dict[int, RememberedLine] = field(default_factory=dict)
    fresh: dict[int, NewDocument] = field(default_factory=dict)
    copies: list[tuple[str, str]] = field(default_factory=list)
    _seen: dict[tuple[str, str, str], NewDocument] = field(default_factory=dict)

    def take_known(self, root: Root, number: int, given: GivenContent | Incoming) -> bool:
        """Take a content that is known, or is that of a text before it; return False where it is neither."""
        name = _find_known(root, given)
        if name is not None:
            line = line_of(root[roots.DOCUMENTS][name])
            known = remembered_line(name, line["title"], line["source"], line["chunks"])
            known["standing"] = line["standing"]
            at_place = memory_places.find_by_source(root, given.user, given.scope, given.place)
            is_noted = at_place == name or line["standing"] == "edited"
        elif (twin := self._seen.get((given.user, given.scope, given.sha256))) is not None:
            known = remembered_line(twin.name, twin.title, twin.source, len(twin.chunks))
            is_noted = given.place == twin.place
        else:
            return False
        self.lines[number] = {**known, "source": given.source or known["source"]}
        if given.place and not is_noted:
            self.copies.append((known["document"], given.place))
        return True

    def take_new(self, number: int, document: NewDocument) -> None:
        """Take a text that is not known."""
        self.fresh[number] = self._seen[document.user, document.scope, document.sha256] = document


def remembered_line(
    name: str, title: str, source: str, chunks: int, state: Literal["new", "known", "replaced"] = "known"
) -> RememberedLine:
    """Return the line that tells what became of a text."""
    return {
        "document": name, "title": title, "source": source, "chunks": chunks, "state": state,
        "standing": "current", "superseded": [], "flagged": [], "left_out": [],
    }  # fmt: skip


def _find_known(root: Root, given: GivenContent | Incoming) -> str | None:
    """Return the document that has this content; of a fact the current one of its key.

    A text that a person has edited since is known as long as its file has it: the edit holds. Given once more by hand,
    or by a file that had another text in between, it is a new one. So is what a person types that was known only from
    somebody less trusted: it is that person's own word now.
    """
    if given.kind != "fact":
        name = memory_places.find_by_content(root, given.user, given.scope, given.sha256)
        if name is not None and not given.source and _is_trusted_more(root, given, name):
            return None
        if name is None or memory_standings.standing_of(root, name) != "edited":
            return name
        at_place = memory_places.find_by_source(root, given.user, given.scope, given.place)
        return name if at_place and memory_wordings.is_same_memory(root, name, at_place) else None
    return _find_known_fact(root, given)


def _is_trusted_more(root: Root, given: GivenContent | Incoming, name: str) -> bool:
    return TRUST.index(given.trust) < TRUST.index(own_slots(root[roots.DOCUMENTS][name])["trust"])


def _find_known_fact(root: Root, given: GivenContent | Incoming) -> str | None:
    """Return the current fact of a key, if it is this one; None where a newer one would give way to it once more."""
    alike, key = family(given.key), given.key.casefold()
    for name in memory_claims.facts_of_family(root, given.user, given.scope, alike, memory_standings.MOST_VALUES):
        slots = own_slots(root[roots.DOCUMENTS][name])
        if slots["standing"] != "current":
            continue
        if slots["key"].casefold() == key:
            is_same = slots["sha256"] == given.sha256 and slots["key"] == given.key
            return name if is_same and _says_as_much(slots, given) else None
        if alike == key:  # a later version, which the key without one takes the place of
            return None
    return None


def _says_as_much(slots: Mapping[str, Any], given: GivenContent | Incoming) -> bool:
    """Test if a fact that is remembered names all those other facts that this one names."""
    return given.supersedes in ("", slots["supersedes"]) and set(given.depends_on) <= set(slots["depends_on"])
