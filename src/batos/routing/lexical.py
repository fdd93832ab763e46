"""Scores labels (personas, key protocols) by the words of a text, learnt from the examples of the codex."""

from __future__ import annotations

import hashlib
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.genesis.codex.codex import Persona
from batos.memory.segmentation import line_of, terms, words

#: The label of the questions of a persona that no protocol of it is meant for.
ORDINARY: Final = ""


@dataclass(frozen=True, slots=True)
class Lesson:
    """The codex's examples of the questions of a persona, or of one of its `protocols` (`label` is its slot)."""

    label: str
    triggers: tuple[str, ...]
    exemplars: tuple[str, ...]
    protocols: tuple[Lesson, ...] = ()
    #: True of a protocol that acts only where the image says so; all are learnt, so that none is learnt later.
    shelved: bool = False

    @property
    def questions(self) -> tuple[str, ...]:
        """Return all exemplars once: the persona's own, then those of its protocols."""
        return tuple(dict.fromkeys((*self.exemplars, *self._protocol_exemplars)))

    @property
    def choices(self) -> tuple[Lesson, ...]:
        """Return what the choice among the protocols is learnt from: theirs, and the persona's ordinary questions."""
        meant = set(self._protocol_exemplars)
        ordinary = tuple(text for text in self.exemplars if text not in meant)
        return (*self.protocols, Lesson(ORDINARY, (), ordinary)) if self.protocols else ()

    @property
    def _protocol_exemplars(self) -> tuple[str, ...]:
        return tuple(text for each in self.protocols for text in each.exemplars)


def lessons_of(personas: Iterable[Persona]) -> tuple[Lesson, ...]:
    """Return the lessons of a codex's personas; a protocol without examples is chosen by its conditions alone."""
    found: list[Lesson] = []
    for each in personas:
        protocols = (
            Lesson(one.slot, one.triggers, one.exemplars, (), one.shelved) for one in each.protocols if one.by_meaning
        )
        found.append(Lesson(each.name, each.triggers, each.exemplars, tuple(protocols)))
    return tuple(found)


