"""A saga, as it is written plainly, that acts on the world and kills itself at a point; bench/effects.py starts it.

The argument is a JSON object: `place` (a folder), `url` (of the program), `abort`, `point` ("" to go on to the end),
`sink`. First a piece of work that is to act is aborted: the process says `aborted` and waits for a line. Then the
same work is done again. A process that finds work which an earlier one left goes on with that. The last line tells what
the process knows: `released`, `unknown`, `approved`.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
    """Append, or post with a key where the target knows keys, as a program does that has nothing but the target."""
    if sink == "queryable":
        with (place / "world" / "log.txt").open("a") as file:
            file.write(f"{LINE}\n")
            file.flush()
            os.fsync(file.fileno())
        return
    headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if sink == "keyed" else {})}
    request = urllib.request.Request(f"{url}/{sink}", json.dumps({"text": LINE}).encode(), headers)  # noqa: S310
    urllib.request.urlopen(request, timeout=10).read()  # noqa: S310


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


def main() -> int:
    """Run the process."""
    live_as_saga(json.loads(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
