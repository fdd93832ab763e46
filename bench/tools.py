"""Calls of tools for requests in four languages, by the kernel's four steps and by the same model's native calls.

The data is a file of JSON lines, {id, language, text, tool, arguments}, in which `tool` is null where a request needs
none; the tools are those of --catalogue. An argument may be a list of the values that are right. `right` is the share
of the requests that need a tool and get this call with these arguments; `restraint` is how many of those that need none
get a call all the same. `calls` and `tokens` are those of the kernel's arm, in all.

Native: the model is shown the tools as its template shows them, once all of them and once the family of the right one.
Each figure of the better one counts. Its answers are kept in the user's cache by the digest of the request, and are not
asked again. Without --gguf and --url the emulator answers: shape, not figures.

    python bench/tools.py [--data FILE] [--catalogue FILE] [--gguf FILE|NAME | --url URL] [--native all,family]
                          [--shown N] [--n N] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pydantic import BaseModel

from batos.agency.toolbox import Tool
from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.inference.schema import Decision
from batos.minds.tools.calling import ORDER, ToolCall, decide_call
from batos.minds.tools.choice import shown_tools
from batos.protocol.errors import DecisionInvalid
from report import Goal, report
from tasks_data_side import KeptLines, user_cache
from tools_data_side import DAY, ToolRequest, family_of, is_right, read_lines, read_requests
from tools_native_side import ask_natively
from voice_side import daemon

HERE: Final = Path(__file__).parent
#: The model of an emulator that has none.
INVENTED: Final = "llama3.2:1b-instruct-q8_0"
#: Requests of a quick run, of which a third needs no tool.
QUICK: Final = 6
#: The lead of the kernel's calls in the share that is right, and the share of needless calls at most.
LEAD, MOST_WRONG = 0.10, 1 / 40
_OPTIONS: Final[Mapping[str, Any]] = {"num_ctx": 4096, "temperature": 0.0, "seed": 1}
_DAY_TOLD: Final = f"{date.fromisoformat(DAY):%A}, {DAY}"


@dataclass(slots=True)
class CallCounts:
    """The right calls and the wrong ones of an arm."""

    right: int = 0
    #: Requests that need no tool and got a call.
    called: int = 0
    by_language: Counter[str] = field(default_factory=Counter)

    def add(self, request: ToolRequest, tool: str | None, arguments: Mapping[str, Any]) -> bool:
        """Count a call, None for no tool; return if it is right."""
        is_good = is_right(request, tool, arguments)
        if request.tool is None:
            self.called += tool is not None
        else:
            self.right += is_good
        self.by_language[request.language] += is_good
        return is_good


@dataclass(slots=True)
class CallingModel:
    """A model that is asked for the decisions of a call, with what they cost."""

    bridge: Bridge
    model: str
    calls: int = 0
    tokens: int = 0

    async def __call__(
        self, step: str, text: str, decision: Decision[BaseModel], fault: Callable[[BaseModel], str]
    ) -> BaseModel:
        """Return a decision; one that is of no use is asked for once more with its fault."""
        try:
            return await self._once(text, decision, fault)
        except DecisionInvalid as invalid:
            return await self._once(f"{text}\n{invalid.message}", decision, fault)

    async def _once(self, text: str, decision: Decision[BaseModel], fault: Callable[[BaseModel], str]) -> BaseModel:
        options = {**_OPTIONS, "num_predict": decision.num_predict}
        messages = ({"role": "system", "content": ORDER}, {"role": "user", "content": text})
        found = await self.bridge.think(ChatRequest(self.model, messages, options, schema=decision.format))
        self.calls += 1
        self.tokens += found.prompt_tokens + found.answer_tokens
        value = decision.parse(found.text)
        if why := fault(value):
            raise DecisionInvalid(f"The reply is of no use: {why}.")
        return value


def tool_of(row: Mapping[str, Any]) -> Tool:
    """Return a tool of the catalogue as a mission has it."""
    schema = {"type": "object", "properties": row["parameters"], "required": list(row["parameters"])}
    return Tool(row["name"], row["purpose"], schema, "program", reads=row["reads"], examples=row["examples"])


async def measure(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Ask all requests in both ways; `folder` is where native answers are kept."""
    rows, requests = read_lines(given.catalogue), read_requests(given.data)
    requests = _some(requests, QUICK if given.quick else given.n)
    kept = KeptLines(folder / "tools-native.jsonl")
    async with daemon(given) as url, Bridge(url) as bridge:
        model = await _model_of(bridge)
        billions = (await bridge.show(model)).parameter_count / 1e9
        own, asked, shown = CallCounts(), CallingModel(bridge, model), given.shown or shown_tools(billions)
        natives = {arm: CallCounts() for arm in given.native.split(",")}
        for number, request in enumerate(requests):
            called = await decide_call(request.text, [*map(tool_of, rows)], date.fromisoformat(DAY), asked, most=shown)
            name, arguments = (called.tool.name, called.arguments) if isinstance(called, ToolCall) else (None, {})
            good = own.add(request, name, arguments)
            marks = [f"{request.id} own {good}"]
            for arm, counted in natives.items():
                tools = rows if arm == "all" else family_of(rows, request, number)
                native = await ask_natively(bridge, model, kept, tools, request.text, _DAY_TOLD)
                marks.append(f"{arm} {counted.add(request, native.tool, native.arguments)}")
            print(", ".join(marks), file=sys.stderr, flush=True)
    of = sum(each.tool is not None for each in requests)
    best = max(each.right for each in natives.values())
    return {
        "right": round(own.right / of, 3),
        "restraint": own.called,
        "native_right": round(best / of, 3),
        "native_restraint": min(each.called for each in natives.values()),
        "calls": asked.calls,
        "tokens": asked.tokens,
        "n": len(requests),
        "without": len(requests) - of,
        "shown": shown,
        "model": model,
        "by_language": dict(own.by_language),
        "native": {
            arm: {"right": round(each.right / of, 3), "restraint": each.called} for arm, each in natives.items()
        },
    }


