"""The calls that a mission makes of its asker's functions: each is approved where that is needed, and made once."""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from batos.client.pending import OnEvent, nobody
from batos.client.sending import Asks
from batos.client.tool_functions import CallFailed, CallTimedOut, declare
from batos.protocol.errors import BatosError, BriefError
from batos.protocol.lent_tools import CallOutcome


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call that a mission wants to make of a function, as `approve` gets it.

    `from_external`: an argument derives from a document, a page or a tool's reply, and not from the question.
    """

    tool: str
    arguments: Mapping[str, Any]
    reads: bool
    from_external: bool


#: Decides about a call: True lets it happen. A function that is not asynchronous runs in a thread, and may wait for a
#: person.
Approve: TypeAlias = Callable[[ToolUse], bool | Awaitable[bool]]


def always(_call: ToolUse) -> bool:
    """Return True: every call may happen, whatever it changes and wherever its arguments come from."""
    return True


class ToolCalls:
    """The functions that a program lends to one mission. A call that is asked for again is not made again.

    Raises: BriefError: a function cannot be a tool, or may change something and nothing approves its calls.
    """

    def __init__(
        self, functions: Sequence[Callable[..., object]], approve: Approve | None, ask: Asks, on_event: OnEvent | None
    ) -> None:
        declared = [declare(each) for each in functions]
        self._functions = {each.declaration.name: each for each in declared}
        self._approve, self._ask, self._on_event = approve, ask, on_event or nobody
        self.declarations = [each.declaration.model_dump() for each in declared]
        for each in declared if approve is None else ():
            if not each.declaration.reads:
                raise BriefError(
                    f"{each.declaration.name} may change something, and nothing approves its calls",
                    field="tools",
                    remedy="Mark it with @batos.read if it only reads, or give approve= (batos.always: each call).",
                )
        #: The name under which the server knows this asker, and nobody else does.
        self.caller = secrets.token_hex(16)
        self._made: dict[str, asyncio.Task[tuple[CallOutcome, str]]] = {}
        self._telling: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Begin to make calls."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Make no more calls: the mission has ended, or nobody waits for it."""
        tasks = (*self._telling.values(), *self._made.values())
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """Make the call that an event asks for, and pass every event on."""
        if event == "mission.tool_call":
            call = str(keys["call"])
            if call not in self._made:
                self._made[call] = asyncio.ensure_future(self._make(keys))
            if call not in self._telling or self._telling[call].done():
                self._telling[call] = asyncio.ensure_future(self._tell(call, self._made[call]))
        self._on_event(event, keys)

    async def _tell(self, call: str, made: asyncio.Task[tuple[CallOutcome, str]]) -> None:
        """Send the server the result of a call. A server that is not reached now asks again, and gets it then."""
        outcome, text = await asyncio.shield(made)
        with suppress(BatosError):
            await self._ask("tool_result", {"caller": self.caller, "call": call, "outcome": outcome, "text": text})

    async def _make(self, keys: Mapping[str, Any]) -> tuple[CallOutcome, str]:
        """Make a call and return its outcome with its result, or with the reason why there is none."""
        tool, is_file = str(keys["tool"]), bool(keys["is_file"])
        found = None if is_file else self._functions.get(tool)
        if found is None and not is_file:
            return "refused", f"the program has no function {tool!r}"
        reads = bool(keys["reads"]) if found is None else found.declaration.reads
        call = ToolUse(tool, dict(keys["arguments"]), reads, bool(keys["from_external"]))
        if objection := await self._objection(call):
            return "refused", objection
        if found is None:
            return "done", ""
        try:
            return "done", await found.run(call.arguments, float(keys["seconds"]))
        except CallTimedOut as error:
            return "failed" if found.declaration.reads else "unknown", str(error)
        except CallFailed as error:
            return "failed" if error.ran else "refused", str(error)

    async def _objection(self, call: ToolUse) -> str:
        """Return why a call may not be made; "" if it may."""
        if call.reads and not call.from_external:
            return ""
        if self._approve is None:
            return "it needs a yes (what it changes, or where its arguments are from), and there is no approve="
        try:
            if inspect.iscoroutinefunction(self._approve):
                said = await self._approve(call)
            else:
                said = await asyncio.to_thread(self._approve, call)
        except Exception as error:  # who cannot decide has not approved
            return f"approve= raised {type(error).__name__}: {error}"[:300]
        return "" if said is True else "the person who was asked said no"
