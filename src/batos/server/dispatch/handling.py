"""The functions that answer verbs: each is held against the arguments and the reply of its verb."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from batos.client.pending import OnAcknowledged, OnEvent
from batos.protocol.errors import NoServer
from batos.verbs.all_verbs import read_args
from batos.verbs.wire_verb import Args, Reply, WireVerb

T = TypeVar("T")
#: Answers a verb: its arguments, the listener to events, and who hears once that a mission is durable.
Handler: TypeAlias = Callable[[Any, OnEvent, OnAcknowledged], Awaitable[Mapping[str, object]]]


class Shield(Protocol):
    """Does something to its end, also when who asked for it is gone."""

    async def __call__(self, work: Coroutine[Any, Any, T], stop: Callable[[], object] | None = None) -> T:
        """Do the work to its end and return its result; `stop` lets it end soon, where the process stops."""
        ...


def bind(
    verb: WireVerb[Args, Reply], handler: Callable[[Args, OnEvent, OnAcknowledged], Awaitable[Reply]]
) -> tuple[str, Handler]:
    """Return a verb's name with the function that answers it."""
    return verb.name, handler


async def answer(
    verbs: Mapping[str, Handler], verb: str, args: Mapping[str, object], on_event: OnEvent, on_ack: OnAcknowledged
) -> dict[str, Any]:
    """Do what a verb says and give its result.

    Raises BatosError: ProtocolError for what is no verb or not what it takes, NoServer for what is not done by these
    verbs, else what the verb's work raises.
    """
    given = read_args(verb, args)
    if verb not in verbs:
        raise NoServer(f"no server runs, and {verb} does more than read the image")
    return dict(await verbs[verb](given, on_event, on_ack))
