"""The figures of the mind's own work as evidence: sentences that a question to ALFRED, or a protocol, is given.

Only a question that goes to ALFRED or nearly did, brings no file and asks for a figure of the mind itself gets them.
All are computed once for a mission and noted, so that every attempt is shown the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, Final, NamedTuple, TypeAlias, cast

from batos.concurrency.threads import finish_despite_cancel
from batos.gate import languages
from batos.genesis.codex.declarations import fold, mentions
from batos.image import ids, roots
from batos.image.ownership import is_of_people
from batos.image.roots import Root
from batos.memory.evidence import Passage
from batos.memory.segmentation import words
from batos.minds import context_building
from batos.minds.context import MindContext, Rates
from batos.minds.own_sentences import OwnSentence
from batos.minds.trace import MissionChoices
from batos.objects.prototype import own_slots
from batos.protocol.brief import MissionBrief
from batos.protocol.mission_documents import CostDocument, MissionDocument
from batos.protocol.motion_documents import RatesDocument, RateSpan, RateWindow
from batos.reckoning.reckonings import CitedRow, Reckoning, write_number
from batos.records import own_briefs
from batos.records.own_briefs import Fact
from batos.routing.router import Route

#: The value of a figure: a number, or a word such as a model's name; None: there is none.
Value: TypeAlias = Decimal | str | None

#: The persona that is asked about the mind itself.
KEEPER: Final = "ALFRED"
#: The journal note of what a mission was told has it under this name, and of what a protocol was given.
NOTE, GIVEN_NOTE = "own_figures", "own_figures_given"
#: The most facts that answer one question, and the most missions among which a user's newest is looked for.
MOST_FACTS, AMONG = 4, 1_000

_NOW: Final = frozenset({"model", "audit_day", "audit_held", "cem"})
_CEM: Final = frozenset({"cem", "outcome"})
#: Facts of missions; other ones are of the whole mind, and come from its counters.
_LEDGER: Final = frozenset({
    "done", "failed", "error_rate", "failure_codes", "rejected", "revised", "withdrawn", "carried", "seconds_median",
    "calls_median", "tokens_median", "retries",
})  # fmt: skip
_PLACE: Final = re.compile(r"\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}")
_TRUST: Final = "tool"
#: Seconds from which on no hundredths are told.
_LONG: Final = 10


class WantedFacts(NamedTuple):
    """The facts that a question asks for: the language, the window and the names of the facts."""

    language: str
    span: RateSpan
    facts: tuple[str, ...]


class OwnFact(NamedTuple):
    """A sentence with the source that it is of, and the figure that it is about: "" where none is recorded.

    None: an answer does not have to say one of it.
    """

    source: str
    text: str
    figure: str | None


class OwnEvidence(NamedTuple):
    """The passages that a mission is given of the mind itself, and the computed result of its question."""

    passages: tuple[Passage, ...] = ()
    computed: Mapping[str, Reckoning | None] = {}

    def beside(self, given: Sequence[Passage]) -> tuple[Passage, ...]:
        """Return the passages of a mission's files, and these numbered behind them."""
        own = (replace(each, number=number) for number, each in enumerate(self.passages, len(given) + 1))
        return (*given, *own)


def choose(question: str) -> WantedFacts | None:
    """Return the facts of the mind itself that a question asks for; None: it asks for none.

    >>> choose("How many model calls did that answer cost?").facts
    ('last_calls',)
    >>> choose("How many calls did the branch in Lyon take?") is None
    True
    """
    text = fold(question)
    said = words(text.replace("'", " "))
    first = languages.guess(question)
    for language in sorted(_table(), key=lambda each: each != first):
        told = _table()[language]
        if not mentions(text, told["own"]):
            continue
        is_last = mentions(text, told["last"])
        sizes = {
            name: max((len(cue.split()) for cue in cues if _has(said, cue)), default=0)
            for name, (_, *cues) in told["facts"].items()
            if name in _NOW or name.startswith("last_") is is_last
        }
        most = max(sizes.values())
        if most:
            found = tuple(name for name, size in sizes.items() if size == most)[:MOST_FACTS]
            span: RateSpan = "day" if mentions(text, told["day"]) else "all" if mentions(text, told["all"]) else "week"
            return WantedFacts(language, span, found)
    return None


