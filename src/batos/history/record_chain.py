"""The chains of records: each call of the journal, and each outcome of an effect, has the digest of the one before it.

A record that was changed or removed breaks its chain, and is named. A chain cannot tell that its newest records are
gone together with its head; who kept an earlier head can ask whether the chain still has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from batos.agency.records import effect_log
from batos.image.roots import JournalRoot, Root
from batos.inference import journal
from batos.inference.canonical import canonical
from batos.protocol.errors import ImageDamaged

#: The digest before the first record.
START: Final = ""


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A record in its chain: its digest, that of the one before it, and how people find it."""

    digest: str
    prev: str
    name: str
    mission: str = ""
    place: int = 0


@dataclass(slots=True)
class Chain:
    """A chain: its links as they stand in the database, its head, and those that cannot be read at all."""

    head: str
    links: list[ChainLink] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def has(self, digest: str) -> bool:
        """Test if a record with this digest, or one that begins so, is in the chain."""
        return digest == START or any(each.digest.startswith(digest) for each in self.links)

    def find_faults(self) -> list[str]:
        """Return what is wrong: records that were changed, and places where records are missing."""
        digests = {each.digest for each in self.links}
        followed = {each.prev for each in self.links} | {self.head}
        changed = [
            f"{each.name} was changed, or the record after it was removed"
            for each in self.links
            if each.digest not in followed
        ]
        gaps = [each for each in self.links if each.prev != START and each.prev not in digests]
        missing = [f"the record before {each.name} was removed" for each in gaps]
        if self.head not in (START, *digests):
            missing.append("the newest record was removed")
        unreadable = [f"{each} cannot be read" for each in self.unreadable]
        # A record that is not there as it was leaves the one after it without its predecessor: that is one fault.
        return [*unreadable, *changed, *missing[len(changed) + len(unreadable) :]]

    def links_in_order(self) -> list[ChainLink]:
        """Return the links from the first to the last, as far as the chain leads."""
        after = {each.prev: each for each in self.links}
        found: list[ChainLink] = []
        at = after.get(START)
        while at is not None and len(found) < len(self.links):
            found.append(at)
            at = after.get(at.digest)
        return found


def read_calls(root: JournalRoot) -> Chain:
    """Return the chain of a journal's closed calls, from the root of its database."""
    chain = Chain(str(root.get(journal.HEAD, START)))
    for mission, log in (root.get(journal.MISSIONS) or {}).items():
        for place, entry in enumerate(log.entries):
            name = f"the call of {mission} at {entry.fields.get('path', 'an unknown place')}"
            try:
                fields = entry.chain_fields()
            except ImageDamaged:
                chain.unreadable.append(name)
                continue
            if fields["state"] != "open":
                digest = journal.digest_of_fields(fields)
                chain.links.append(ChainLink(digest, str(fields["prev"]), name, mission, place))
    return chain


def read_effects(root: Root) -> Chain:
    """Return the chain of the outcomes of effects."""
    chain = Chain(effect_log.head_of_log(root))
    for place, line in enumerate(effect_log.lines_of_log(root), 1):
        name = f"the outcome of {line.get('effect')} ({line.get('state')})"
        chain.links.append(ChainLink(effect_log.digest_of_line(line), str(line.get("prev")), name, place=place))
    return chain


def links_since(root: JournalRoot, chain: Chain, moment: datetime | None) -> list[ChainLink]:
    """Return the calls of a chain in their order, from the first that ended at a moment or later."""
    links = chain.links_in_order()
    if moment is None:
        return links
    for number, link in enumerate(links):
        ended = root[journal.MISSIONS][link.mission].entries[link.place].fields.get("ended")
        if ended is not None and datetime.fromisoformat(ended) >= moment:
            return links[number:]
    return []


def export_calls(root: JournalRoot, links: Iterable[ChainLink], *, bodies: bool) -> Iterator[dict[str, object]]:
    """Yield calls as plain data: the fields that their digest is of, and the digest; with `bodies` also these.

    `request`, `response` and `partial` are the digests of the bodies. Of an erased call only these are left.
    """
    for link in links:
        entry = root[journal.MISSIONS][link.mission].entries[link.place]
        told = {"kind": "call", **entry.chain_fields(), "chain": link.digest}
        if bodies and entry.digests is None:
            record = entry.record()
            told["bodies"] = {name: getattr(record, name) for name in journal.BODIES}
        yield told


def export_effects(root: Root, links: Iterable[ChainLink]) -> Iterator[dict[str, object]]:
    """Yield outcomes of effects as plain data, with the digest."""
    lines = dict(enumerate(effect_log.lines_of_log(root), 1))
    for link in links:
        yield {"kind": "effect", **lines[link.place], "chain": link.digest}


def as_line(value: Mapping[str, object]) -> str:
    """Return a record as a line of canonical JSON."""
    return canonical(value).decode("utf-8", "backslashreplace")
