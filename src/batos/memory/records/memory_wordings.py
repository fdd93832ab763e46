"""The wordings of a memory, the answers that quote it, and the turns and methods that hold its words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.memory.records import memories_set_aside, memory_records
from batos.memory.records.memory_standings import standing_of
from batos.memory.segmentation import STEM, sentence_spans, terms
from batos.memory.words_by_language import COMMON
from batos.objects.prototype import UvmObject, own_slots
from batos.records import memory_lineage
from batos.records.memory_lineage import EDITS, Withdrawal


def is_same_memory(root: Root, one: str, other: str) -> bool:
    """Test if two documents are wordings of one memory, as far as edits lead from one text to the next."""
    return not _earlier(root, one).isdisjoint(_earlier(root, other))


def wordings_of(root: Root, name: str) -> list[str]:
    """Return the names of all wordings of a memory, its own one too. Reads all documents of its source."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    place = slots["user"], slots["scope"], slots["source"]
    names = [row.document for row in memory_records.all_ranges(root) if (row.user, row.scope, row.source) == place]
    return [each for each in names if each == name or is_same_memory(root, each, name)]


def history_of(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of the edited texts that memories leave behind: earlier wordings, and others of their sources.

    Of a memory that is an edited text itself these are only the wordings before it.
    """
    documents = root[roots.DOCUMENTS]
    edited = {row.document: row for _, row in memory_records.ranges_of(root) if row.standing == "edited"}
    whole = {each for each in names if standing_of(root, each) != "edited"}
    slots = [own_slots(documents[each]) for each in whole]
    places = {(each["user"], each["scope"], each["source"]) for each in slots if each["source"]}
    found = {each for name in names for each in _earlier(root, name)}
    found |= {name for name, row in edited.items() if (row.user, row.scope, row.source) in places}
    found |= {name for name in edited if not whole.isdisjoint(_earlier(root, name))}
    return sorted((found & edited.keys()) - set(names))


def edited_summaries(root: Root, names: Collection[str]) -> list[str]:
    """Return the names of the texts that a person once made of some summaries by edits. Reads all summaries."""
    if not names:
        return []
    rows = (row.document for _, row in memory_records.ranges_of(root) if row.kind == "summary")
    return sorted(each for each in {*rows} - {*names} if not _earlier(root, each).isdisjoint(names))


def _earlier(root: Root, name: str) -> set[str]:
    """Return the name of a document, and those of the wordings before it that are there."""
    found: set[str] = set()
    left: Iterable[str] = [name]
    while left := [each for each in left if each in root[roots.DOCUMENTS] and each not in found]:
        found.update(left)
        left = [before for each in left for before in own_slots(root[roots.DOCUMENTS][each]).get(EDITS, ())]
    return found


def is_grounded(root: Root, mission: str) -> bool:
    """Test if all memories that a mission was shown are still there, and current or summarised.

    Of the answers among them this is asked too.
    """
    left, asked = [mission], {mission}
    while left:
        for document in map(root[roots.DOCUMENTS].get, _list_shown(root, left.pop()).values()):
            if document is None or own_slots(document)["standing"] not in {"current", "summarised"}:
                return False
            made_by = own_slots(document)["mission"] if own_slots(document)["kind"] == "mission" else mission
            if made_by not in asked:
                asked.add(made_by)
                left.append(made_by)
    return True


def answers_quoting(root: Root, names: Collection[str]) -> Iterator[str]:
    """Yield the names of the remembered answers that cite one of some memories, or an answer that is yielded.

    Reads each remembered answer once.
    """
    citing: dict[str, list[str]] = {}
    for found in memory_records.all_ranges(root):
        if found.kind == "mission":
            for name in list_cited(root, found.mission):
                citing.setdefault(name, []).append(found.document)
    left, told = list(names), set[str]()
    while left:
        fresh = dict.fromkeys(each for each in citing.get(left.pop(), ()) if each not in told)
        told.update(fresh)
        left += fresh
        yield from fresh


def cites_what_is_gone(root: Root, mission: str) -> bool:
    """Test if an answer cites a memory that is not there any more."""
    return any(name not in root[roots.DOCUMENTS] for name in list_cited(root, mission))


def list_cited(root: Root, mission: str) -> set[str]:
    """Return the memories that an answer cites."""
    shown = _list_shown(root, mission)
    cited = (shown.get(each["document"]) for each in _provenance(root, mission)["citations"])
    return {name for name in cited if name is not None}


def _list_shown(root: Root, mission: str) -> Mapping[int, str]:
    """Return the memories that a mission was shown, by the numbers that its citations name."""
    recalled = _provenance(root, mission)["recalled"]
    return {each["document"]: each["memory"] for each in recalled if "memory" in each}


def _provenance(root: Root, mission: str) -> Mapping[str, Any]:
    record = roots.find_record(root, mission)
    nothing: Mapping[str, object] = {"recalled": (), "citations": ()}
    return nothing if record is None else own_slots(record.thought).get("provenance", nothing)


#: Sentences of a memory that are looked for: whole books are not in turns.
_SENTENCES: Final = 200
#: The share of a sentence's telling words with which another text says it.
_SAID: Final = 0.6
#: A number that tells something by itself; a year does not.
_NUMBER: Final = re.compile(r"(?!(?:19|20)\d\d\Z)\d{3,}\Z")


@dataclass(frozen=True, slots=True)
class _Words:
    """The telling words of each sentence of some memories, and the numbers among them."""

    sentences: tuple[frozenset[str], ...]
    numbers: frozenset[str]

    def are_in(self, text: str) -> bool:
        """Test if a text says one of the sentences, or has one of the numbers."""
        said = frozenset(_telling(text))
        return bool(said & self.numbers) or any(len(said & each) >= _SAID * len(each) for each in self.sentences)


def take_out(root: Root, documents: Sequence[UvmObject], by: str, at: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Take out of conversations the turns that memories were said in, and those beside them that say the same.

    Methods that hold such words are retired. Summaries of the conversations are made anew.
    """
    words = _words_of(root, documents)
    turns = _turns(root, documents, words)
    missions = tuple(each for each in turns if memories_set_aside.mark_turn(root, each, memories_set_aside.WHOLE))
    memories_set_aside.drop_views(root, missions)
    found = {key: each for key, each in _active(root) if words.are_in(each.revisions[each.active].source)}
    named = {key: f"{own_slots(each.holder).get('name', '?')}.{each.selector}" for key, each in found.items()}
    revisions = [(key, each.active) for key, each in found.items()]
    why = Withdrawal(at, by, f"forgotten with {own_slots(documents[0])['name']}" if documents else "forgotten")
    return missions, tuple(named[key] for key, _, _ in memory_lineage.retire_all(root, revisions, why))


def _active(root: Root) -> Iterator[tuple[str, Lineage]]:
    yield from ((key, each) for key, each in root[roots.METHODS].items() if each.active)


def _turns(root: Root, documents: Iterable[UvmObject], words: _Words) -> Iterator[str]:
    """Yield the missions that memories are of, and others of their conversations that hold the words."""
    slots = [own_slots(each) for each in documents]
    own = dict.fromkeys(each["mission"] for each in slots if each["mission"])
    named = {each["conversation"] for each in slots}
    for mission in own:
        if (record := roots.find_record(root, mission)) is not None:
            named.add(record.brief.value.get("conversation") or "")
            yield mission
    for conversation in sorted(each for each in named if each in root[roots.CONVERSATIONS]):
        for mission in root[roots.CONVERSATIONS][conversation].turns.values():
            record = roots.mission_record(root, mission)
            answer = str(own_slots(record.thought).get("answer") or "")
            if mission not in own and words.are_in(f"{record.brief.value['text']}\n{answer}"):
                yield mission


def _words_of(root: Root, documents: Iterable[UvmObject]) -> _Words:
    texts = [own_slots(part)["text"] for each in documents for part in memory_records.chunks_of(root, each)]
    found = [frozenset(_telling(text[start:end])) for text in texts for start, end in sentence_spans(text)]
    sentences = tuple(each for each in found[:_SENTENCES] if len(each) > 1)
    numbers = frozenset(word for each in found[:_SENTENCES] for word in each if _NUMBER.match(word))
    return _Words(sentences, numbers)


def _telling(text: str) -> Iterator[str]:
    return (term if term.isdigit() else term[:STEM] for term in terms(text) if term not in COMMON)
