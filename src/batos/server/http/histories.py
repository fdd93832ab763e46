"""Conversations of clients that send all of it again with each question: found by a chain of digests, and forked."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from batos.image import roots
from batos.image.image import LivingImage
from batos.missions import reports
from batos.objects.prototype import own_slots
from batos.protocol.evidence_documents import WantedCallDocument
from batos.server.http.sent_messages import SentMessage, in_one_form

#: Exchanges that are known at once; the newest missions that are looked through for them at the start.
KNOWN: Final = 20_000
_NEWEST: Final = 2_000
#: Exchanges at the end of a history that are compared where its beginning is gone.
_COMPARED: Final = 40
#: The marks of documents that the door writes behind sentences.
_MARK: Final = re.compile(r"\s?\[[^\[\]\n]{1,255}\]")


class KnownTurn(NamedTuple):
    """An answered turn: its mission, its conversation, the chain of digests before and after it, its own digest."""

    mission: str
    conversation: str | None
    before: str
    chain: str
    own: str


class Place(NamedTuple):
    """Holds the conversation that a question continues, or the mission that it forks; `known` counts our turns."""

    conversation: str | None
    mission: str | None
    known: int


def digest_of(question: str, answer: str) -> str:
    """Return the digest of an exchange; blanks, letters' forms and our own marks make no difference."""
    told = "\0".join(_plain(each) for each in (question, answer))
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", _MARK.sub("", text)).split())


def chain_of(before: str, own: str) -> str:
    """Return the chain that an exchange makes of the one before it.

    >>> chain_of("", "ab") != chain_of(chain_of("", "ab"), "ab")
    True
    """
    return hashlib.sha256(f"{before}\0{own}".encode()).hexdigest()


def exchanges_of(earlier: Sequence[SentMessage]) -> list[str]:
    """Return the digests of the exchanges that messages make: questions in a row are one, an answer closes it.

    Calls of tools and their results between a question and its answer are no part of what was said.
    """
    found: list[str] = []
    asked: list[str] = []
    answered: list[str] = []
    for each in (one for one in earlier if one.role not in {"calls", "tool"}):
        if each.role == "user" and answered:
            found.append(digest_of("\n\n".join(asked), "\n\n".join(answered)))
            asked, answered = [], []
        (asked if each.role == "user" else answered).append(each.text)
    if asked or answered:
        found.append(digest_of("\n\n".join(asked), "\n\n".join(answered)))
    return found


def in_pairs(wanted: Iterable[WantedCallDocument]) -> Iterator[tuple[str, str]]:
    """Yield the calls of a mission as those of a client are: the tool, and the arguments in one form."""
    return ((each["tool"], in_one_form(each["arguments"])) for each in wanted)


def digest_of_calls(before: str, question: str, calls: Iterable[tuple[str, str]]) -> str:
    """Return the digest of calls, each a tool with its arguments, that a question had in the place of an answer."""
    # The digest of the calls stands for them: brackets would be taken for our marks.
    made = hashlib.sha256(json.dumps(sorted(calls)).encode("utf-8", "replace")).hexdigest()
    return chain_of(before, digest_of(question, made))


