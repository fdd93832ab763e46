"""Turns and methods that hold the words of a memory that is forgotten: with them it would come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from batos.image import roots
from batos.image.records import Lineage
from batos.image.roots import Root
from batos.memory.records import memories_set_aside, memory_records
from batos.memory.segmentation import STEM, sentence_spans, terms
from batos.memory.words_by_language import COMMON
from batos.objects.prototype import UvmObject, own_slots
from batos.records import memory_lineage
from batos.records.memory_lineage import Withdrawal

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


@dataclass(frozen=True, slots=True)
class ForgottenTurns:
    """The missions of turns that are shown no more, and the methods that were retired, as `object.selector`."""

    missions: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


def take_out(root: Root, documents: Sequence[UvmObject], by: str, at: str) -> ForgottenTurns:
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
    return ForgottenTurns(missions, tuple(named[key] for key, _, _ in memory_lineage.retire_all(root, revisions, why)))


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
