"""The verb `mcp`: the mind as an MCP server over standard input and output, for a host that starts it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Final

import click

from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door, Opened
from batos.cli.verb_options import VerbCall, run, with_server
from batos.client.pending import OnEvent
from batos.protocol.brief import client_name
from batos.protocol.errors import ProtocolError
from batos.protocol.wire_messages import encode, parse
from batos.server.mcp.mcp_messages import (
    INVALID_REQUEST,
    PARSE_ERROR,
    McpClient,
    McpError,
    McpRequest,
    Message,
    client_of,
    read_request,
)
from batos.server.mcp.mcp_service import McpService
from batos.version import __version__

#: Bytes of a message, and messages that are under way at once.
_MOST, _AT_ONCE = 2**20, 64
#: Seconds that requests have when the input has ended: a host waits no longer, and a pipe of commands ends at once.
_ENDING: Final = 1.0
#: Seconds that a person has to answer a question.
_PATIENCE: Final = 600.0


@click.command()
@click.option("--person", is_flag=True, help="A person types there: what comes is that person's word.")
@with_server
def mcp(called: VerbCall, person: bool) -> int:
    """Serve the Model Context Protocol over standard input and output, for a host that starts this command.

    Hosts of other models ask the mind, remember and recall by its tools (`batos help mcp`). Nothing else is written to
    standard output; the end of standard input ends the command, and missions go on.
    """
    return run(_serve(open_door(called), sys.stdin.buffer, sys.stdout.buffer, is_person=person))


async def _serve(opened: Opened, stdin: BinaryIO, stdout: BinaryIO, *, is_person: bool) -> int:
    async with opened as door:
        await StdioServer(door, stdout, is_person=is_person).serve(stdin)
    return 0


class StdioServer:
    """Answers the messages of one host, each on a line."""

    def __init__(self, door: Door, stdout: BinaryIO, *, is_person: bool) -> None:
        self._door, self._stdout, self._is_person = door, stdout, is_person
        self._service, self._writes = McpService(__version__), asyncio.Lock()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._under_way: dict[object, asyncio.Task[None]] = {}
        self._asked: dict[str, asyncio.Future[Message]] = {}
        self._can_ask = False
        self._name: object = None

    async def serve(self, stdin: BinaryIO) -> None:
        """Serve until the input ends."""
        lines: asyncio.Queue[bytes | None] = asyncio.Queue(_AT_ONCE)
        reader = threading.Thread(target=_read, args=(stdin, lines, asyncio.get_running_loop()), daemon=True)
        reader.start()  # a read from a pipe cannot be cancelled: no thread that the end waits for may stand in it
        try:
            while (line := await lines.get()) is not None:
                await self._take(line)
            if self._under_way:
                await asyncio.wait(self._under_way.values(), timeout=_ENDING)
        finally:
            for each in tuple(self._under_way.values()):
                each.cancel()
            await asyncio.gather(*self._under_way.values(), return_exceptions=True)

    async def _take(self, line: bytes) -> None:
        """Take a line: an answer to a question of ours, a notification, or a request, which is begun."""
        if not line.strip():
            return
        try:
            if not line.endswith(b"\n") and len(line) > _MOST:
                raise ProtocolError(f"a message has at most {_MOST:,} bytes")
            message = parse(line)
        except ProtocolError as error:
            await self._tell(McpError(PARSE_ERROR, error.message).reply(None))
            return
        if isinstance(message, dict) and "method" not in message and message.get("id") in self._asked:
            self._asked.pop(message["id"]).set_result(message)
            return
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            number = params.get("requestId") if isinstance(params, dict) else None
            if isinstance(number, str | int) and number in self._under_way:
                self._under_way[number].cancel()
            return
        await self._begin(message)

    async def _begin(self, message: object) -> None:
        """Begin to answer a request; a message that is none is told at once."""
        number = message.get("id") if isinstance(message, dict) else None
        try:
            request = read_request(message)
            if request is None:
                return
            if request.number in self._under_way:
                raise McpError(INVALID_REQUEST, "a request with this id is under way")
        except McpError as error:
            await self._tell(error.reply(number))
            return
        if request.method == "initialize":
            able = request.params.get("capabilities")
            self._can_ask, self._name = isinstance(able, dict) and "elicitation" in able, client_of(request)
        await self._places.acquire()
        task = asyncio.get_running_loop().create_task(self._answer(request))
        self._under_way[request.number] = task
        task.add_done_callback(lambda _task: self._end(request.number))

    def _end(self, number: object) -> None:
        del self._under_way[number]
        self._places.release()

    async def _answer(self, request: McpRequest) -> None:
        name, elicits = client_name(client_of(request) or self._name), self._ask_person if self._can_ask else None
        client = McpClient(self._call, "stdio", name, self._is_person, tell=self._tell, elicits=elicits)
        await self._tell(await self._service.reply(request, client))

    async def _call(self, verb: str, args: Mapping[str, object], on_event: OnEvent) -> dict[str, Any]:
        found = await self._door.call(verb, args, on_event)
        if verb == "submit":
            await self._door.begin(str(found["mission"]))  # where no server does it by itself
        return found

    async def _ask_person(self, params: Message) -> Message:
        """Let the host ask the person at it; return what was answered, {} if nothing."""
        name = f"batos-{len(self._asked)}-{id(params)}"
        answered = self._asked[name] = asyncio.get_running_loop().create_future()
        try:
            await self._tell({"jsonrpc": "2.0", "id": name, "method": "elicitation/create", "params": params})
            async with asyncio.timeout(_PATIENCE):
                reply = await answered
        except TimeoutError:
            return {}
        finally:
            self._asked.pop(name, None)
        found = reply.get("result")
        return found if isinstance(found, dict) else {}

    async def _tell(self, message: Message) -> None:
        async with self._writes:
            await asyncio.to_thread(self._write, encode(message) + b"\n")

    def _write(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # a host that has left: the input ends too
            self._stdout.write(line)
            self._stdout.flush()


def _read(stdin: BinaryIO, lines: asyncio.Queue[bytes | None], loop: asyncio.AbstractEventLoop) -> None:
    """Hand on each line as there is room for it, a line that is too long as its beginning, then None."""
    with suppress(RuntimeError, OSError, ValueError):  # the loop has ended, or the input was closed
        while line := stdin.readline(_MOST + 1):
            rest = line
            while len(rest) > _MOST and not rest.endswith(b"\n"):
                rest = stdin.readline(_MOST + 1)
            asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
        asyncio.run_coroutine_threadsafe(lines.put(None), loop).result()