def _has(said: Sequence[str], cue: str) -> bool:
    return all(any(word.startswith(each) for word in said) for each in cue.split())


async def find(
    rates: Rates | None, root: Root, mission: str, asked: tuple[MissionBrief, Route], decided: MissionChoices
) -> OwnEvidence:
    """Return what a mission is given of the mind itself: nothing, but for a question to ALFRED about it."""
    brief, route = asked
    if rates is None or brief.message or brief.answer_schema or not _is_for_keeper(brief, route):
        return OwnEvidence()
    noted = next((note[NOTE] for note in decided.notes() if NOTE in note), None)
    if noted is not None:
        return _as_evidence(brief.text, [OwnFact(*each) for each in noted])
    told = [OwnFact(*each) for each in own_briefs.find_facts(root, brief)]
    if not told:
        wanted = choose(brief.text)
        if wanted is None or _brings_files(root, brief):
            return OwnEvidence()
        told = await _tell_aside(rates, root, mission, brief, wanted)
    decided.note(**{NOTE: [list(each) for each in told]})
    return _as_evidence(brief.text, told)


def _is_for_keeper(brief: MissionBrief, route: Route) -> bool:
    """Test if a question goes to ALFRED, or nearly did; whoever names another persona wants that one's view."""
    nearest = sorted(route.scores, key=lambda each: -route.scores[each])[:2]
    return route.personas[0] == KEEPER or (brief.persona is None and KEEPER in nearest)


def _brings_files(root: Root, brief: MissionBrief) -> bool:
    """Test if a question comes with files that the turn before it in its conversation had not."""
    before = next((roots.find_record(root, name) for name in _turns_before(root, brief)), None)
    known = {each["sha256"] for each in before.brief.value["attachments"]} if before is not None else set()
    return any(each.sha256 not in known for each in brief.attachments)


async def read_given(context: MindContext, source: str) -> str:
    """Return the facts of a source, of the last seven days, as a protocol is given them; "" where none are known."""
    rates, mission, decided = context.io.rates, context.mission, context.trace.decided
    if rates is None:
        return ""
    noted = next(
        (note[GIVEN_NOTE] for note in decided.notes() if note.get(GIVEN_NOTE, {}).get("source") == source), None
    )
    if noted is not None:
        return str(noted["text"])
    every = tuple(name for name in _table()["English"]["facts"] if _source(name) == source)
    wanted = WantedFacts("English", "week", every)
    told = await _tell_aside(rates, mission.root, mission.id, mission.brief, wanted)
    found = [f"- {each.text}" for each in told if each.figure] or ["- nothing yet"]
    text = "\n".join((f"Measured ({source}):", *found))
    decided.note(**{GIVEN_NOTE: {"source": source, "text": text}})
    return text


def tell_week(found: RatesDocument) -> list[Fact]:
    """Return all facts of the ledger and the counters in the last seven days, without one that an answer has to say."""
    told = _table()["English"]
    values = {"when": told["when_week"], **_values_of_window(found["windows"]["week"]), **_values_of_mind(found)}
    every = (_fill(_source(name), str(each[0]), values, "English") for name, each in told["facts"].items())
    return [(each.source, each.text, None) for each in every if each is not None and each.source != "cem"]


def _source(fact: str) -> str:
    return "cem" if fact in _CEM else "ledger" if fact in _LEDGER or fact.startswith("last_") else "counters"