def digest_of(lessons: Sequence[Lesson]) -> str:
    """Return the sha256 (hex) of everything that is learnt from: other changes of the codex need no training."""
    written = json.dumps([_plain(each) for each in lessons], ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(written.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(lesson: Lesson) -> list[object]:
    return [lesson.label, lesson.triggers, lesson.exemplars, [_plain(each) for each in lesson.protocols]]


#: A trigger weighs as much as this many exemplars that contain it.
TRIGGER_WEIGHT = 3
#: A word is named as a reason if it is so many times likelier (natural logarithm) of one label than of any other.
TELLING = 1.1
#: Words that are in every other sentence: they weigh in the scores, and explain nothing to a person.
LITTLE = frozenset(
    "a aber about al all als am an and any are as at au auf aus aux avec be been bei but by can ce ces como con "
    "could cuando dans das de del dem den der des did die do does donde du ein eine einen el ella elle en er es "
    "est esta este et for from für get give had has hat have he her here him his how i ich if ihr il im in into "
    "is ist it its je just kann la las le les let like lo los ma make man many may me mein mes mi mich mir mit "
    "moi mon more most must my ne nicht no noch nos not nous now o oder of off on one or ou our out over par para "
    "pas pero por pour que qui sa se ses shall she should si sie sin sind so some son su sur take te tell than "
    "that the their them then there these they this those to too tu un una und une uns up us very von vous was we "
    "were what when where which who why wie will wir with wo would y yo you your zu zum zur".split()
)
_SMOOTHING = 0.3
#: Classifiers that a process remembers: a codex has one for its personas and one for the protocols of each.
_REMEMBERED = 16
#: The counts as the image stores them.
_STORED: Final = "<u4"
#: The first character of the scripts without blanks between words; all of them come later than those with.
_UNSPACED = "\u0e00"


class Lexical:
    """The counts of each feature in the codex's examples of each label.

    A feature's logarithms are computed when a text first has it: a process that asks once needs a few dozen of
    thousands.
    """

    def __init__(self, labels: tuple[str, ...], index: Mapping[str, int], counts: NDArray[Any]) -> None:
        """Take the place of each feature, and the counts: a row for each feature, a column for each label."""
        self.labels = labels
        self._index = index
        self._counts = counts
        room = _SMOOTHING * (len(index) + 1)
        self._totals = [math.log(total + room) for total in counts.sum(axis=0, dtype=np.int64).tolist()]
        self._row = cache(self._logs_of)

    def _logs_of(self, feature: str) -> tuple[float, ...]:
        """Return the logarithms of a known feature, in the labels' order."""
        counts = self._counts[self._index[feature]].tolist()
        return tuple(_log(count) - total for count, total in zip(counts, self._totals, strict=True))

    def logs(self, text: str) -> list[float]:
        """Return the logarithm of each label's likelihood, in their order; only the differences have a meaning."""
        known = self._index
        counted = {feature: number for feature, number in features(looked_at(text)).items() if feature in known}
        if not counted:
            return [0.0] * len(self.labels)
        numbers = list(counted.values())
        columns = zip(*map(self._row, counted), strict=True)
        # Features overlap, so their evidence is counted several times over: the root keeps confidence honest.
        damping = 1 + math.sqrt(sum(numbers))
        return [sum(map(mul, column, numbers)) / damping for column in columns]

    def telling(self, text: str, label: str, most: int = 3) -> list[str]:
        """List the words of a text that speak most for a label against every other, the strongest first."""
        mine = self.labels.index(label)
        found: dict[str, float] = {}
        for word in filter(is_word, features(looked_at(text))):
            if word in self._index and word not in LITTLE:
                logs = list(self._row(word))
                margin = logs.pop(mine) - max(logs, default=0.0)
                if margin >= TELLING:
                    found[word] = margin * math.sqrt(len(word))
        return sorted(found, key=lambda word: (-found[word], word))[:most]

    @cached_property
    def packed_model(self) -> Mapping[str, bytes]:
        """Return the model as plain bytes: the features a line each, the counts as little-endian numbers of 32 bits."""
        lines = "\n".join(self._index).encode("utf-8", "surrogatepass")
        return {"features": zlib.compress(lines, 6), "counts": zlib.compress(self._counts.astype(_STORED).tobytes(), 6)}


class Triggers:
    """The codex's trigger words, looked for as whole words; where a script has no blanks, anywhere."""

    def __init__(self, lessons: Sequence[Lesson]) -> None:
        self._lines = {lesson.label: tuple(map(line_of, lesson.triggers)) for lesson in lessons}

    def find(self, text: str, label: str) -> list[str]:
        """List the triggers of a label that occur in a text, the longest first."""
        line = _line(looked_at(text))
        found = {trigger.strip() for trigger in self._lines[label] if _stands(trigger, line)}
        return sorted(found, key=lambda trigger: (-len(trigger), trigger))


@lru_cache(maxsize=_REMEMBERED)
def learn(lessons: tuple[Lesson, ...]) -> Lexical:
    """Count the features of every trigger and exemplar; takes some 300 ms of CPU for a thousand, so not on the loop."""
    counts = [_count(lesson) for lesson in lessons]
    index = {feature: at for at, feature in enumerate(sorted(set().union(*counts)))}
    counted = np.array([[count[feature] for count in counts] for feature in index], np.int64)
    return Lexical(tuple(lesson.label for lesson in lessons), index, counted.reshape(len(index), len(lessons)))


@lru_cache(maxsize=_REMEMBERED)
def unpack(labels: tuple[str, ...], lines: bytes, counted: bytes) -> Lexical:
    """Return the model whose features and counts `packed_model` made bytes of.

    Raises: ValueError or zlib.error: the bytes are no such model.
    """
    names = zlib.decompress(lines).decode("utf-8", "surrogatepass").split("\n")
    counts = np.frombuffer(zlib.decompress(counted), _STORED)
    if len(counts) != len(names) * len(labels):
        raise ValueError("the router's counts are not of its features")
    index = {name: at for at, name in enumerate(names)}
    return Lexical(labels, index, counts.reshape(len(names), len(labels)))


def _count(lesson: Lesson) -> Counter[str]:
    counts: Counter[str] = Counter()
    for exemplar in lesson.exemplars:
        counts.update(features(exemplar))
    for trigger in lesson.triggers:
        for feature, number in features(trigger).items():
            if not feature.startswith("#"):  # a trigger stands within a text: it has no shape of its own
                counts[feature] += number * TRIGGER_WEIGHT
    return counts


@lru_cache(maxsize=4)
def _line(text: str) -> str:
    """Return the words of a text in one line; every label's triggers are looked for in the same."""
    return line_of(text)


@lru_cache(maxsize=4096)
def _log(count: int) -> float:
    return math.log(count + _SMOOTHING)


def _stands(trigger: str, line: str) -> bool:
    """Test if a trigger occurs as whole words, or anywhere in scripts without blanks between words."""
    return trigger in line or (trigger[1:2] >= _UNSPACED and trigger.strip() in line)


# -- features of a text: its words, their pairs, runs of letters, and its shape


#: Characters at the head and the tail of a long text that are looked at: what is asked stands there.
HEAD, TAIL = 1_200, 400
#: A feature of the shape counts as much as so many words.
SHAPE_WEIGHT = 3
_RUN = 4
_CODE = re.compile(r"[{}();=<>`_\[\]\\/|]")
_NUMBER = re.compile(r"\d+")
_LABEL = re.compile(r"[A-Za-z_ -]{2,30}:")
_ASKS = re.compile(r"[?？]\s*\Z")
_QUOTES = re.compile('["«„“”《「]')
#: Words up to which a text is of each size.
_SIZES = (3, 7, 15, 29)


def looked_at(text: str) -> str:
    """Return the text, or both ends of a long one."""
    return f"{text[:HEAD]} {text[-TAIL:]}" if len(text) > HEAD + TAIL else text


@lru_cache(maxsize=8)
def features(text: str) -> Mapping[str, int]:
    """Count the features of a text; none contains a line break.

    Words and pairs of words are features themselves. A run of four letters, which also occurs in unknown forms of a
    word, begins with `~`; a feature of the shape begins with `#`. The last counts are cached: a question is read for
    its scores and again for their reasons.
    """
    found = words(text)
    line = f" {' '.join(found)} "
    runs = (f"~{line[at : at + _RUN]}" for at in range(len(line) - _RUN + 1))
    pieces = (term for term in terms(text) if not term.isascii())
    counts = Counter((*found, *(" ".join(pair) for pair in pairwise(found)), *runs, *pieces))
    for feature in _shape(text, found):
        counts[feature] += SHAPE_WEIGHT
    return counts


def is_word(feature: str) -> bool:
    """Test if a feature is one word, which can be shown to a person."""
    return feature[:1] not in {"~", "#"} and " " not in feature


def _shape(text: str, found: list[str]) -> Iterator[str]:
    """Yield features of a text's shape: its beginning and end, its length, questions, quotes, numbers, code."""
    if found:
        yield f"#first {found[0]}"
        yield f"#last {found[-1]}"
    if len(found) > 1:
        yield f"#first {found[0]} {found[1]}"
    marks, numbers = len(_CODE.findall(text)), len(_NUMBER.findall(text))
    told = {
        "#code": marks > 0,
        "#code+": marks > 3,
        "#number": numbers > 0,
        "#numbers": numbers > 2,
        "#asks": bool(_ASKS.search(text)),
        "#calls": "!" in text,
        "#quotes": bool(_QUOTES.search(text)),
        "#label": bool(_LABEL.match(text)),
    }
    yield from (name for name, holds in told.items() if holds)
    yield f"#size {sum(len(found) > size for size in _SIZES)}"
