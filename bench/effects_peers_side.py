"""A saga, or an agent with LangGraph's SQLite saver, that acts and kills itself at a point; bench/effects.py starts it.

The argument is a JSON object: `arm`, `place` (a folder), `url` (of the program), `abort`, `point` ("" to go on to the
end), `sink`. First a piece of work that is to act is aborted: the process says `aborted` and waits for a line. Then the
same work is done again. A process that finds work which an earlier one left goes on with that. It ends with a line of
what it knows: `released`, `unknown`, `approved`.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

LINE: Final = "One line."


def say(line: Mapping[str, object]) -> None:
    """Tell the bench something."""
    os.write(1, (json.dumps(line) + "\n").encode())


def wait_for_bench() -> None:
    """Say that the first piece of work was aborted, and wait until the bench has looked at the world."""
    say({"aborted": True})
    sys.stdin.readline()


def die() -> None:
    """End as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


def act(place: Path, url: str, sink: str, key: str) -> None:
    """Act as a program does that has nothing but the target: append, or post with its key where it has one."""
    if sink == "queryable":
        with (place / "world" / "log.txt").open("a") as file:
            file.write(f"{LINE}\n")
            file.flush()
            os.fsync(file.fileno())
        return
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if sink == "keyed" else {})}
    request = urllib.request.Request(f"{url}/{sink}", json.dumps({"text": LINE}).encode(), headers)  # noqa: S310
    urllib.request.urlopen(request, timeout=10).read()  # noqa: S310


# -- a saga, as it is written plainly


def live_as_saga(given: Mapping[str, str]) -> None:
    """Run the steps of a saga: each is noted before and after, and what was done is compensated after a failure."""
    place, url, sink, point = Path(given["place"]), given["url"], given["sink"], given["point"]
    with sqlite3.connect(place / "saga.sqlite", isolation_level=None) as database:
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE IF NOT EXISTS steps (saga TEXT, step TEXT, PRIMARY KEY (saga, step))")

        def is_done(saga: str, step: str) -> bool:
            found = database.execute("SELECT 1 FROM steps WHERE saga = ? AND step = ?", (saga, step))
            return found.fetchone() is not None

        def run(saga: str, *, fails: bool) -> None:
            if not is_done(saga, "act"):
                if point == "staged" and not fails:
                    die()
                database.execute("INSERT OR IGNORE INTO steps VALUES (?, 'begun')", (saga,))
                if point == "begun" and not fails:
                    die()
                act(place, url, sink, saga)
                if point == "done" and not fails:
                    die()
                database.execute("INSERT INTO steps VALUES (?, 'act')", (saga,))
                if point == "recorded" and not fails:
                    die()
            if fails:
                _compensate(place, url, sink, saga)
            else:
                database.execute("INSERT OR IGNORE INTO steps VALUES (?, 'answer')", (saga,))

        if given["abort"]:
            run("first", fails=True)
            wait_for_bench()
        run("second", fails=False)
        say({"released": int(is_done("second", "act")), "unknown": 0, "approved": 0})


def _compensate(place: Path, url: str, sink: str, saga: str) -> None:
    """Take back what a saga did, where that can be done: a line is cut off again; what was posted is called back."""
    if sink == "queryable":
        file = place / "world" / "log.txt"
        file.write_text(file.read_text().removesuffix(f"{LINE}\n"))
        return
    request = urllib.request.Request(f"{url}/undo", json.dumps({"saga": saga}).encode())  # noqa: S310
    urllib.request.urlopen(request, timeout=10).read()  # noqa: S310


# -- an agent with LangGraph's SQLite saver


class _State(TypedDict, total=False):
    text: str


def live_as_graph(given: Mapping[str, str]) -> None:
    """Run a graph of two nodes, one that acts and one that answers; a killed one goes on from its checkpoint."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    place, url, sink, point = Path(given["place"]), given["url"], given["sink"], given["point"]
    abort, mark = given["abort"], place / "acted"

    def do(state: _State, *, aborted: bool) -> _State:
        if point == "begun" and not aborted:
            die()
        act(place, url, sink, "first" if aborted else "second")
        if point == "done" and not aborted:
            die()
        if aborted and abort == "method":
            raise RuntimeError("the node is broken")
        return {"text": LINE}

    def answer(state: _State, *, aborted: bool) -> _State:
        if point == "recorded" and not aborted:
            die()
        if aborted:
            raise RuntimeError(abort)
        return {"text": "Oak holds it."}

    def graph(saver: Any, *, aborted: bool) -> Any:
        builder: Any = StateGraph(_State)
        builder.add_node("act", partial(do, aborted=aborted))
        builder.add_node("answer", partial(answer, aborted=aborted))
        builder.add_edge(START, "act")
        builder.add_edge("act", "answer")
        builder.add_edge("answer", END)
        return builder.compile(checkpointer=saver)

    with SqliteSaver.from_conn_string(str(place / "graph.sqlite")) as saver:
        first, second = ({"configurable": {"thread_id": each}} for each in ("first", "second"))
        if abort:
            with suppress(RuntimeError):
                graph(saver, aborted=True).invoke({"text": ""}, first)
            wait_for_bench()
            mark.touch()
        if point == "staged":
            die()
        made = graph(saver, aborted=False)
        left = made.get_state(second).next
        made.invoke(None if left else {"text": ""}, second, durability="sync")
        say({"released": 1, "unknown": 0, "approved": 0})


def main() -> int:
    """Run one arm."""
    given = json.loads(sys.argv[1])
    (live_as_saga if given["arm"] == "saga" else live_as_graph)(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
