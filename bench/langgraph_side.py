"""The same six calls as a LangGraph graph: a node a call, a thread a mission, AsyncSqliteSaver, sync durability.

A side of `mission_overhead.py`; `MISSING` names the module that is absent where the `bench` extra is not installed.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ollama

from bare_side import MissionCalls, say

try:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import END, START, StateGraph
except ModuleNotFoundError as absent:
    MISSING: str | None = absent.name
else:
    MISSING = None


class _State(TypedDict, total=False):
    """The state of a mission: the question and the answer of each call."""

    question: str
    queries: str
    partials: Annotated[list[str], operator.add]
    draft: str
    answer: str


class LangGraphSide:
    """A compiled graph over one SQLite file; the nodes call the bare client with its defaults."""

    name = "langgraph"

    def __init__(self, url: str, calls: MissionCalls, folder: Path, question: str) -> None:
        self._client = ollama.AsyncClient(host=url)
        self._calls = calls
        self._file = folder / "checkpoints.sqlite"
        self._question = question
        self._stack = AsyncExitStack()
        self._graph: Any = None
        self._saver: Any = None

    async def open(self) -> None:
        """Open the saver and compile the graph."""
        self._saver = await self._stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(self._file)))
        self._graph = _graph(self._client, self._calls).compile(checkpointer=self._saver)

    async def mission(self, number: int) -> None:
        """Run a mission in a thread of its own; every superstep is checkpointed before the next begins."""
        config = {"configurable": {"thread_id": f"mission-{number}"}}
        state = await self._graph.ainvoke({"question": self._question}, config, durability="sync")
        if not state["answer"] or len(state["partials"]) != len(self._calls.facets):
            raise RuntimeError("the graph did not end well")

    async def size(self) -> int:
        """Return the size of the database in bytes, its write-ahead log folded in."""
        await self._saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return self._file.stat().st_size

    async def close(self) -> None:
        """Close the saver (which folds its log in) and the client."""
        await self._stack.aclose()
        await self._client.close()  # type: ignore[no-untyped-call]  # the client leaves this one untyped


def versions() -> dict[str, str]:
    """Return the versions of the packages that were measured."""
    return {name: version(name) for name in ("langgraph", "langgraph-checkpoint-sqlite", "aiosqlite")}


def _graph(client: ollama.AsyncClient, calls: MissionCalls) -> Any:
    """Build the graph of four supersteps: decompose, the facets beside each other, weave, revise."""
    graph = StateGraph(_State)

    def node(call: Mapping[str, Any], slot: str) -> Any:
        async def run(state: _State) -> dict[str, Any]:
            text = await say(client, call)
            return {slot: [text] if slot == "partials" else text}

        return run

    facets = [f"facet_{number}" for number in range(len(calls.facets))]
    graph.add_node("decompose", node(calls.decompose, "queries"))
    for name, call in zip(facets, calls.facets, strict=True):
        graph.add_node(name, node(call, "partials"))
        graph.add_edge("decompose", name)
    graph.add_node("weave", node(calls.weave, "draft"))
    graph.add_node("revise", node(calls.revise, "answer"))
    graph.add_edge(START, "decompose")
    graph.add_edge(facets, "weave")
    graph.add_edge("weave", "revise")
    graph.add_edge("revise", END)
    return graph
