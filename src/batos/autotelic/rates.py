"""Rates of the mind's own work by window: counts of days, the newest missions, failures, the last audit, the metric.

No model is asked. Sums over all missions come from the counters of each day, which were added up as things happened.
Only the newest missions are read one by one, so that the cost has a bound whatever the image holds; but for the metric,
which is made of all that was ever measured, and is left out where nobody asks for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from statistics import fmean, median
from typing import Final, NamedTuple

from batos.autotelic import entropy_days
from batos.genesis import persona_models
from batos.image import ids, ownership, roots
from batos.image.ids import iso
from batos.image.records import OPEN
from batos.image.roots import Root
from batos.inference.journal import Entries
from batos.minds.context import Rates
from batos.minds.context_building import failures_of
from batos.missions import reports
from batos.missions.counters import Counters, add_counts
from batos.protocol.image_documents import CountersDocument, CountsDocument
from batos.protocol.mission_documents import CostDocument, MissionDocument, ProvenanceDocument
from batos.protocol.motion_documents import AuditLine, CountedRates, MissionMedians, RatesDocument, RateSpan, RateWindow
from batos.records import outcomes

#: The most missions that are read whole, and the most among which those of one user are looked for.
MOST: Final = 500
AMONG: Final = 2_000
#: The most days of the metric that are told.
DAYS: Final = 7
#: The days of each window, today among them; 0: all there are.
_SPANS: Final[Mapping[RateSpan, int]] = {"day": 1, "week": 7, "all": 0}
#: Failures are told by at most so many codes.
_CODES: Final = 8


class _EndedMission(NamedTuple):
    """An ended mission, as far as rates count it."""

    day: str
    status: str
    attempts: int
    cost: CostDocument | None
    verdicts: tuple[str, ...]
    sentences: Mapping[str, int]
    failures: tuple[str, ...]
    outcome: float | None


def for_missions(journal: Entries, counters: Counters, clock: Callable[[], datetime]) -> Rates:
    """Return what tells a user's mission the rates of the mind; a guest's, of that guest's missions alone."""

    def tell(root: Root, user: str, metric: bool) -> RatesDocument:
        own = user if ownership.is_guest(user) else None
        return describe(root, (journal, counters.snapshot(root)), clock(), own, metric=metric)

    return tell


def describe(
    root: Root,
    sources: tuple[Entries, CountersDocument],
    now: datetime,
    user: str | None = None,
    *,
    metric: bool = True,
) -> RatesDocument:
    """Return the rates of the mind, from its image, its journal and its counters.

    Where a user is named, those of this user's missions alone. Without `metric` no day of the metric is told.
    """
    journal, counted = sources
    rows = list(islice(_read_missions(root, journal, user), MOST))
    windows = {
        span: _describe_window(root, rows, counted, iso(now - timedelta(days=days - 1))[:10] if days else "", user)
        for span, days in _SPANS.items()
    }
    found = RatesDocument(windows=windows, cem=entropy_days.describe(root, DAYS, user)["days"] if metric else [])
    if user is None:
        found["audit"] = _read_audit(root)
    return found


def _read_missions(root: Root, journal: Entries, user: str | None) -> Iterator[_EndedMission]:
    """Yield ended missions that people asked (of a user), the newest first."""
    for name in islice(ids.newest_first(root[roots.MISSIONS]), AMONG):
        record = roots.mission_record(root, name)
        if record.status.word in OPEN - {"parked"} or user not in (None, record.brief.value["user"]):
            continue
        if not ownership.is_of_people(record):  # a question that only tests a model says nothing of answers to people
            continue
        yield _read_mission(root, journal, reports.mission_report(name, *record), record.status.attempts)


