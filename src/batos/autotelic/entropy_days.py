"""The metric by day: the missions of each day, the medians of their parts, and what fell or stands still."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from statistics import fmean, median
from typing import Final, NamedTuple

from batos.autotelic import entropy, slot_values
from batos.autotelic.answer_measures import read_parts
from batos.autotelic.entropy import AnswerVerdict, Weights
from batos.autotelic.heartbeat import Allowance, Duty
from batos.genesis import persona_models
from batos.image import ids, roots
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.image.roots import Root
from batos.memory.segmentation import clip_line
from batos.protocol.errors import NotFound
from batos.protocol.motion_documents import (
    EntropyDay,
    EntropyFinding,
    EntropyMark,
    EntropyMission,
    EntropyPage,
    EntropyParts,
    EntropyReasons,
    value_of,
)
from batos.records import outcomes, redefinitions, tools
from batos.records.redefinitions import ChangeOrigin

#: The fewest missions of a day that has a value of its own.
LEAST: Final = 5
#: The value of a line below which there is room above it: cognitive diversity, and outcomes.
ROOM: Final[Mapping[str, float]] = {"Hcog": 0.2, "outcome": 0.5}
#: The name of who moves the weights, the time between two steps, and that in which a person's value is left as it is.
_BY, _WEEK, _BARRED = "heartbeat", timedelta(days=7), timedelta(days=90)
#: The most characters of a question in a list.
_LINE: Final = 80
#: The lines that are looked at for decay.
_LINES: Final = (*entropy.WEIGHTS, "cem", "outcome")


class _MissionRow(NamedTuple):
    """A mission with what was measured of it."""

    name: str
    text: str
    parts: EntropyParts
    uses: float
    outcome: float | None
    is_undone: bool
    #: A person asked it; else it fulfilled a wish.
    is_asked: bool
    #: The mean of the acts since a moment that are meant as verdicts.
    verdict: float | None


def describe(root: Root, days: int, user: str | None = None) -> EntropyPage:
    """Return the metric of the last days that have missions (of a user), and what is to be looked at in all days."""
    acting, had = entropy.read(root), redefinitions.list_values(root, entropy.NAME)
    every = list(_days(_read_rows(root, user), acting))
    shown = every[-days:]
    marks = [each for each in _list_marks(root) if user is None and shown and shown[0]["day"] <= each["day"]]
    since = had[-1].origin.at if had else None
    return {
        "days": shown, "marks": marks, "weights": acting, "weights_since": since, "findings": list(find_decay(every)),
    }  # fmt: skip


def _list_marks(root: Root) -> list[EntropyMark]:
    """Return the changes that trials made or that were taken back, steps of the weights, and when models were made."""
    kept = root.get(roots.TRIALS)  # an older moment of the image has none
    ended = [] if kept is None else [(name, each) for name, each in kept.items() if each["ended"]]
    found = [
        EntropyMark(day=each["ended"][:10], text=f"{each['state']}: {each['lever']} ({name})")
        for name, each in ended
        if each["state"] in ("promoted", "kept", "undone")
    ]  # fmt: skip
    steps = redefinitions.list_values(root, entropy.NAME)[1:]
    found += [EntropyMark(day=each.origin.at[:10], text=f"weights by {each.origin.by}") for each in steps]
    made = Counter(each.at[:10] for each in persona_models.read_record(root).models.values())
    found += [EntropyMark(day=day, text=f"{many} models made") for day, many in made.items()]
    return sorted(found, key=lambda each: each["day"])


def explain(root: Root, day: str | None, user: str | None) -> EntropyReasons:
    """Return the missions of a day (of a user), by default of the newest, the lowest first.

    Raises: NotFound: no mission of that day was measured.
    """
    every, acting = list(_read_rows(root, user)), entropy.read(root)
    found = next((each for each in reversed([*_days(every, acting)]) if day in (None, each["day"])), None)
    if found is None:
        raise NotFound(
            f"nothing was measured on {day}" if day else "nothing was measured yet",
            field="day",
            remedy="`batos cem` draws the days that were measured.",
        )
    rows = [each for each in every if _day_of(each.name) == found["day"]]
    lines = [EntropyMission(mission=e.name, text=e.text, parts=e.parts, uses=e.uses, outcome=e.outcome) for e in rows]
    return {"day": found, "missions": sorted(lines, key=lambda each: entropy.composite(each["parts"], acting) or 0.0)}


def find_decay(days: Sequence[EntropyDay]) -> Iterator[EntropyFinding]:
    """Yield what fell beside its first days, and what stands still although there is room above it."""
    for line in _LINES:
        known = [
            (day["day"], value) for day in days if not day["carried"] and (value := value_of(day, line)) is not None
        ]
        values = [value for _, value in known]
        dip = entropy.find_dip(values)
        first = entropy.read_beginning(values)
        if first is None:
            continue
        if dip is not None:
            yield EntropyFinding(
                line=line, kind="dip", since=known[dip][0], before=round(first.mean, 3), now=round(values[-1], 3)
            )
        elif values[-1] < ROOM.get(line, 0.0) and entropy.stands_still(values):
            since = known[-min(len(known), entropy.STILL_DAYS)]
            yield EntropyFinding(
                line=line, kind="stagnation", since=since[0], before=round(since[1], 3), now=round(values[-1], 3)
            )


def _days(every: Iterable[_MissionRow], acting: Weights) -> Iterator[EntropyDay]:
    """Yield the days, the oldest first; all are weighed by the weights that act, so that they can be compared."""
    by_day: dict[str, list[_MissionRow]] = defaultdict(list)
    for each in every:
        by_day[_day_of(each.name)].append(each)
    used, missions, before = 0.0, 0.0, ""
    parts, cem = EntropyParts(), None
    for day, rows in sorted(by_day.items()):
        since = date.fromisoformat(day) - date.fromisoformat(before or day)
        fading = 0.5 ** (since.days / entropy.HALF_LIFE)
        before = day
        used = used * fading + sum(-each.uses if each.is_undone else each.uses for each in rows)
        missions = missions * fading + len(rows)
        standing = [each.parts for each in rows if not each.is_undone]
        carried = sum(each.is_asked for each in rows) < LEAST
        if not carried:
            parts, cem = _measure_day(standing, entropy.structure(used, missions), acting)
        known = [each.outcome for each in rows if each.outcome is not None]
        yield EntropyDay(
            day=day, missions=len(rows), carried=carried, parts=parts.copy(), cem=cem,
            outcome=round(fmean(known), 3) if known else None, undone=sum(each.is_undone for each in rows),
        )  # fmt: skip


def _measure_day(
    rows: Sequence[EntropyParts], structure: float | None, acting: Weights
) -> tuple[EntropyParts, float | None]:
    """Return the medians of a day's parts, and the median of its missions' sums."""
    shared = EntropyParts() if structure is None else EntropyParts(Hstruc=structure)
    sums = [value for row in rows if (value := entropy.composite({**row, **shared}, acting)) is not None]
    parts = entropy.parts_of({**entropy.medians(rows), "Hstruc": structure}, decimals=3)
    return parts, round(median(sums), 3) if sums else None


def _read_rows(root: Root, user: str | None, since: str = "") -> Iterator[_MissionRow]:
    """Yield what was measured of each mission (of a user) that the image still has, with verdicts since a moment."""
    kept = root.get(roots.ENTROPY)
    for name, values in () if kept is None else kept.items():
        record = roots.find_record(root, name)
        if record is not None and user in (None, record.brief.value["user"]):
            acts = outcomes.list_outcomes(root, name)
            verdict = outcomes.mean(e for e in acts if e["weight"] >= outcomes.EXPLICIT and e["at"] > since)
            brief = record.brief.value
            text, is_undone = clip_line(brief["text"], _LINE), record.status.word == "undone"
            is_asked = not tools.sender_in(record)
            yield _MissionRow(
                name, text, read_parts(values), values[3] or 0.0, outcomes.mean(acts), is_undone, is_asked, verdict
            )


def _day_of(mission: str) -> str:
    return iso(ids.begun_at(mission))[:10]


# -- the weights, by what people said of answers


def tune_weights(root: Root, now: datetime) -> str:
    """Move the weights of the metric by the verdicts on answers since the last step; return what was done, or "".

    A step is made once a week at most, and for a time none after a value that a person gave.
    """
    had = redefinitions.list_values(root, entropy.NAME)
    by, since = (had[-1].origin.by, had[-1].origin.at) if had else (_BY, "")
    if since > iso(now - (_WEEK if by == _BY else _BARRED)):
        return ""
    rows = (each for each in _read_rows(root, None, since) if each.verdict is not None)
    judged = [AnswerVerdict(EntropyParts(**each.parts, Hstruc=each.uses), each.verdict or 0.0) for each in rows]
    found = entropy.tune(entropy.read(root), judged)
    if found is None:
        return ""
    moved, why = found
    slot_values.redefine(root, entropy.NAME, entropy.as_value(moved), ChangeOrigin(_BY, iso(now), why))
    return f"the weights of the metric moved; {why}"


def tuning(image: LivingImage, clock: Callable[[], datetime]) -> Duty:
    """Return the duty to move the weights of the metric, which is looked at once a week."""

    async def work(_allowance: Allowance) -> str:
        return await image.shared.apply(lambda root: tune_weights(root, clock()))

    return Duty("weights", lambda _root: f"{clock():%G-W%V}", work)
