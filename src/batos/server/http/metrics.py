"""The counters of the mind and of the door in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from batos.missions.counters import COMMIT, FIRST_TOKEN, MISSION
from batos.protocol.server_documents import MindStatus
from batos.server.http.client_missions import ClientMissions
from batos.server.http.http_exchange import Exchange

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels: TypeAlias = Mapping[str, str]
#: Counters of the mind without parts: our name, that of its own, and what it counts.
_PLAIN: Final = (
    ("batos_accepted_total", "accepted", "Missions that were accepted."),
    ("batos_busy_total", "busy", "Requests that found the queue full."),
    ("batos_embeds_total", "embeds", "Calls of the embedder."),
    ("batos_wasted_tokens_total", "wasted", "Tokens of replies that were of no use."),
    ("batos_revised_total", "revised", "Answers that were revised for a fault."),
    ("batos_loads_total", "loads", "Loads of a model that a mission waited for."),
    ("batos_spills_total", "spills", "Looks at a model that was not whole on the card."),
    ("batos_conflicts_total", "conflicts", "Transactions that conflicted with an earlier commit."),
    ("batos_aborts_total", "aborts", "Transactions that were left."),
    ("batos_repairs_total", "repairs", "Sources of methods that were written again."),
    ("batos_methods_installed_total", "installs", "Methods that became active."),
    ("batos_methods_retired_total", "retired", "Methods that are no longer active."),
)
#: Counters with one part: our name, that of its own, the label of the part, and what it counts.
_BY_PART: Final = (
    ("batos_failures_total", "failures", "code", "Missions that failed, by their error."),
    ("batos_transitions_total", "transitions", "state", "States that minds entered."),
    ("batos_commits_total", "commits", "what", "Commits, by what was written."),
    ("batos_verdicts_total", "verdicts", "verdict", "Verdicts of the guardian."),
    ("batos_refusals_total", "refusals", "rule", "Faults that the guardian found, by rule."),
    ("batos_kills_total", "kills", "limit", "Runs of methods that were ended at a limit."),
)


class Sample(NamedTuple):
    """A value with its labels; `suffix` is behind the name of its family, as `_bucket`."""

    value: float
    labels: Labels = MappingProxyType({})
    suffix: str = ""


class Family(NamedTuple):
    """The samples of one name."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: Sequence[Sample]


def write(families: Iterable[Family]) -> str:
    """Write families in the text format; what has no sample is left out.

    >>> print(write([Family("a_total", "counter", "All.", [Sample(2, {"of": 'x"y'})])]), end="")
    # HELP a_total All.
    # TYPE a_total counter
    a_total{of="x\\"y"} 2
    """
    return "".join(f"{line}\n" for each in families if each.samples for line in _lines(each))


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for value, labels, suffix in family.samples:
        told = ",".join(f'{name}="{_escape(label)}"' for name, label in labels.items())
        yield f"{family.name}{suffix}{f'{{{told}}}' if told else ''} {value:.15g}"


