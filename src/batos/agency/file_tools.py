"""Tools of the files in the home's `tools/`: each file runs in a child process of its own, and never in the server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from pydantic import ValidationError

from batos.agency import tool_process
from batos.protocol.lent_tools import FAILURE_LIMIT, RESULT_BYTES, CallReply, ToolDeclaration

#: The folder of the home that the files are in.
FOLDER: Final = "tools"
#: Seconds of a call, and of the listing of a file.
CALL_SECONDS, LIST_SECONDS = 60.0, 10.0
#: The most files that are looked at; seconds beyond its own time after which a process is killed.
MOST_FILES, GRACE = 64, 2.0
_REPLY_BYTES: Final = 4 * RESULT_BYTES


@dataclass(frozen=True, slots=True)
class ToolFile:
    """A file with its tools, or with the reason why it has none."""

    path: Path
    tools: tuple[ToolDeclaration, ...] = ()
    error: str = ""


class FileTools:
    """The files of a folder. A file is listed anew when it has changed; a call has so many seconds."""

    def __init__(self, folder: Path, seconds: float = CALL_SECONDS) -> None:
        self._folder, self._seconds = folder, seconds
        #: The files as they were listed last.
        self.known: Sequence[ToolFile] = ()
        self._listed: dict[Path, tuple[tuple[int, int, int], ToolFile]] = {}
        self._turn = asyncio.Lock()

    async def list_files(self) -> list[ToolFile]:
        """Return the files by name, broken ones too; a file with a tool of a name that an earlier one has is broken."""
        async with self._turn:
            paths = await asyncio.to_thread(lambda: sorted(self._folder.glob("[!_.]*.py"))[:MOST_FILES])
            found, names = [], set[str]()
            for file in [await self._look(path) for path in paths]:
                twice = names & {each.name for each in file.tools}
                names |= {each.name for each in file.tools}
                told = f"another file has a tool {min(twice)!r} too" if twice else ""
                found.append(ToolFile(file.path, error=told) if twice else file)
            self.known = found
            return found

    async def _look(self, path: Path) -> ToolFile:
        """Return a file as it is now; only one that has changed is loaded."""
        try:
            status = await asyncio.to_thread(path.lstat)
        except OSError as error:
            return ToolFile(path, error=str(error.strerror))
        mark = (status.st_mtime_ns, status.st_size, status.st_ino)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            return ToolFile(path, error="it is no plain file that only you may write to (`chmod go-w` makes it one)")
        if path not in self._listed or self._listed[path][0] != mark:
            self._listed[path] = mark, _read_listing(path, await _ask(path, {}, LIST_SECONDS))
        return self._listed[path][1]

    async def run(self, tool: str, arguments: Mapping[str, object]) -> CallReply:
        """Run a tool, and return what came of it; a process that gives no answer is `unknown`."""
        path = next((each.path for each in await self.list_files() if tool in {one.name for one in each.tools}), None)
        if path is None:
            return {"outcome": "refused", "text": f"no file of `tools/` has a tool {tool!r} any more"}
        told = await _ask(path, {"tool": tool, "arguments": dict(arguments)}, self._seconds)
        if told.get("outcome") in ("done", "failed", "refused", "unknown"):
            return {"outcome": told["outcome"], "text": str(told.get("text", ""))}
        return {"outcome": "unknown", "text": str(told["error"])}


def _read_listing(path: Path, told: Mapping[str, Any]) -> ToolFile:
    if "tools" not in told:
        return ToolFile(path, error=str(told.get("error", "it gave no list of its tools")))
    try:
        return ToolFile(path, tuple(ToolDeclaration.model_validate(each) for each in told["tools"]))
    except (ValidationError, TypeError) as error:
        return ToolFile(path, error=f"its tools cannot be read: {error}"[:FAILURE_LIMIT])


async def _ask(path: Path, asked: Mapping[str, object], seconds: float) -> dict[str, Any]:
    """Ask a file in a process of its own, which ends with all that it started; return its reply, or an `error`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-X", "utf8", "-m", tool_process.__name__, str(path), str(seconds),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        env={}, cwd=path.parent, start_new_session=True, limit=_REPLY_BYTES,
    )  # fmt: skip
    replies = cast("asyncio.StreamReader", process.stdout)
    try:
        async with asyncio.timeout(seconds + GRACE):
            cast("asyncio.StreamWriter", process.stdin).write(json.dumps(asked).encode() + b"\n")
            told = json.loads(await replies.readline())
        return told if isinstance(told, dict) else {"error": "its process gave no reply"}
    except TimeoutError:
        return {"error": f"it did not end within {seconds:g} s, and was killed"}
    except (ValueError, OSError):
        return {"error": "its process ended without a reply: it ran out of memory or of time, or ended itself"}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