async def _model_of(bridge: Bridge) -> str:
    """Return the name of the daemon's first model that completes; one without any gets one."""
    for row in await bridge.list():
        if "completion" in (await bridge.show(row.name)).capabilities:
            return row.name
    async with aclosing(bridge.pull(INVENTED)) as steps:
        async for _ in steps:
            pass
    return INVENTED


def _some(requests: Sequence[ToolRequest], most: int) -> list[ToolRequest]:
    """Return the first requests, of which a third needs no tool; all with 0."""
    if not most:
        return list(requests)
    without = [each for each in requests if each.tool is None][: most // 3]
    return [*[each for each in requests if each.tool is not None][: most - len(without)], *without]


def goals_of(values: Mapping[str, Any]) -> list[Goal]:
    """Return the goals."""
    wrong = values["restraint"] / values["without"] if values["without"] else None
    return [
        Goal("restraint", wrong, MOST_WRONG),
        Goal("right", values["right"], round(values["native_right"] + LEAD, 3), "at_least"),
    ]


def parser() -> argparse.ArgumentParser:
    """Return the parser of the flags."""
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, metavar="FILE", default=HERE / "tools_judged.jsonl")
    found.add_argument("--catalogue", type=Path, metavar="FILE", default=HERE / "tools_catalogue.jsonl")
    model = found.add_mutually_exclusive_group()
    model.add_argument("--url", metavar="URL", help="the Ollama that answers")
    model.add_argument("--gguf", metavar="FILE|NAME", help="the real model of an emulator that answers")
    found.add_argument("--shown", type=int, default=0, metavar="N", help="tools to pick from; 0: by the model's size")
    found.add_argument("--native", default="all,family", metavar="A,B", help="tools that native calls are shown")
    found.add_argument("--n", type=int, default=0, metavar="N", help="requests; 0: all")
    found.add_argument("--quick", action="store_true", help="a few requests: shape, not figures")
    found.add_argument("--json", type=Path, default=None, metavar="FILE")
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the flags, measure and report."""
    given = parser().parse_args(arguments)
    if given.gguf or given.url:
        values = asyncio.run(measure(given, user_cache()))
    else:  # invented words are not kept: nobody waits for them a second time
        with TemporaryDirectory(prefix="batos-bench-") as folder:
            values = asyncio.run(measure(given, Path(folder)))
    report(values, goals_of(values), given.json)


if __name__ == "__main__":
    main()
