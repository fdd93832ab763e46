"""The side of bench/replay_law.py that dies: for each job a forked process runs a mission and kills itself at a step.

A job is a line of JSON on stdin: {home, ollama, control, brief, mission, passed, further}. Its process answers on
stdout with what the journal has when it begins, then with the steps that it came to before it died (of those that are
not in `passed` it survives `further`), or with the mission as it ended. Modules are read once, before the first fork.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from batos.config import Settings
from batos.events import Events
from batos.inference.canonical import canonical
from batos.inference.journal import Record, is_embedding
from batos.minds.trace import choices_in
from batos.uvm import open_uvm

#: The keys that tell one step of a kind from another: it is a state, a call that ended, or a method that was installed.
STEPS: Mapping[str, tuple[str, ...]] = {
    "mission.state": ("state", "path"),
    "inference.end": ("mission", "path"),
    "method.installed": ("receiver", "selector"),
}
#: The decisions that a mission makes once, by the names of its notes.
ONCE = ("route", "tokens_per_byte", "past")


#: Standard output is the parent's; what is logged goes to standard error.
_OUT = os.dup(1)


def request_of(messages: Any, schema: Any, options: Mapping[str, Any]) -> str:
    """Return what tells one request from another, of a journaled one and of one that came to the daemon alike."""
    return hashlib.sha256(canonical([messages, schema, options.get("seed"), options.get("num_predict")])).hexdigest()


def say(**fields: Any) -> None:
    """Write a line to the parent, whole, however this process ends."""
    os.write(_OUT, json.dumps(fields).encode() + b"\n")


class Dying:
    """Kills this process at a step that no attempt has come to yet, after so many others of that kind."""

    def __init__(self, passed: Sequence[str], further: int) -> None:
        self._passed = frozenset(passed)
        self._further = further
        self._new: list[str] = []

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        """Count every event, and die at the chosen one."""
        if event not in STEPS:
            return
        step = " ".join((event, *(str(keys.get(name, "")) for name in STEPS[event])))
        if step in self._passed or step in self._new:
            return
        self._new.append(step)
        if len(self._new) > self._further:
            say(new=self._new)
            os.kill(os.getpid(), signal.SIGKILL)


def paid_requests(records: Sequence[Record]) -> list[str]:
    """Return the requests that are paid for."""
    done = (each.request for each in records if each.state == "done" and not is_embedding(each))
    return [request_of(each["messages"], each["format"], each["options"]) for each in done]


def count_changes(notes: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> int:
    """Count how often a mission decided something another way than before, or did another thing than it decided."""
    count = sum(len({canonical(note[name]) for note in notes if name in note}) > 1 for name in ONCE)
    slots = {note["slot"] for note in notes if "slot" in note}
    told = {slot: [note for note in notes if note.get("slot") == slot] for slot in slots}
    count += sum(len({(each["answered_by"], each["revision"]) for each in notes}) > 1 for notes in told.values())
    chosen = choices_in(notes)
    for ran in shown["provenance"]["methods"]:
        choice = chosen[f"{ran['oid']} {ran['selector']}"]
        is_method = ran["as"].startswith("method")
        count += is_method != (choice.how == "method")
        count += is_method and ran["revision"] != str(choice.revision)
    return count


def logs(mission: str, passed: Sequence[str]) -> list[str]:
    """List the journal's logs of a mission's calls: its own, and those of the generations that it came through."""
    ends = (step.split(" ") for step in passed if step.startswith("inference.end "))
    return [mission, *{end[1] for end in ends if end[1] != mission}]


async def attempt(job: Mapping[str, Any]) -> None:
    """Run one process' life with the mission."""
    settings = Settings(
        home=Path(job["home"]),
        user="bench",
        ollama_host=job["ollama"],
        install="now",
        method_control=job["control"],
        second_voice_margin=1.0,
    )
    async with open_uvm(settings, Events(log=False)) as uvm:
        mission = job["mission"]
        if mission is None:
            mission = await uvm.missions.submit(job["brief"])
            say(mission=mission, answered=[])
        else:
            say(mission=mission, answered=paid_requests(uvm.journal.read(logs(mission, job["passed"]))))
            await uvm.missions.recover()
        leave = uvm.events.subscribe(Dying(job["passed"], job["further"]))
        if uvm.readings.mission(mission)["status"] == "parked":  # it has died where it had died: a person lets it go on
            await uvm.missions.resume(mission)
            await uvm.missions.wait_for_end(mission)
            shown = uvm.readings.mission(mission)
        else:
            shown = await uvm.missions.run(mission)
        leave()
        await uvm.journal.drain()
        keys, records = set(shown["provenance"]["journal"]), uvm.journal.read(logs(mission, job["passed"]))
        used = [each for each in records if each.mission != mission or each.key in keys]
        say(status=shown["status"], changed=count_changes(uvm.journal.notes(mission), shown), used=paid_requests(used))


def wait_until_free(home: Path) -> None:
    """Wait until nobody holds the files of a process that was killed: a worker of its cell may live a moment longer."""
    for lock in home.glob("*.lock"):
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def main() -> None:
    """Run a process for each job, one after the other, and report the end of each."""
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            code = 0
            try:
                asyncio.run(attempt(job))
            except Exception:  # told, and counted by the parent
                traceback.print_exc()
                code = 1
            os._exit(code)
        _, status = os.waitpid(child, 0)
        wait_until_free(Path(job["home"]))
        say(ended=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
