"""The calls of one mission, and the bare client making them: what the kernel and its peers are compared with."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import ollama

CALLS = 6

#: Fields that the kernel adds to a request and the client has no argument for.
_BEYOND_CLIENT = ("truncate", "shift")


class Side(Protocol):
    """Something that answers a mission of six calls."""

    name: str

    async def mission(self, number: int) -> None:
        """Run one mission to its end; raise when it did not end well."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...


@dataclass(frozen=True, slots=True)
class MissionCalls:
    """The keyword arguments of `ollama.AsyncClient.chat` for each call of a mission, by its place in the order."""

    decompose: Mapping[str, Any]
    facets: tuple[Mapping[str, Any], ...]
    weave: Mapping[str, Any]
    revise: Mapping[str, Any]

    @classmethod
    def from_bodies(cls, bodies: Sequence[Mapping[str, Any]]) -> MissionCalls:
        """Make the calls from the bodies that one mission of the kernel sent, in the order of arrival."""
        if len(bodies) != CALLS:
            raise ValueError(f"a mission of {CALLS} calls was expected, {len(bodies)} came")
        calls = [{k: v for k, v in body.items() if k not in _BEYOND_CLIENT} for body in bodies]
        return cls(calls[0], tuple(calls[1:4]), calls[4], calls[5])


async def say(client: ollama.AsyncClient, call: Mapping[str, Any]) -> str:
    """Make one call as a user of the client writes it, streamed or whole as `call` says; return the text."""
    if not call.get("stream"):
        answer = await client.chat(**call)
        return answer.message.content or ""
    pieces = [part.message.content or "" async for part in await client.chat(**call)]
    return "".join(pieces)


class BareSide:
    """`ollama.AsyncClient` with its defaults, one for all missions; nothing is kept."""

    name = "bare"

    def __init__(self, url: str, calls: MissionCalls) -> None:
        self._client = ollama.AsyncClient(host=url)
        self._calls = calls

    async def mission(self, number: int) -> None:
        """Run a mission: decompose, three facets at once, weave, one revision."""
        await say(self._client, self._calls.decompose)
        await asyncio.gather(*(say(self._client, facet) for facet in self._calls.facets))
        await say(self._client, self._calls.weave)
        await say(self._client, self._calls.revise)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the client leaves this one untyped
