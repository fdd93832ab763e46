"""Replies as a client returns them: documents with typed names for their keys, and an answer as it is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

from batos.client.pending import OnAcknowledged, OnEvent
from batos.client.portal import Portal
from batos.protocol.brief import Effort, PersonaName

Document: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MissionLearning:
    """The cost of methods made for a mission, before its answer and after it."""

    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class MissionCost:
    """The cost of a mission, in all of its runs. `calls` asked a model to write, `embeds` to embed.

    `seconds` is what Ollama thought, `waited` what calls waited there for a turn and for `loads` of a model.
    """

    calls: int = 0
    embeds: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    loads: int = 0
    from_journal: int = 0
    wasted: int = 0
    #: Beside all that.
    learning: MissionLearning = field(default_factory=MissionLearning)


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A sentence of a file that carries one of the answer: `span` is its place in the file, in characters, and `page`
    the number of its page, 0 where the file has none.
    """

    name: str
    quote: str
    span: tuple[int, int]
    sentence: str
    score: float
    sha256: str
    page: int = 0


@dataclass(frozen=True, slots=True)
class MissionRoute:
    """The personas that think, with how much effort, and the reason."""

    personas: tuple[PersonaName, ...]
    effort: Effort
    confidence: float
    reason: str


class _NamedMission(Document):
    """A mission by its id, and how it stands."""

    @property
    def id(self) -> str:
        """Return its id, which stays valid."""
        return str(self["id"])

    @property
    def status(self) -> str:
        """Return one of queued, running, waiting, paused, done, failed, cancelled and parked."""
        return str(self["status"])


class Mission(_NamedMission):
    """A whole mission: the document itself (`mission["provenance"]`), with names for what most programs read."""

    @property
    def done(self) -> bool:
        """Test if it was answered."""
        return self.status == "done"

    @property
    def text(self) -> str:
        """Return the question that was asked."""
        return str(self["brief"]["text"])

    @property
    def conversation(self) -> str | None:
        """Return the conversation that it is a turn of."""
        named = self["brief"].get("conversation")
        return None if named is None else str(named)

    @property
    def answer(self) -> Any:
        """Return the answer: a text, or for a message any JSON that a method gave; None while there is none."""
        return self.get("answer")

    @property
    def value(self) -> Any:
        """Return what an answer by a schema says, as Python's values. ValueError: there is no such answer."""
        if "schema" not in self["brief"] or self.answer is None:
            raise ValueError(f"{self.id} has no answer by a schema: {self.status}")
        return json.loads(self.answer)

    @property
    def reason(self) -> Document | None:
        """Tell why it failed or waits: code, message, remedy, retry; None where nothing is wrong."""
        return self.get("reason")

    @property
    def cost(self) -> MissionCost:
        """Return its cost so far."""
        told = _known_fields(MissionCost.__match_args__, self.get("cost", {}))
        learning = _known_fields(MissionLearning.__match_args__, told.pop("learning", {}))
        return MissionCost(**told, learning=MissionLearning(**learning))

    @property
    def route(self) -> MissionRoute | None:
        """Return the personas and the effort; None before they are known, and for a message."""
        told = self.get("route")
        if not told or "personas" not in told:
            return None
        return MissionRoute(tuple(told["personas"]), told["effort"], float(told["confidence"]), str(told["reason"]))

    @property
    def sources(self) -> tuple[CitedSource, ...]:
        """Return the sentences that the answer quotes, in the order of its footnotes."""
        told = self.get("provenance", {}).get("citations", ())
        known = (_known_fields(CitedSource.__match_args__, each) for each in told)
        return tuple(CitedSource(**{**each, "span": tuple(each["span"])}) for each in known)


class MissionLine(_NamedMission):
    """A mission in a list."""

    @property
    def text(self) -> str:
        """Return the beginning of the question."""
        return str(self["text"])

    @property
    def user(self) -> str:
        """Return the user who asked."""
        return str(self["user"])


