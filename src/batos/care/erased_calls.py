"""Erasure in the journal: what was asked and answered goes, the digests stay, and the chain is verified as before."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, Final

from BTrees.OOBTree import OOBTree
from persistent import Persistent

from batos.care.erasure_plan import holds
from batos.history import dreams, past_questions
from batos.history.dreams import DREAMS
from batos.image.image import LivingImage
from batos.image.roots import JournalRoot, connection_of
from batos.inference.journal import Entries, Entry, MissionLog
from batos.methods.generation import generation_log
from batos.protocol.errors import NotFound
from batos.records import word_redaction
from batos.records.erased_words import ErasedWords

#: Keys of a note that are about a state, or the round of a generation, and have no words.
_PLAIN: Final = frozenset({"state", "at", "attempt", "round", "ended"})


def find_logs(root: JournalRoot, missions: Collection[str]) -> set[str]:
    """Return the logs of missions: their own, and those of the generations that they began."""
    logs = _logs_of(root)
    found = set(missions)
    for name in missions:
        for note in logs[name].notes if name in logs else ():
            told = note.get(generation_log.LEARNED)
            if told and told.get("began") and told.get("generation"):
                found.add(str(told["generation"]))
    return found


def list_others(root: JournalRoot, user: str | None) -> set[str]:
    """Return the dreams and questions to the past of other users than this one (None: none of them are)."""
    if user is None:
        return set()
    found = {name for name, dream in root.get(DREAMS, {}).items() if dream["user"] != user}
    for name, log in _logs_of(root).items():
        asked = [note[past_questions.NOTE]["report"] for note in log.notes if past_questions.NOTE in note]
        if asked and json.loads(asked[-1])["brief"]["user"] != user:
            found.add(name)
    return found


def list_generations(root: JournalRoot) -> set[str]:
    """Return the logs of methods that were generated: they are no user's."""
    return {name for name in _logs_of(root) if not name.startswith("m-")}


def erase_calls(root: JournalRoot, logs: Collection[str], quotes: ErasedWords, spared: Collection[str]) -> int:
    """Erase all calls and notes of some logs, and the calls of others that have the words; return how many calls went.

    The logs of `spared` are left as they are: their missions have the words of their own. Within a change.
    """
    erased = 0
    for name, log in _logs_of(root).items():
        if name in logs:
            erased += log.erase_words()
            log.replace_notes({key: note[key] for key in _PLAIN if key in note} for note in log.notes)
            if name.startswith("m-"):  # another mission may go on with a generation
                log.close()
        elif name not in spared and quotes:
            erased += log.erase_words(partial(_has, words=quotes))
            _redact_notes(log, quotes)
    return erased


def _has(entry: Entry, *, words: ErasedWords) -> bool:
    try:
        return words.are_in_bytes(zlib.decompress(entry.bodies))
    except zlib.error:
        return False


def _redact_notes(log: MissionLog, words: ErasedWords) -> None:
    if any(holds(note, words) for note in log.notes):
        log.replace_notes([words.redact_value(dict(note)) for note in log.notes])


def drop_dreams(root: JournalRoot, missions: Collection[str], words: ErasedWords, user: str | None) -> list[str]:
    """Drop dreams that are named, and a user's that have the words; return their names. Within a change."""
    none: OOBTree[str, Any] = OOBTree()
    kept = root.get(DREAMS, none)
    gone = [
        name
        for name, dream in kept.items()
        if name in missions or (user in (None, dream["user"]) and holds(dream, words))
    ]
    for name in gone:
        del kept[name]
    return gone


def redact_rest(root: JournalRoot, words: ErasedWords, spared: Collection[str], at: str) -> int:
    """Take words out of whatever else the journal has; return how many objects were changed. Within a change."""
    others = {oid for name in spared for oid in _records_of(root, name)}
    holding = [oid for oid in word_redaction.find_holding(root, words) if oid not in others]
    return word_redaction.redact_objects(root, [each for each in holding if not _is_call(root, each)], words, at)


def _logs_of(root: JournalRoot) -> OOBTree[str, MissionLog]:
    none: OOBTree[str, MissionLog] = OOBTree()
    return root.get("missions", none)


def _records_of(root: JournalRoot, name: str) -> Iterator[bytes]:
    """Yield the oids of the records of a log, and of a dream of that name, but for its calls."""
    kept: list[Any] = []
    if (log := _logs_of(root).get(name)) is not None:
        kept += [log, *log.notes]
    kept += [root["dreams"][name]] if name in root.get(DREAMS, ()) else []
    yield from (each._p_oid for each in kept if isinstance(each, Persistent) and each._p_oid is not None)


def _is_call(root: JournalRoot, oid: bytes) -> bool:
    return isinstance(connection_of(root).get(oid), Entry)


def find_own_log(image: LivingImage, journal: Entries, named: str, user: str | None) -> tuple[str, str] | None:
    """Return the id of a mission of which only the journal knows, and what was asked: a dream, a question to the past.

    None: there is none of this user's.
    """
    try:
        dream = dreams.read(image, named, user)
    except NotFound:
        asked = past_questions.find_question(journal, named, user)
        return None if asked is None else (asked["id"], asked["brief"]["text"])
    return dream["mission"], dream["brief"]["text"]
