"""An agent with LangGraph's SQLite saver that acts on the world and kills itself at a point.

A side of `effects.py`; the argument and the lines of stdout are those of effects_saga_side.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from effects_saga_side import LINE, act, die, say, wait_for_bench


class _State(TypedDict, total=False):
    text: str


@dataclass(frozen=True)
class _Work:
    """Two nodes, one that acts and one that answers; of aborted work the one after it fails, or the one that acts."""

    place: Path
    url: str
    sink: str
    #: Where the process kills itself; "" for nowhere.
    point: str
    #: The source of its abort; "" for none.
    abort: str

    def do(self, _state: _State) -> _State:
        """Do the effect, as a node does."""
        self._reach("begun")
        act(self.place, self.url, self.sink, "first" if self.abort else "second")
        self._reach("done")
        if self.abort == "method":
            raise RuntimeError("the node is broken")
        return {"text": LINE}

    def answer(self, _state: _State) -> _State:
        """Answer, after what was done is in the checkpoint."""
        self._reach("recorded")
        if self.abort:
            raise RuntimeError(self.abort)
        return {"text": "Oak holds it."}

    def _reach(self, point: str) -> None:
        if point == self.point:
            die()

    def compile(self, saver: SqliteSaver) -> Any:
        """Return the graph over a saver."""
        nodes: dict[str, Callable[[_State], _State]] = {"act": self.do, "answer": self.answer}
        builder: Any = StateGraph(_State)
        for name, node in nodes.items():
            builder.add_node(name, node)
        for one, other in ((START, "act"), ("act", "answer"), ("answer", END)):
            builder.add_edge(one, other)
        return builder.compile(checkpointer=saver)


def main() -> int:
    """Abort, do the same again, and be killed; or go on with what was left."""
    given = json.loads(sys.argv[1])
    place, point = Path(given["place"]), given["point"]
    first, second = ({"configurable": {"thread_id": each}} for each in ("first", "second"))
    with SqliteSaver.from_conn_string(str(place / "graph.sqlite")) as saver:
        if given["abort"]:
            aborted = _Work(place, given["url"], given["sink"], "", given["abort"])
            with suppress(RuntimeError):
                aborted.compile(saver).invoke({"text": ""}, first)
            wait_for_bench()
        if point == "staged":
            die()
        graph = _Work(place, given["url"], given["sink"], point, "").compile(saver)
        graph.invoke(None if graph.get_state(second).next else {"text": ""}, second, durability="sync")
        say({"released": 1, "unknown": 0, "approved": 0})
    return 0


if __name__ == "__main__":
    sys.exit(main())