class Histories:
    """The answered turns of clients, by digests, read anew from the image at a start: nothing else is kept."""

    def __init__(self, image: LivingImage) -> None:
        self._image = image
        self._reading: asyncio.Task[None] | None = None
        #: The turns by user and chain, and those by user and own digest, the newest last.
        self._chains: OrderedDict[tuple[str, str], KnownTurn] = OrderedDict()
        self._own: dict[tuple[str, str], list[KnownTurn]] = {}
        #: The missions that ended with calls, and their conversations, by user and digest.
        self._calls: OrderedDict[tuple[str, str], tuple[str, str | None]] = OrderedDict()
        #: The newest mission of each conversation.
        self._last: dict[str, str] = {}

    async def find(self, user: str, earlier: Sequence[SentMessage]) -> tuple[Place, str]:
        """Return where a question goes whose client says what came before it, and the chain of that.

        The longest beginning of the history that is known counts; where none is, its end, for clients that leave the
        oldest messages out.
        """
        await self._read()
        chain, chains = "", list[str]()
        digests = exchanges_of(earlier)
        for each in digests:
            chain = chain_of(chain, each)
            chains.append(chain)
        for number in range(len(chains), 0, -1):
            if (found := self._chains.get((user, chains[number - 1]))) is not None:
                return self._place(found, number, len(chains)), chain
        trimmed = self._find_trimmed(user, digests[-_COMPARED:])
        return (Place(None, None, 0) if trimmed is None else self._place(trimmed, 1, 1)), chain

    def _place(self, found: KnownTurn, number: int, of: int) -> Place:
        """Return the place after a turn: its conversation goes on if nothing follows it there, else it is forked."""
        with self._image.snapshot() as root:
            record = roots.find_record(root, found.mission)
            if record is None or record.status.word != "done":  # it was undone meanwhile
                return Place(None, None, 0)
        is_end = number == of and self._last.get(found.conversation or "") == found.mission
        return Place(found.conversation if is_end else None, found.mission, number)

    def _find_trimmed(self, user: str, digests: Sequence[str]) -> KnownTurn | None:
        """Return the turn at the end of a history that is known, though what came before it is not all there."""
        for last in reversed(self._own.get((user, digests[-1]), ()) if digests else ()):
            each: KnownTurn | None = last
            for digest in reversed(digests):
                if each is None or each.own != digest:
                    break
                each = self._chains.get((user, each.before))
            else:
                return last
        return None

    def note(self, user: str, mission: str, conversation: str | None, before: str, said: tuple[str, str]) -> None:
        """Note an answered turn, its question and its answer as the client was told them."""
        own = digest_of(*said)
        if conversation is not None:
            self._last[conversation] = max(mission, self._last.get(conversation, ""))
        known = KnownTurn(mission, conversation, before, chain_of(before, own), own)
        self._chains[user, known.chain] = known
        self._own.setdefault((user, own), []).append(known)
        while len(self._chains) > KNOWN:
            (owner, _), gone = self._chains.popitem(last=False)
            left = self._own.get((owner, gone.own), [])
            if gone in left:
                left.remove(gone)
            if self._last.get(gone.conversation or "") == gone.mission:
                del self._last[gone.conversation or ""]
            if not left:
                self._own.pop((owner, gone.own), None)

    def note_calls(self, user: str, mission: str, conversation: str | None, digest: str) -> None:
        """Note a mission that ended with calls."""
        self._calls[user, digest] = mission, conversation
        while len(self._calls) > KNOWN:
            self._calls.popitem(last=False)

    def find_calls(self, user: str, digest: str) -> Place:
        """Return the place of what follows a mission that ended with calls: its conversation, if no turn came since."""
        mission, conversation = self._calls.get((user, digest), (None, None))
        if mission is None:
            return Place(None, None, 0)
        place = self._place(KnownTurn(mission, conversation, "", "", ""), 0, 0)
        has_gone_on = self._last.get(conversation or "", "") > mission
        return place._replace(conversation=None if place.mission is None or has_gone_on else conversation)

    async def _read(self) -> None:
        """Read what is known from the image, once, in a thread."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._note_stored())
        await asyncio.shield(self._reading)

    async def _note_stored(self) -> None:
        for user, mission, conversation, before, said in reversed(await asyncio.to_thread(self._read_stored)):
            if isinstance(said, str):
                self.note_calls(user, mission, conversation, said)
            else:
                self.note(user, mission, conversation, before, said)

    def _read_stored(self) -> list[tuple[str, str, str | None, str, tuple[str, str] | str]]:
        """Return the newest turns that came through the door, the newest first: what was said, or the calls' digest."""
        found: list[tuple[str, str, str | None, str, tuple[str, str] | str]] = []
        with self._image.snapshot() as root:
            for name, record in islice(reports.newest(root), _NEWEST):
                brief = record.brief.value
                history = brief.get("origin", {}).get("history")
                if history is not None and record.status.word == "done":
                    slots = own_slots(record.thought)
                    said: tuple[str, str] | str = brief["text"], str(slots.get("answer", ""))
                    if wanted := slots.get("provenance", {}).get("tool_calls"):
                        said = digest_of_calls(history, brief["text"], in_pairs(wanted))
                    found.append((brief["user"], name, brief.get("conversation"), history, said))
        return found
