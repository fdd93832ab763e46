"""The ground of an answer, as the gate's checks receive it, and the words of their faults in a question's language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple

from batos.gate import dates, figures, languages
from batos.gate.dates import TimeSpan
from batos.gate.evidence_index import CONVERSATION, EvidenceIndex, index_of
from batos.gate.sums import asks_for_total, run_sums
from batos.memory.evidence import Evidence, Passage, by_file
from batos.memory.segmentation import words

#: Names that an answer may use although nothing that it rests on has them.
OWN_NAMES = frozenset({"robin", "brick", "babs", "alfred", "bat", "os", "architect", "ai"})
#: Times that a question may ask something for, and numbers of documents of which products are taken as worked out: of
#: more of them any number would be one.
_MOST_TIMES, _MOST_FACTORS = 1_000, 60
#: A number such as 1,380 is none.
_YEAR = re.compile(r"(?<!\d)(?<!\d[.,'’])[12]\d{3}(?!\d|[.,'’]\d)")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


class Ground:
    """Everything an answer may rest on, in the forms in which checks search it; each form is made at its first use."""

    def __init__(
        self,
        question: str,
        evidence: Evidence,
        own_names: frozenset[str] = frozenset(),
        *,
        asked: str = "",
        today: str = "",
        computed: str = "",
    ) -> None:
        """Take `asked`, the text that the question was made from, if any, `today`, the date of asking (2026-11-21), and
        `computed`, what the kernel itself worked out for it: its numbers and dates need no document.
        """
        self.question = question
        self.evidence = evidence
        self._own_names = own_names
        self._asked = asked
        self.today = today
        self.computed = computed
        turns = (f"{turn.question}\n{turn.answer}" for turn in evidence.turns)
        #: Everything but documents: the question, the text it was made from, and the conversation.
        self.said = "\n".join((question, asked, *(summary.text for summary in evidence.view), *turns))

    @cached_property
    def text(self) -> str:
        """Return everything as one text."""
        shown = ("\n".join(filter(None, (each.head, each.text))) for each in self.evidence.passages)
        return "\n".join((*shown, self.said))

    @cached_property
    def figures(self) -> figures.KnownNumbers:
        """Return every number in it, in every reading, and the present year."""
        found = figures.read_numbers(f"{self.text}\n{self.computed}")
        return replace(found, values=found.values | {Decimal(self.today[:4])}) if self.today else found

    @cached_property
    def days(self) -> frozenset[tuple[int, int, int]]:
        """Return every date in it, in every reading, and the date of asking."""
        said = dates.read_dates(f"{self.text}\n{self.today}\n{self.computed}")
        return said | {(day.year, day.month, day.day) for day in self._days_of_texts}

    @cached_property
    def _days_of_texts(self) -> frozenset[date]:
        """Return the days on which passages were written, and those before and after, which they may call tomorrow."""
        written = dates.whole_days(dates.read_dates("\n".join(each.day[:10] for each in self.passages)), frozenset())
        return frozenset(day + timedelta(days=step) for day in written for step in (-1, 0, 1))

    @cached_property
    def reached_days(self) -> frozenset[date]:
        """Return the days that lie a span of time which the ground names before or after one of its days."""
        return self.days_from([*dates.find_spans(self.text), *self._gaps])

    def days_from(self, spans: list[TimeSpan]) -> frozenset[date]:
        """Return the days that lie one of these spans of time before or after one of its days."""
        return dates.reach_days(self._whole_days, spans)

    @cached_property
    def _gaps(self) -> list[TimeSpan]:
        """Return the spans between a day of the question and another one."""
        asked = dates.whole_days(dates.read_dates(self.question), self.years)
        apart = {abs((one - other).days) for one in asked for other in self._whole_days}
        return [TimeSpan(0, 0, Decimal(days), "day") for days in sorted(apart) if days]

    @cached_property
    def _whole_days(self) -> frozenset[date]:
        return dates.whole_days(self.days, self.years)

    @cached_property
    def _minutes(self) -> frozenset[int]:
        return dates.minutes_between(self.times)

    def holds_span(self, span: TimeSpan) -> bool:
        """Test if a span of time lies between two days or two times of the ground."""
        return dates.follows(span, self._whole_days, self._minutes)

    def holds_minutes(self, minutes: int) -> bool:
        """Test if so many minutes lie between two times of the ground."""
        return minutes in self._minutes

    @cached_property
    def products(self) -> frozenset[Decimal]:
        """Return the products of a number of the question and one of the documents, where these are few."""
        asked = [each for each in figures.read_numbers(self.question).values if 1 < each <= _MOST_TIMES]
        numbers = figures.find("\n".join(each.text for each in self.passages))
        given = {value for each in numbers for value in each.values}
        few = len(given) <= _MOST_FACTORS
        return frozenset(one * other for one in asked for other in given) if few else frozenset()

    @cached_property
    def totals(self) -> frozenset[Decimal]:
        """Return the sums of numbers that stand together in a document, if the question asks for a total."""
        if not asks_for_total(self.question):
            return frozenset()
        return frozenset().union(*(run_sums(text) for text in self.documents))

    @cached_property
    def times(self) -> frozenset[tuple[int, int]]:
        """Return every time of day in it."""
        return frozenset(time for time, _ in dates.times(self.text))

    @cached_property
    def years(self) -> frozenset[int]:
        """Return every number in it that is written as a year is, and the present one."""
        return frozenset(int(each) for each in _YEAR.findall(f"{self.text}\n{self.computed}\n{self.today}"))

    @cached_property
    def names(self) -> dict[str, set[str]]:
        """Return its words, grouped by their first three letters."""
        found: dict[str, set[str]] = {}
        for word in {*words(self.text), *self._own_names}:
            found.setdefault(word[:3], set()).add(word)
        return found

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Return the scripts in which it is mainly written."""
        return languages.main_scripts(self.text)

    @cached_property
    def index(self) -> EvidenceIndex:
        """Return the evidence as an index of its sentences."""
        return index_of(self.evidence, self._asked)

    @cached_property
    def value_places(self) -> dict[Decimal | tuple[int, int], list[int]]:
        """Return the places in the index of the sentences of documents that have each number and each (month, day)."""
        found: dict[Decimal | tuple[int, int], list[int]] = {}
        for at, sentence in enumerate(self.index.sentences):
            if sentence.document == CONVERSATION:
                continue
            held: set[Decimal | tuple[int, int]] = {reading[1:] for reading in dates.read_dates(sentence.quote)}
            for value in held | figures.read_numbers(sentence.quote).values:
                found.setdefault(value, []).append(at)
        return found

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """Return the text of each document as far as passages have it."""
        files = by_file(self.passages)
        return tuple("".join((each.lead if at else "") + each.text for at, each in enumerate(one)) for one in files)

    @property
    def passages(self) -> tuple[Passage, ...]:
        """Return the passages of the evidence."""
        return self.evidence.passages


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer and what it may rest on; `was_cut` if it would have gone on.

    `instructions` is what its prompt said beside that, of which nothing belongs into the answer; what
    `is_structured` is the JSON that was asked for.
    """

    answer: str
    ground: Ground
    was_cut: bool = False
    instructions: str = ""
    is_structured: bool = False

    @property
    def language(self) -> str | None:
        """Return the language of the answer, else of the question, else of the documents; None if none is clear."""
        own = languages.guess(languages.prose(self.answer))
        return own or languages.guess(self.ground.question) or self.ground.index.language


class Spot(NamedTuple):
    """A finding of a check: its code in wording.toml, the words of the answer that it speaks of, and further values."""

    code: str
    said: str = ""
    values: tuple[tuple[str, str], ...] = ()

    @property
    def repair(self) -> str:
        """Return what is to be mended, in English."""
        return repair(self.code, {"said": self.said, **dict(self.values)}, "English")


def without_spaces(text: str) -> str:
    """Return the letters of a text that belong to scripts without blanks between words."""
    return "".join(_UNSPACED.findall(text))


#: Codes of faults that a reader is told alike: words that no document has.
_ABSENT = frozenset({"number", "day", "name", "carried"})
_FALLBACK = "English"


@lru_cache(maxsize=1)
def table() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Return the wordings by language, then `repair` or `told`, then the code of the fault."""
    return tomllib.loads(files(__package__).joinpath("wording.toml").read_text(encoding="utf-8"))


def repair(code: str, values: Mapping[str, str], language: str) -> str:
    """Return what a model is told to mend, in a language by its English name, or in English.

    >>> repair("document", {"number": "7"}, "German")
    'Es gibt kein Dokument 7.'
    """
    told = _words_of(language)["repair"]
    words = told[code].format_map(values)
    return f"{words} {told['nearest'].format_map(values)}" if code == "carried" and "near" in values else words


def tell(code: str, values: Mapping[str, str], language: str) -> str:
    """Return what a reader is told, as a phrase.

    >>> tell("number", {"said": "1,300"}, "English")
    'not in your documents: “1,300”'
    """
    kind = "absent" if code in _ABSENT else "language" if code == "script" else code
    return _words_of(language)["told"][kind].format_map(values)


def _words_of(language: str) -> Mapping[str, Mapping[str, str]]:
    known = table()
    return known.get(language) or known[_FALLBACK]
