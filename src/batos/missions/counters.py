"""Counters and samples, kept in the image: added up from events, written in short batches, never rolled back."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any, Final, TypeAlias
from uuid import uuid4

from batos.concurrency.jobs import Job
from batos.image import roots
from batos.image.ids import begun_at, iso
from batos.image.roots import Root
from batos.protocol.event_payloads import (
    GuardianVerdict,
    InferenceEnd,
    MethodTried,
    MissionAccepted,
    MissionDone,
    MissionEnded,
    MissionStatus,
    TransactionCommit,
)
from batos.protocol.image_documents import CountersDocument
from batos.records.erased_words import MARK

#: Applies a change to the root in a commit, which is durable when this returns.
Apply: TypeAlias = Callable[[Callable[[Any], None]], Awaitable[None]]
#: Seconds between two commits of counts; a killed process loses the counts since the last.
EVERY: Final = 5.0
#: The numbers of days, samples of memory and failures that are kept.
DAYS, SAMPLES, FAILURES = 30, 64, 50
#: Upper bounds of the histograms' buckets in seconds; a last bucket counts longer times.
FIRST_TOKEN: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
COMMIT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
MISSION: Final = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

#: The key of the mark of the newest batch in the stored counters.
_MARK: Final = "batch"
#: Events that start no write of their own: writing counts is a commit, which would be counted and written again.
_BESIDE: Final = frozenset({"txn.commit"})
#: The counters that are kept for each day too.
_DAILY: Final = frozenset({
    "missions", "accepted", "busy", "calls", "prompt_tokens", "answer_tokens", "wasted", "installs", "repairs",
    "from_journal", "loads", "spills", "conflicts", "verdicts", "retired", "first_token", "asked",
})  # fmt: skip


def add_counts(kept: Any, more: Any) -> Any:
    """Add two counts: numbers are added, lists item by item, mappings key by key.

    Of a key that ends in `highest` the larger value is kept.

        >>> add_counts({"calls": 2, "failures": {"busy": 1}}, {"calls": 3, "failures": {"timed_out": 1}})
        {'calls': 5, 'failures': {'busy': 1, 'timed_out': 1}}
    """
    if isinstance(kept, Mapping):
        both = dict(kept)
        for key, value in more.items():
            if key not in both:
                both[key] = deepcopy(value)
            elif key.endswith("highest"):
                both[key] = max(both[key], value)
            else:
                both[key] = add_counts(both[key], value)
        return both
    if isinstance(kept, list):
        return [one + other for one, other in zip(kept, more, strict=True)]
    return kept + more


class Counters:
    """Counts events, and writes the counts every few seconds while there is something to write."""

    def __init__(self, apply: Apply, clock: Callable[[], datetime], every: float = EVERY) -> None:
        self._apply = apply
        self._clock = clock
        self.job = Job("counters", self.flush, gather=every, ends_itself=True, runs_last=True)
        self._pending = _nothing()
        #: The newest batch that was given to the writer, with its mark; the image has the mark once it is written.
        self._batch: tuple[str, dict[str, Any]] = ("", _nothing())
        # Doors read in threads of their own, while the event loop counts.
        self._lock = threading.Lock()
        #: True if an event was counted that is worth a commit of its own.
        self._worth = False

    # -- counting

    def on_event(self, event: str, keys: Mapping[str, object]) -> None:
        """Count an event; a subscriber of Events."""
        count = _COUNTED.get(event)
        if count is None:
            return
        with self._lock:
            count(self, keys)
            self._worth = self._worth or event not in _BESIDE
        if event not in _BESIDE:
            self.job.wake()

    def _count(self, name: str, by: float = 1, *within: str) -> None:
        """Add to the counter `name`; to a part of it if `within` names one."""
        for inner in self._list_counts(name):
            key = name
            for part in within:
                inner, key = inner.setdefault(key, {}), part
            inner[key] = inner.get(key, 0) + by

    def _list_counts(self, name: str) -> list[dict[str, Any]]:
        """Return the counts that a counter belongs to: those in all, and those of the day if it is kept for each."""
        total = self._pending["total"]
        return [total, self._pending["days"].setdefault(iso(self._clock())[:10], {})] if name in _DAILY else [total]

    def _observe(self, name: str, seconds: float, bounds: tuple[float, ...]) -> None:
        """Add a duration to a histogram."""
        for inner in self._list_counts(name):
            histogram = inner.setdefault(name, {"counts": [0] * (len(bounds) + 1), "seconds": 0.0})
            histogram["counts"][bisect_left(bounds, seconds)] += 1
            histogram["seconds"] += seconds

    def _on_accepted(self, keys: MissionAccepted) -> None:
        self._count("accepted")
        total = self._pending["total"]
        total["queue_highest"] = max(total.get("queue_highest", 0), keys["waiting"])

    def _on_status(self, keys: MissionStatus) -> None:
        if keys["status"] == "running" and keys.get("attempt") == 1:
            self._observe("queue_wait", self._since(keys["mission"]), MISSION)

    def _on_commit(self, keys: TransactionCommit) -> None:
        # A batch of the writer names its database and the number of changes; a thought names its mission.
        self._count("commits", 1, keys["what"] if "changes" in keys else "thoughts")
        self._observe("commit", keys["seconds"], COMMIT)

    def _since(self, mission: str) -> float:
        """Return the seconds since a mission was accepted."""
        return max(0.0, (self._clock() - begun_at(mission)).total_seconds())

    def _on_answer(self, keys: InferenceEnd) -> None:
        if keys["from_journal"]:
            self._count("from_journal")
            return
        self._count("prompt_tokens", keys["prompt_tokens"])
        self._count("answer_tokens", keys["answer_tokens"])

    def _on_done(self, keys: MissionDone) -> None:
        self._count_end(keys, "done")
        self._observe("mission", self._since(keys["mission"]), MISSION)
        gate = keys.get("gate")
        if gate is None:
            return
        faults = {fault["check"] for fault in gate.get("faults", ())}
        for check in gate.get("checked", ()):
            self._count("gate", 1, check, "found" if check in faults else "passed")
        if gate.get("revised"):
            self._count("revised")

    def _on_failed(self, keys: MissionEnded) -> None:
        word, reason = keys["status"], keys["reason"]
        self._count_end(keys, word)
        if word == "cancelled":
            return
        self._count("failures", 1, reason["code"])
        if not keys.get("own"):
            self._count("asked", 1, "failures", reason["code"])
        failure = {"at": iso(self._clock()), "mission": keys["mission"], "status": word, "reason": reason}
        self._pending["failures"].append(failure)

    def _count_end(self, keys: MissionDone | MissionEnded, word: str) -> None:
        persona = (keys.get("personas") or ("none",))[0]
        self._count("missions", 1, persona, word)
        self._count_asked(keys)
        cost = keys.get("cost")
        if cost is None:
            return
        if embeds := cost.get("embeds"):
            self._count("embeds", embeds)
        if wasted := cost.get("wasted"):
            self._count("wasted", wasted)
        if loads := cost.get("loads"):
            self._count("loads", loads)

    def _count_asked(self, keys: MissionDone | MissionEnded) -> None:
        """Count what came of a mission that a person asked: days are compared by it, and own work comes in bursts."""
        if keys.get("own"):
            return
        cost, gate = keys.get("cost"), keys.get("gate")
        self._count("asked", 1, "ended")
        if cost:
            self._count("asked", cost["prompt_tokens"] + cost["answer_tokens"], "tokens")
            self._count("asked", cost["loads"], "loads")
        for check in {fault["check"] for fault in gate.get("faults", ())} if gate else ():
            self._count("asked", 1, "gate", check)
        if gate and gate.get("revised"):
            self._count("asked", 1, "revised")

    def _on_verdict(self, keys: GuardianVerdict) -> None:
        self._count("verdicts", 1, "accepted" if keys["accepted"] else "refused")
        for rule in set(keys["faults"]):
            self._count("refusals", 1, rule)

    def _on_trial(self, keys: MethodTried) -> None:
        self._count("mutants", keys["mutants"])
        self._count("mutants_killed", keys["killed"])

    # -- keeping

    async def flush(self) -> None:
        """Write the counts since the last flush. Those that cannot be written are kept for the next one."""
        mark = uuid4().hex
        with self._lock:
            if not self._worth:
                return
            more, self._pending = self._pending, _nothing()
            self._worth = False
            self._batch = (mark, more)
        try:
            await self._apply(lambda root: _write(root, more, mark))
        except Exception:
            with self._lock:
                self._pending, self._batch = _both(more, self._pending), ("", _nothing())
                self._worth = True
            raise

    def snapshot(self, root: Root) -> CountersDocument:
        """Return all counts, written or not: `total`, `days`, `vram` and `failures`; lists are newest first."""
        kept, written = _stored_counters(root)
        with self._lock:
            pending = deepcopy(self._pending)
            mark, batch = self._batch
        if mark != written and mark:  # this snapshot is older than the batch
            _fold(kept, batch)
        _fold(kept, pending)
        return _newest_first(root, kept)


#: The way to count each event.
_COUNTED: Final[Mapping[str, Callable[[Counters, Any], None]]] = {
    "mission.accepted": Counters._on_accepted,
    "mission.done": Counters._on_done,
    "mission.failed": Counters._on_failed,
    "queue.busy": lambda counters, keys: counters._count("busy"),
    "inference.start": lambda counters, keys: counters._count("calls"),
    "inference.first_token": lambda counters, keys: counters._observe("first_token", keys["seconds"], FIRST_TOKEN),
    "inference.end": Counters._on_answer,
    "mission.state": lambda counters, keys: counters._count("transitions", 1, keys["state"]),
    "mission.status": Counters._on_status,
    "txn.commit": Counters._on_commit,
    "txn.abort": lambda counters, keys: counters._count("aborts"),
    "txn.conflict": lambda counters, keys: counters._count("conflicts"),
    "vram.sample": lambda counters, keys: counters._pending["vram"].append({"at": iso(counters._clock()), **keys}),
    "vram.spill": lambda counters, keys: counters._count("spills"),
    "guardian.verdict": Counters._on_verdict,
    "cell.kill": lambda counters, keys: counters._count("kills", 1, keys["limit"]),
    "method.repair": lambda counters, keys: counters._count("repairs"),
    "method.tried": Counters._on_trial,
    "method.installed": lambda counters, keys: counters._count("installs"),
    "method.retired": lambda counters, keys: counters._count("retired"),
}


def read_counters(root: Root) -> CountersDocument:
    """Return the counters that the image holds, in the form of `Counters.snapshot`."""
    return _newest_first(root, _stored_counters(root)[0])


def erase_reasons(root: Root, missions: Collection[str]) -> None:
    """Take the reasons of failed missions out that are erased, within a change, after their own records."""
    kept = root[roots.COUNTERS]
    if any(each["mission"] in missions for each in kept.get("failures", ())):
        kept["failures"] = _drop_erased(root, kept["failures"])


def _stored_counters(root: Root) -> tuple[dict[str, Any], str]:
    """Return the counters that the image holds, and the mark of the newest batch in them."""
    kept = {**_nothing(), **root[roots.COUNTERS]}
    return kept, kept.pop(_MARK, "")


def _newest_first(root: Root, kept: Mapping[str, Any]) -> CountersDocument:
    """Return the counters with their lists reversed."""
    failures = _drop_erased(root, kept["failures"])[::-1]
    return CountersDocument(total=kept["total"], days=kept["days"], vram=kept["vram"][::-1], failures=failures)


def _drop_erased(root: Root, failures: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return failures with the reasons of erased missions as these have them now.

    A failure may have been counted before its mission was erased, at this node or another, and be written after that.
    """
    told = []
    for each in failures:
        record = roots.find_record(root, each["mission"]) if roots.MISSIONS in root else None
        is_erased = record is not None and record.brief.value["text"] == MARK
        told.append({**each, "reason": record.status.reason} if record is not None and is_erased else each)
    return told


def _nothing() -> dict[str, Any]:
    """Return empty counters."""
    return {"total": {}, "days": {}, "vram": [], "failures": []}


def _write(root: Root, more: Mapping[str, Any], mark: str) -> None:
    """Add a batch to the stored counters, with its mark."""
    kept: Any = root[roots.COUNTERS]
    _fold(kept, {**more, "failures": _drop_erased(root, more["failures"])})
    kept[_MARK] = mark


def _both(kept: Mapping[str, object], more: Mapping[str, object]) -> dict[str, object]:
    """Return the sum of two counters."""
    both = dict(kept)
    _fold(both, more)
    return both


def _fold(kept: Any, more: Mapping[str, Any]) -> None:
    """Add counts to the stored ones in place; only the newest days, samples and failures are kept."""
    kept["total"] = add_counts(kept.get("total", {}), more["total"])
    days = add_counts(kept.get("days", {}), more["days"])
    kept["days"] = {day: days[day] for day in sorted(days)[-DAYS:]}
    kept["vram"] = [*kept.get("vram", ()), *more["vram"]][-SAMPLES:]
    kept["failures"] = [*kept.get("failures", ()), *more["failures"]][-FAILURES:]
