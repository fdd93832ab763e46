"""An answer as a client of another server reads it: words as they come, progress beside them, corrections below."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal, NamedTuple

from batos.protocol.mission_documents import MissionDocument
from batos.server.http.citation_marks import url_citations, with_marks
from batos.server.http.client_missions import ClientMissions, ClientQuestion, Following
from batos.server.http.client_tools import calls_of
from batos.server.http.http_exchange import Exchange

#: Stands between words that were withdrawn and the answer in their place.
_RULED_OFF: Final = "\n\n---\n\n"
#: The end of a sentence, as the name of a file has none.
_ENDED: Final = re.compile(r"[.!?:…。！？]\W*\Z")


class Piece(NamedTuple):
    """The next thing that a face sends: a piece of the answer, a line of progress, or nothing but a sign of life."""

    kind: Literal["answer", "progress", "beat"]
    text: str = ""


@dataclass(slots=True)
class AnswerStream:
    """The pieces of an answer, and its document when it is done. `sent` is all that was sent of the answer.

    With `live` words go out as they come; what the gate replaces later is sent again, under a line. Else the answer is
    sent when it stands.
    """

    asking: ClientMissions
    ask: ClientQuestion
    following: Following
    exchange: Exchange
    live: bool
    sent: str = ""
    _plain: str = ""
    _is_withdrawn: bool = False
    _marks: set[str] = field(default_factory=set)

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield what is to be sent until the answer is whole; `document` has it then.

        Raises: BatosError: there is no answer, and why. Where the client leaves, its mission is cancelled.
        """
        ended = False
        try:
            async for told in self.following.follow():
                if told.kind == "progress":
                    yield Piece("progress", f"{told.text}\n")
                elif told.kind == "beat":
                    yield Piece("beat")
                elif told.kind == "retracted":
                    self._is_withdrawn = bool(self._plain)
                elif self.live and not self._is_withdrawn and (text := self._live(*told)):
                    yield self._send(text)
            found = await self.following.document()
            ended = True
            for text in await self._rest(found):
                yield self._send(text)
            self.asking.note(self.following, self.ask, self.exchange.came_in, found, self.sent)
        finally:
            if not ended:
                self.asking.leave(self.following)

    def _send(self, text: str) -> Piece:
        self.sent += text
        return Piece("answer", text)

    def _live(self, kind: str, text: str, keys: Mapping[str, Any]) -> str:
        """Return what is sent of a word, or of a mark behind the words before it.

        A line that may be the name of a file before its code gets none.
        """
        if kind == "word":
            self._plain += text
            self._marks.clear()
            return text
        if "``" in self._plain or not _ENDED.search(str(keys.get("sentence", ""))):
            return ""
        if text in self._marks or text in self._plain[-len(text) - 2 :]:
            return ""
        self._marks.add(text)
        return f" {text}"

    async def _rest(self, found: MissionDocument) -> list[str]:
        """Return what is still to be sent when the answer stands."""
        answer = str(found["answer"])
        if calls_of(found):  # its text is for lists of missions; what it says here is the call
            return []
        if self._plain and answer.strip() == self._plain.strip() and not self._is_withdrawn:
            return []
        marked = await marked_answer(found, self.following)
        if not self._plain:
            return [marked]
        if answer.startswith(self._plain) and not self._is_withdrawn:
            return [answer[len(self._plain) :]]
        return [_RULED_OFF, marked]

    async def whole(self) -> MissionDocument:
        """Return the mission when it is done; `sent` is its answer with marks. Raises: BatosError: it has none."""
        async for _piece in self.pieces():
            pass
        return await self.following.document()


async def begin(asking: ClientMissions, ask: ClientQuestion, exchange: Exchange, *, streams: bool) -> AnswerStream:
    """Begin a mission, and name it in the reply's head; one that does not stream is sent the answer that stands.

    Raises: BatosError: it is not accepted.
    """
    following = await asking.begin(ask, exchange.came_in)
    exchange.accept(following.mission, partial(asking.leave, following))
    live = streams and asking.settings.http_answers == "live" and "schema" not in ask.fields
    return AnswerStream(asking, ask, following, exchange, live)


async def marked_answer(found: MissionDocument, following: Following) -> str:
    """Return an answer with the marks of its citations; one by a schema is as it is."""
    answer, citations = str(found["answer"]), found["provenance"].get("citations", [])
    if not citations or "schema" in found["brief"]:
        return answer
    return await asyncio.to_thread(with_marks, answer, citations, following.lines)


def annotations_of(found: MissionDocument, text: str, base: str) -> list[dict[str, Any]]:
    """Return the citations of an answer as OpenAI's annotations of a text."""
    return url_citations(text, found["provenance"].get("citations", []), f"{base}/m/{found['id']}")


def about(found: MissionDocument) -> dict[str, Any]:
    """Return what a reply says of the mission beyond what other servers do."""
    route, provenance = found["route"], found["provenance"]
    return {
        "mission": found["id"],
        "conversation": found["brief"].get("conversation"),
        "personas": list(route["personas"]),
        "effort": route["effort"],
        "sources": sorted({str(each.get("name", "memory")) for each in provenance.get("citations", [])}),
        "cost": dict(found["cost"]),
    }


def was_cut(found: MissionDocument) -> bool:
    """Test if an answer ends at its limit of tokens."""
    return bool(found["provenance"].get("cut"))