def _escape(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def histogram(name: str, text: str, kept: Mapping[str, Any] | None, bounds: Sequence[float]) -> Family:
    """Return a histogram of the counters' own as a family; none was counted where `kept` is None."""
    counts = [0] * (len(bounds) + 1) if kept is None else list(kept["counts"])
    seconds, so_far, samples = 0.0 if kept is None else float(kept["seconds"]), 0, list[Sample]()
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        so_far += count
        samples.append(Sample(so_far, {"le": bound}, "_bucket"))
    return Family(name, "histogram", text, [*samples, Sample(seconds, {}, "_sum"), Sample(so_far, {}, "_count")])


def mind_families(found: MindStatus) -> Iterator[Family]:
    """Yield what the mind counts, and how it stands."""
    total: Mapping[str, Any] = found["counters"]
    for name, key, text in _PLAIN:
        yield Family(name, "counter", text, [Sample(total.get(key, 0))])
    for name, key, label, text in _BY_PART:
        yield Family(
            name, "counter", text, [Sample(value, {label: part}) for part, value in total.get(key, {}).items()]
        )
    ended = [
        Sample(value, {"persona": persona, "status": status})
        for persona, by_status in total.get("missions", {}).items()
        for status, value in by_status.items()
    ]
    yield Family("batos_missions_total", "counter", "Missions that ended, by persona and status.", ended)
    tokens = [Sample(total.get(f"{kind}_tokens", 0), {"kind": kind}) for kind in ("prompt", "answer")]
    yield Family("batos_tokens_total", "counter", "Tokens that were read and written.", tokens)
    calls = [
        Sample(total.get("calls", 0), {"from_journal": "no"}),
        Sample(total.get("from_journal", 0), {"from_journal": "yes"}),
    ]
    yield Family("batos_calls_total", "counter", "Calls of models, made and read in the journal.", calls)
    checks = [
        Sample(value, {"check": check, "verdict": verdict})
        for check, verdicts in total.get("gate", {}).items()
        for verdict, value in verdicts.items()
    ]
    yield Family("batos_gate_checks_total", "counter", "Checks of answers, by what they found.", checks)
    waited, commits = total.get("queue_wait"), total.get("commit")
    yield histogram("batos_queue_wait_seconds", "From a question to its turn.", waited, MISSION)
    yield histogram("batos_commit_seconds", "Time of a commit.", commits, COMMIT)
    yield histogram("batos_first_token_seconds", "Until a first token.", total.get("first_token"), FIRST_TOKEN)
    yield histogram("batos_mission_seconds", "From a question to its answer.", total.get("mission"), MISSION)
    yield from _standing(found)


def _standing(found: MindStatus) -> Iterator[Family]:
    """Yield what the mind has now."""
    words = [Sample(count, {"status": status}) for status, count in found["missions"].items()]
    yield Family("batos_missions_stored", "gauge", "Missions in the image, by status.", words)
    gauges = (
        ("batos_queue_waiting", "Missions that wait.", found["queue"]["waiting"]),
        ("batos_queue_limit", "Missions that may wait.", found["queue"]["limit"]),
        ("batos_running", "Missions that run.", len(found["running"])),
        ("batos_approvals_waiting", "Questions that wait for a person.", found["approvals"]["waiting"]),
        ("batos_image_bytes", "Size of the image.", found["image"].get("bytes") or 0),
        ("batos_journal_bytes", "Size of the journal.", found["image"].get("journal_bytes") or 0),
    )
    for name, text, value in gauges:
        yield Family(name, "gauge", text, [Sample(float(value))])
    vram: list[Mapping[str, Any]] = [*found["vram"][:1]]
    seen = [Sample(each["size_vram"], {"where": each["where"]}) for each in vram]
    yield Family("batos_vram_bytes", "gauge", "Memory of the card that the model had which was seen last.", seen)


def process_families(began: float) -> Iterator[Family]:
    """Yield what the process uses, by the names that are usual for it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield Family("process_cpu_seconds_total", "counter", "Processor time in seconds.", [Sample(seconds)])
    yield Family("process_start_time_seconds", "gauge", "When the process was started.", [Sample(began)])
    statm = Path("/proc/self/statm")
    if statm.exists():
        resident = int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
        yield Family("process_resident_memory_bytes", "gauge", "Memory in use.", [Sample(resident)])


class Metrics:
    """Answers who collects the metrics."""

    def __init__(self, asking: ClientMissions, requests: Mapping[tuple[str, int], int]) -> None:
        self._asking, self._requests = asking, requests
        self._began = time.time()

    async def show(self, exchange: Exchange) -> None:
        """Answer with all metrics; they tell no words, no missions' names and no users."""
        found = await asyncio.to_thread(self._asking.dispatcher.uvm.status)
        text = write([*mind_families(found), *self._door_families(), *process_families(self._began)])
        await exchange.reply(200, MEDIA, text.encode())

    def _door_families(self) -> Iterator[Family]:
        requests = [Sample(count, {"door": door, "code": str(code)}) for (door, code), count in self._requests.items()]
        yield Family("batos_http_requests_total", "counter", "Requests over HTTP, by client and status.", requests)
        streams = [Sample(self._asking.streams)]
        yield Family("batos_http_streams", "gauge", "Missions that clients of HTTP wait for.", streams)
