"""The way to a server that is a program of this machine: lines of JSON over its standard streams."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, cast

from batos.agency.mcp import frames, keeper
from batos.agency.mcp.frames import MOST_BYTES, MOST_MESSAGE, Frame
from batos.concurrency.threads import finish_despite_cancel
from batos.protocol.errors import LookUpFailed

#: Bytes of what a program says besides that are kept, and seconds that its keeper has to clear up.
_KEPT: Final = 2_000
_CLEARING: Final = 5.0


@dataclass(slots=True)
class StdioTransport:
    """Speaks with a process that is running."""

    process: asyncio.subprocess.Process
    #: The end of what the program said on its standard error.
    said: bytes = b""

    async def exchange(self, frame: Frame, headers: Mapping[str, str]) -> Frame:
        """Send a request, and return the response that has its id; requests of the server are refused.

        Raises: LookUpFailed: the program ended, or sent too much before it.
        """
        await self.notify(frame, headers)
        reader, size = cast("asyncio.StreamReader", self.process.stdout), 0
        while size <= MOST_BYTES:
            try:
                line = await reader.readline()
            except ValueError as error:  # the line has no end within the limit
                raise LookUpFailed(f"it sent a line of more than {MOST_MESSAGE:,} bytes") from error
            if not line:
                raise LookUpFailed(await self._describe_end(), remedy="Run its command by hand.")
            size += len(line)
            found = await asyncio.to_thread(frames.decode, line) if len(line) > _KEPT else frames.decode(line)
            if found is not None and frames.is_response(found, frame["id"]):
                return found
            if found is not None and frames.is_request(found):
                await self.notify(frames.refuse(found), {})
        raise LookUpFailed(f"it sent more than {MOST_BYTES:,} bytes before an answer")

    async def notify(self, frame: Frame, _headers: Mapping[str, str]) -> None:
        """Send a message that nobody answers. Raises: LookUpFailed: the program ended."""
        writer = cast("asyncio.StreamWriter", self.process.stdin)
        try:
            writer.write(frames.encode(frame) + b"\n")
            await writer.drain()
        except OSError as error:
            raise LookUpFailed(await self._describe_end(), remedy="Run its command by hand.") from error

    async def drain(self) -> None:
        """Take what the program says on its standard error, and keep the end of it."""
        reader = cast("asyncio.StreamReader", self.process.stderr)
        while piece := await reader.read(_KEPT):
            self.said = (self.said + piece)[-_KEPT:]

    async def _describe_end(self) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self.process.wait()
        last = self.said.decode("utf-8", "replace").strip().rpartition("\n")[2]
        shown = "".join(each if each.isprintable() else " " for each in last)[:200]
        return f"its program ended without an answer{f': {shown}' if shown else ''}"


@asynccontextmanager
async def open_stdio(command: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[StdioTransport]:
    """Start a program in an empty folder with these variables alone; at the end nothing of it is left."""
    with tempfile.TemporaryDirectory(prefix="batos-mcp-", ignore_cleanup_errors=True) as folder:
        end, life = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", keeper.__file__, str(end), *command, env=dict(env), cwd=folder,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                pass_fds=(end,), start_new_session=True, limit=MOST_MESSAGE,
            )  # fmt: skip
        except BaseException:
            os.close(life)
            raise
        finally:
            os.close(end)
        transport = StdioTransport(process)
        draining = asyncio.ensure_future(transport.drain())
        try:
            yield transport
        finally:
            os.close(life)
            await finish_despite_cancel(asyncio.ensure_future(_end(process)))
            draining.cancel()


async def _end(process: asyncio.subprocess.Process) -> None:
    """Let the keeper end the program and all that it started; a keeper that does not is killed with its group."""
    reader = cast("asyncio.StreamReader", process.stdout)
    cast("asyncio.StreamWriter", process.stdin).close()
    for _ in range(2):
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLEARING):
                while await reader.read(MOST_MESSAGE):  # a process with a full pipe is never done
                    pass
                await process.wait()
                return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