async def _tell_aside(
    rates: Rates, root: Root, mission: str, brief: MissionBrief, wanted: WantedFacts
) -> list[OwnFact]:
    """Return the facts, which are read in a thread: there may be many missions."""
    work = asyncio.to_thread(lambda: list(_tell(rates, root, mission, brief, wanted)))
    return await finish_despite_cancel(asyncio.ensure_future(work))


def _tell(rates: Rates, root: Root, mission: str, brief: MissionBrief, wanted: WantedFacts) -> Iterator[OwnFact]:
    """Yield the facts in the words of the question's language; of several without a figure one sentence says so."""
    told = _table()[wanted.language]
    values: dict[str, Value] = {"when": told[f"when_{wanted.span}"]}
    if any(name.startswith("last_") for name in wanted.facts):
        values |= _values_of_last(root, mission, brief)
    if "model" in wanted.facts:
        keeper = context_building.persona_of(root, KEEPER)
        values |= {"persona_now": KEEPER, "model": brief.model or str(keeper.model)}
    if any(not name.startswith("last_") and name != "model" for name in wanted.facts):
        found = rates(root, brief.user, "cem" in wanted.facts)
        values |= {**_values_of_window(found["windows"][wanted.span]), **_values_of_mind(found)}
    for name in wanted.facts:
        fact = _fill(_source(name), str(told["facts"][name][0]), values, wanted.language)
        yield fact or OwnFact(_source(name), told["missing"], "")


def _fill(source: str, template: str, values: Mapping[str, Value], language: str) -> OwnFact | None:
    """Return a sentence with its figures; None where one has no value."""
    names = [found[1] for found in _PLACE.finditer(template)]
    if any(values.get(name) is None for name in names):
        return None

    def write(found: re.Match[str]) -> str:
        value = values[found[1]]
        text = write_number(value, language) if isinstance(value, Decimal) else str(value)
        return f"{text} {found[2] if value == 1 else found[3]}" if found[3] else text

    asked = str(values[next(name for name in names if name != "when")])
    return OwnFact(source, _PLACE.sub(write, template), asked.partition(" ")[0])


def _as_evidence(question: str, facts: Sequence[OwnFact]) -> OwnEvidence:
    passages = []
    for number, source in enumerate(dict.fromkeys(each.source for each in facts), 1):
        text = "\n".join(dict.fromkeys(each.text for each in facts if each.source == source))
        passages.append(Passage(number, source, hashlib.sha256(text.encode()).hexdigest(), 0, text, _TRUST))
    lead = " ".join(dict.fromkeys(each.text for each in facts))
    rows = tuple(CitedRow(each.name, each.sha256, 0, len(each.text), each.text) for each in passages)
    asked = tuple(each.figure for each in facts if each.figure is not None)
    if not asked:
        return OwnEvidence(tuple(passages))
    return OwnEvidence(tuple(passages), {question: OwnSentence(", ".join(asked), lead, lead, rows, figures=asked)})


# -- values


def _values_of_last(root: Root, mission: str, brief: MissionBrief) -> dict[str, Value]:
    """Return the figures of the user's newest answer before this mission, of its conversation first."""
    found = next(_answers_before(root, mission, brief), None)
    if found is None:
        return {}
    cost: CostDocument | None = found.get("cost")
    route, known = found.get("route"), found.get("provenance", {})
    states = [each["state"] for each in known.get("sentences", ())]
    values: dict[str, Value] = {
        "carried": Decimal(states.count("carried")),
        "uncarried": Decimal(states.count("not_carried")),
        "faults": Decimal(len(known["gate"]["faults"])) if "gate" in known else None,
    }
    if cost is not None:
        values |= {"calls": Decimal(cost["calls"]), "tokens": Decimal(cost["prompt_tokens"] + cost["answer_tokens"])}
        values |= {"seconds": _seconds(cost["seconds"]), "from_journal": Decimal(cost["from_journal"])}
    if route is not None:
        values |= {"persona": ", ".join(route["personas"]), "confidence": _number(route["confidence"], 2)}
    return values