class Token(str):
    """A piece of an answer as it is written.

    Where `retracted` is true it is empty, and everything that came before it no longer stands: the answer is written
    anew, because a check found a fault in it, or because the server was restarted.
    """

    __slots__ = ("retracted",)

    def __new__(cls, text: str = "", *, retracted: bool = False) -> Token:
        """Make a piece; the last argument is keyword-only."""
        made = super().__new__(cls, text)
        made.retracted = retracted
        return made

    retracted: bool


def _known_fields(names: Iterable[str], told: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields that this version knows; a newer server may tell more."""
    return {name: told[name] for name in names if name in told}


_Asking: TypeAlias = Callable[[OnEvent, OnAcknowledged], Coroutine[Any, Any, Mission]]


class AsyncStream:
    """An answer as it is written: `async for token in stream`, then `await stream.mission()`."""

    def __init__(self, asking: _Asking) -> None:
        self._tokens: asyncio.Queue[Token | None] = asyncio.Queue()
        self._asking = asking
        self._task: asyncio.Task[Mission] | None = None
        self._ended = False
        self._text = ""
        self._id = ""

    @property
    def text(self) -> str:
        """Return the text of the answer that was read so far and was not retracted."""
        return self._text

    @property
    def id(self) -> str:
        """Return the mission's id; empty before the server has accepted it."""
        return self._id

    def __aiter__(self) -> Self:
        """Return the stream itself, which can be read once."""
        return self

    async def __anext__(self) -> Token:
        """Return the next piece. Raises the BatosError of the request; the pieces of a failed mission just end."""
        if self._task is None:
            self._task = self._begin()
        token = None if self._ended else await self._tokens.get()
        if token is None:
            if not self._ended:
                self._ended = True
                await self.mission()
            raise StopAsyncIteration
        self._text = "" if token.retracted else self._text + token
        return token

    async def mission(self) -> Mission:
        """Wait for the mission's end and return the mission with any status. Raises the BatosError of the request."""
        if self._task is None:
            self._task = self._begin()
        return await asyncio.shield(self._task)

    async def close(self) -> None:
        """Stop listening; the mission continues at the server."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> Self:
        """Return the stream, which is closed at the end of the block."""
        return self

    async def __aexit__(self, *_raised: object) -> None:
        """Stop listening."""
        await self.close()

    def _begin(self) -> asyncio.Task[Mission]:
        task = asyncio.ensure_future(self._asking(self._on_event, self._on_acknowledged))
        task.add_done_callback(lambda _: self._tokens.put_nowait(None))
        return task

    def _on_acknowledged(self, told: Mapping[str, object]) -> None:
        self._id = str(told["mission"])

    def _on_event(self, event: str, keys: Mapping[str, object]) -> None:
        if event == "mission.token":
            self._tokens.put_nowait(Token(str(keys["text"])))
        elif event == "mission.retracted":
            self._tokens.put_nowait(Token(retracted=True))


class Stream:
    """An answer as it is written: `for token in stream`, then `stream.mission()`."""

    def __init__(self, portal: Portal, twin: AsyncStream) -> None:
        self._portal, self._twin = portal, twin

    @property
    def text(self) -> str:
        """Return the text of the answer that was read so far and was not retracted."""
        return self._twin.text

    @property
    def id(self) -> str:
        """Return the mission's id; empty before the server has accepted it."""
        return self._twin.id

    def __iter__(self) -> Self:
        """Return the stream itself, which can be read once."""
        return self

    def __next__(self) -> Token:
        """Return the next piece. Raises the BatosError of the request; the pieces of a failed mission just end."""
        try:
            return self._portal.run(self._twin.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None

    def mission(self) -> Mission:
        """Wait for the mission's end and return the mission with any status. Raises the BatosError of the request."""
        return self._portal.run(self._twin.mission)

    def close(self) -> None:
        """Stop listening; the mission continues at the server."""
        self._portal.run(self._twin.close)

    def __enter__(self) -> Self:
        """Return the stream, which is closed at the end of the block."""
        return self

    def __exit__(self, *_raised: object) -> None:
        """Stop listening."""
        self.close()