def _read_mission(root: Root, journal: Entries, found: MissionDocument, attempts: int) -> _EndedMission:
    status, known = found["status"], found.get("provenance") or ProvenanceDocument()
    has_failed = status != "done" or attempts > 1
    failed = failures_of(journal, [found["id"]]) if has_failed else ()
    return _EndedMission(
        iso(ids.begun_at(found["id"]))[:10],
        status,
        attempts,
        found.get("cost"),
        tuple(_verdicts(known)) if status == "done" else (),
        Counter(each["state"] for each in known.get("sentences", ())),
        tuple(str(each["code"]) for each in failed if "code" in each),
        outcomes.mean(outcomes.list_outcomes(root, found["id"])),
    )


def _verdicts(known: ProvenanceDocument) -> Iterator[str]:
    """Yield the gate's word for an answer, and what became of its drafts."""
    gate = known.get("gate")
    if gate is None:
        return
    yield gate.get("state", "passed" if gate["ok"] else "faulty")
    if not gate["ok"] or gate["revised"] or "discarded" in gate:
        yield "rejected"
    if gate["revised"]:
        yield "revised"
    if known.get("withdrawn"):
        yield "withdrawn"


def _describe_window(
    root: Root, every: Sequence[_EndedMission], counted: CountersDocument, since: str, user: str | None
) -> RateWindow:
    rows = [each for each in every if each.day >= since]
    told = [each.outcome for each in rows if each.outcome is not None]
    days = counted["total"] if not since else _sum_days(counted["days"], since)
    found = RateWindow(
        since=since,
        missions=_count_missions(root, days, since) if user is None else dict(Counter(each.status for each in rows)),
        looked_at=len(rows),
        verdicts=dict(Counter(each for row in rows for each in row.verdicts)),
        sentences=dict(sum((Counter(row.sentences) for row in rows), Counter[str]())),
        median=_median_cost([each.cost for each in rows if each.status == "done" and each.cost is not None]),
        retries=sum(max(0, each.attempts - 1) for each in rows),
        failures=dict(Counter(code for row in rows for code in row.failures).most_common(_CODES)),
        rated=len(told),
        outcome=round(fmean(told), 3) if told else None,
    )
    if user is None:
        found["counted"] = _count_work(days)
    return found


def _median_cost(costs: Sequence[CostDocument]) -> MissionMedians | None:
    if not costs:
        return None

    def middle(of: Callable[[CostDocument], float]) -> float:
        return round(median(map(of, costs)), 3)

    return MissionMedians(
        calls=middle(lambda each: each["calls"]),
        tokens=middle(lambda each: each["prompt_tokens"] + each["answer_tokens"]),
        seconds=middle(lambda each: each["seconds"]),
    )


def _sum_days(days: Mapping[str, CountsDocument], since: str) -> CountsDocument:
    """Return the sum of the counts of the days from one on."""
    found: CountsDocument = {}
    for day, counts in days.items():
        if day >= since:
            found = add_counts(found, counts)
    return found


def _count_missions(root: Root, counts: CountsDocument, since: str) -> dict[str, int]:
    """Return how many missions ended, by status: of all that there are as the image counts them."""
    if not since:
        return {word: many for word, many in sorted(root[roots.TALLY].items()) if many and word not in OPEN}
    return dict(sum((Counter(ends) for ends in counts.get("missions", {}).values()), Counter[str]()))


def _count_work(counts: CountsDocument) -> CountedRates:
    heard = counts.get("first_token")
    many = sum(heard["counts"]) if heard else 0
    return CountedRates(
        calls=counts.get("calls", 0),
        tokens=counts.get("prompt_tokens", 0) + counts.get("answer_tokens", 0),
        from_journal=counts.get("from_journal", 0),
        loads=counts.get("loads", 0),
        spills=counts.get("spills", 0),
        conflicts=counts.get("conflicts", 0),
        made=counts.get("installs", 0),
        refused=counts.get("verdicts", {}).get("refused", 0),
        retired=counts.get("retired", 0),
        first_token=round(heard["seconds"] / many, 3) if heard and many else None,
    )


def _read_audit(root: Root) -> AuditLine | None:
    last = persona_models.last_audit(root)
    if last is None:
        return None
    return AuditLine(at=last["at"], held=sum(each["ok"] for each in last["findings"]), checks=len(last["findings"]))