def _answers_before(root: Root, mission: str, brief: MissionBrief) -> Iterator[MissionDocument]:
    for name in (*_turns_before(root, brief), *islice(ids.newest_first(root[roots.MISSIONS]), AMONG)):
        record = roots.find_record(root, name)
        if record is None or name == mission or record.brief.value["user"] != brief.user or not is_of_people(record):
            continue
        slots = own_slots(record.thought)
        if record.status.word == "done" and "answer" in slots:
            yield cast("MissionDocument", slots)


def _turns_before(root: Root, brief: MissionBrief) -> Iterator[str]:
    """Yield the mission that is replied to, and those of the conversation, the newest first."""
    if brief.in_reply_to:
        yield brief.in_reply_to
    talk = root[roots.CONVERSATIONS].get(brief.conversation) if brief.conversation else None
    if talk is not None and own_slots(talk)["user"] == brief.user:
        turns = own_slots(talk)["turns"]
        last = turns.maxKey() if turns else 0
        yield from (turns[place] for place in range(last, max(0, last - AMONG), -1) if place in turns)


def _values_of_window(found: RateWindow) -> dict[str, Value]:
    missions, verdicts, sentences, middle = found["missions"], found["verdicts"], found["sentences"], found["median"]
    ended, failed = sum(missions.values()), missions.get("failed", 0)
    codes = ", ".join(f"{code} {many}" for code, many in found["failures"].items())
    values: dict[str, Value] = {
        "done": Decimal(missions.get("done", 0)),
        "failed": Decimal(failed),
        "ended": Decimal(ended),
        "error_rate": _number(100 * failed / ended) if ended else None,
        "failure_codes": codes or None,
        "judged": Decimal(sum(verdicts.get(word, 0) for word in ("passed", "faulty", "unchecked"))),
        **{word: Decimal(verdicts.get(word, 0)) for word in ("rejected", "revised", "withdrawn")},
        "all_carried": Decimal(sentences.get("carried", 0)),
        "all_stated": Decimal(sum(sentences.values())),
        "retries": Decimal(found["retries"]),
        "rated": Decimal(found["rated"]),
        "outcome": _number(found["outcome"], 2),
    }
    if middle is not None:
        values |= {"calls_median": _number(middle["calls"]), "tokens_median": _number(middle["tokens"])}
        values |= {"seconds_median": _seconds(middle["seconds"])}
    counted = found.get("counted")
    if counted is not None:
        values |= {name: Decimal(counted[name]) for name in _COUNTED}
        answers = counted["calls"] + counted["from_journal"]
        values |= {
            "all_calls": Decimal(counted["calls"]),
            "all_tokens": Decimal(counted["tokens"]),
            "all_journal": Decimal(counted["from_journal"]),
            "share": _number(100 * counted["from_journal"] / answers) if answers else None,
            "first_token": _seconds(counted["first_token"]),
        }
    return values


_COUNTED: Final = ("loads", "spills", "conflicts", "made", "refused", "retired")


def _values_of_mind(found: RatesDocument) -> dict[str, Value]:
    audit = found.get("audit")
    newest = next((each for each in reversed(found["cem"]) if each["cem"] is not None), None)
    values: dict[str, Value] = {}
    if audit is not None:
        values |= {"audit_day": audit["at"][:10], "audit_time": audit["at"][11:16]}
        values |= {"held": Decimal(audit["held"]), "checks": Decimal(audit["checks"])}
    if newest is not None:
        values |= {"cem": _number(newest["cem"], 3), "cem_day": newest["day"]}
    return values


def _seconds(value: float | None) -> Decimal | None:
    return _number(value, 1 if value is not None and value >= _LONG else 2)


def _number(value: float | None, decimals: int = 1) -> Decimal | None:
    """Return a number without zeros at its end."""
    if value is None:
        return None
    text = f"{value:.{decimals}f}"
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files(__package__).joinpath("own_figures.toml").read_text(encoding="utf-8"))
