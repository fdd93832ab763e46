"""The child process of a file of tools: it loads the file under limits, lists its tools or runs one, and ends.

`python -I -m batos.agency.tool_process FILE SECONDS` takes one line of JSON and gives one: {} lists the tools,
{"tool", "arguments"} runs one. Whatever the file prints goes to its standard error.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Final

from batos.client.tool_functions import CallFailed, CallTimedOut, ToolFunction, declare, is_marked
from batos.protocol.errors import BriefError
from batos.protocol.lent_tools import TOOLS_LIMIT

#: Bytes of memory of the process.
MEMORY: Final = 1024**3


def limit(seconds: float) -> None:
    """Limit this process: its memory, its time on the processor, and no dump of its memory."""
    most = {resource.RLIMIT_AS: MEMORY, resource.RLIMIT_CPU: int(seconds) + 1, resource.RLIMIT_CORE: 0}
    for what, size in most.items():
        resource.setrlimit(what, (size, size))


def load(path: str) -> dict[str, ToolFunction]:
    """Load a file and return its tools by name.

    Raises: BriefError: a marked function cannot be a tool, or there are none or too many. Whatever the file raises.
    """
    spec = spec_from_file_location("batos_tools_file", path)
    if spec is None or spec.loader is None:
        raise BriefError("it is no Python file", field="tools")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = [declare(each) for each in vars(module).values() if is_marked(each)]
    if not found or len(found) > TOOLS_LIMIT:
        raise BriefError(
            f"it has {len(found) or 'no'} tools", field="tools", remedy=f"Mark 1 to {TOOLS_LIMIT} with @batos.read."
        )
    return {each.declaration.name: each for each in found}


def answer(path: str, asked: dict[str, Any], seconds: float) -> dict[str, object]:
    """Return the reply to a request: `tools`, or `outcome` and `text`, or the `error` of a file that cannot be used."""
    try:
        tools = load(path)
    except (Exception, SystemExit) as error:  # whatever a file raises is why it cannot be used
        why = f"{error.message}. {error.remedy}" if isinstance(error, BriefError) else _reason(error, path)
        return {"error": why, "outcome": "failed", "text": why}
    if "tool" not in asked:
        return {"tools": [each.declaration.model_dump() for each in tools.values()]}
    if asked["tool"] not in tools:
        return {"outcome": "refused", "text": f"the file has no tool {asked['tool']!r} any more"}
    call = tools[asked["tool"]].run(asked["arguments"], seconds)
    try:  # not by `asyncio.run`, which would wait for a thread that hangs
        return {"outcome": "done", "text": asyncio.new_event_loop().run_until_complete(call)}
    except CallTimedOut as error:
        return {"outcome": "unknown", "text": str(error)}
    except CallFailed as error:
        return {"outcome": "failed" if error.ran else "refused", "text": str(error)}


def _reason(error: BaseException, path: str) -> str:
    """Return an error in a line, with the line of the file at which it arose."""
    trace, line = error.__traceback__, getattr(error, "lineno", None)
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == path else line
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}{f' (line {line})' if line else ''}"


def main() -> None:
    """Answer one request, and end at once, whatever threads the file has begun."""
    path, seconds = sys.argv[1], float(sys.argv[2])
    out = os.dup(1)
    os.dup2(2, 1)
    limit(seconds)
    told = answer(path, json.loads(sys.stdin.readline()), seconds)
    with os.fdopen(out, "w", encoding="utf-8") as replies:
        replies.write(json.dumps(told) + "\n")
    os._exit(0)


if __name__ == "__main__":
    main()
