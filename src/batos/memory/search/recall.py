"""Recall the evidence for a question within a budget of bytes, in focus and laid out as a model is shown it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from batos.memory import thresholds
from batos.memory.evidence import (
    MOST_DOCUMENTS,
    Evidence,
    Passage,
    Past,
    Summary,
    Turn,
    by_file,
    count_standing,
    mark,
    scores,
)
from batos.memory.segmentation import sentence_spans, stems

#: Stands in the place of a part of a file.
LEFT_OUT: Final = "[{:,} characters of this document are left out here]"
#: The blanks between two parts of a remembered document, of which only the places are known.
_GAP: Final = "\n\n"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029<>\"]")


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A file, or a remembered document, as far as it is shown; its `day` and `speaker` are "" where not known."""

    name: str
    text: str
    day: str = ""
    speaker: str = ""

    @property
    def title(self) -> str:
        """Return its name, speaker and date on one line, without marks that could end it."""
        about = ", ".join(filter(None, (self.speaker, self.day)))
        return _UNSAFE.sub("_", f"{self.name} ({about})" if about else self.name)

    def block(self, number: int) -> str:
        """Return it between marks that its text does not hold."""
        end, about = mark(self.text), {"name": self.name, "day": self.day, "by": self.speaker}
        told = "".join(f' {key}="{_UNSAFE.sub("_", said)}"' for key, said in about.items() if said or key == "name")
        return f'<document id="{number}"{told} digest="{end}">\n{self.text}\n</document {end}>'


def documents_of(passages: Iterable[Passage]) -> list[ShownDocument]:
    """Return the documents that passages are of, in the order of their first passages, with the text between joined.

    >>> lamp = [Passage(1, "lamp.txt", "0", 0, "Oil."), Passage(2, "lamp.txt", "0", 6, "Wick.")]
    >>> documents_of(lamp)[0].text.split()
    ['Oil.', 'Wick.']
    """
    return [_join(several) for several in by_file(passages)]


def shown_blocks(passages: Sequence[Passage]) -> list[str]:
    """Return a block for each document that passages are of."""
    return [each.block(number) for number, each in enumerate(documents_of(passages), 1)]


def shown_size(passages: Sequence[Passage]) -> int:
    """Return the bytes that passages take in a prompt, with what stands around their documents."""
    return sum(len(each.encode()) + 1 for each in shown_blocks(passages))


def _join(passages: Sequence[Passage]) -> ShownDocument:
    return ShownDocument(passages[0].name, "".join(_pieces(passages)), passages[0].day, passages[0].speaker)


def _pieces(passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the texts in order, and what stands between them: the blanks of the file, or a note and the heading."""
    end = 0
    for place, each in enumerate(passages):
        gap = each.start - end
        if gap > max(len(each.lead), len(_GAP)):
            yield "\n" if place else ""
            yield f"{LEFT_OUT.format(gap)}\n"
            yield f"{each.head}\n" if each.head and not each.text.startswith(each.head) else ""
        elif place:
            yield each.lead if len(each.lead) == gap else _GAP[: max(gap, 0)]
        yield each.with_mark(each.text)
        end = max(end, each.start + len(each.text))


#: The share of the better one of its neighbours' matches that counts for a passage: neighbours explain each other.
NEIGHBOUR_SHARE = 0.5
#: The share of the turns' room that summaries of older turns may take from the newest turns: one in so many.
VIEW_SHARE = 3


def recall(candidates: Sequence[Passage], past: Past, query: str, room: int, turns: int | None = None) -> Evidence:
    """Return the evidence that fits into `room` bytes: earlier turns in at most half of it, passages in the rest.

    With `turns`, that is the bytes for earlier turns, and all of `room` is the passages'.

    All passages are returned if they fit; else as many as the room holds, the best matches and their neighbours first,
    or the first ones if none matches. Passages keep the order of their files, and are numbered from 1. Turns are
    loaded, newest first, until one does not fit.
    """
    if turns is not None:
        kept = recall_turns(past, turns)
    else:
        kept = recall_turns(past, room // 2 if candidates else room)
        room -= sum(turn.size for turn in kept.turns) + sum(summary.size for summary in kept.view)
    shown = {turn.mission for turn in kept.turns}  # a turn that is shown whole is not quoted from memory beside
    candidates = [each for each in candidates if not each.mission or each.mission not in shown]
    passages_ = _select_passages(candidates, query, room)
    numbered = tuple(replace(each, number=number) for number, each in enumerate(passages_, start=1))
    return replace(kept, passages=numbered, omitted_passages=len(candidates) - len(numbered))


def recall_turns(past: Past, room: int) -> Evidence:
    """Return the turns and summaries that fit into `room` bytes.

    The exchange that is replied to first, then the newest turns, then the newest summaries of what is older; these
    have a share of the room that turns do not take.
    """
    meant = past.meant if past.meant is not None and past.meant.size <= room else None
    room -= meant.size if meant else 0
    reserved = min(sum(each.size for each in past.view), room // VIEW_SHARE)
    turns: list[Turn] = []
    for turn in past.newest():
        if meant is not None and turn.mission == meant.mission:
            continue
        if turn.size > room - reserved:
            break
        room -= turn.size
        turns.insert(0, turn)
    view: list[Summary] = []
    for summary in reversed(past.view):
        if summary.size > room:
            break
        room -= summary.size
        view.insert(0, summary)
    shown = (*turns, *([meant] if meant else ()))
    first = view[0].first if view else past.last_summarised_turn + 1
    told = sum(0 < each.position < first or each.position > past.last_summarised_turn for each in shown)
    older = count_standing(1, first - 1, past.undone)
    newer = count_standing(past.last_summarised_turn + 1, past.count, past.undone)
    return Evidence(turns=shown, view=tuple(view), omitted_turns=older + newer - told, undone=past.undone)


def _select_passages(candidates: Sequence[Passage], query: str, room: int) -> list[Passage]:
    if len(candidates) <= MOST_DOCUMENTS and shown_size(candidates) <= room:
        return list(candidates)
    found = scores(candidates, query)
    with_neighbours = [_match_with_neighbours(place, candidates, found) for place in range(len(candidates))]
    best = sorted(range(len(candidates)), key=lambda at: (not candidates[at].is_pinned, -with_neighbours[at], at))
    kept: list[Passage] = []
    for passage in (candidates[place] for place in best):
        if passage.size <= room and len(kept) < MOST_DOCUMENTS:
            room -= passage.size
            kept.append(passage)
    return sorted(kept, key=lambda each: each.number)


def _match_with_neighbours(place: int, candidates: Sequence[Passage], found: Sequence[float]) -> float:
    """Return how well a passage matches, if it is looked at with those before and behind it in its file."""
    beside = (at for at in (place - 1, place + 1) if 0 <= at < len(candidates))
    near = (found[at] for at in beside if candidates[at].sha256 == candidates[place].sha256)
    return max(found[place], NEIGHBOUR_SHARE * max(near, default=0.0))


# A sentence that begins so speaks of something that the sentence before it names.
_REFERRING = re.compile(
    r"""["'“‘«(]*(?:(?:he|she|it|they|this|that|these|those|his|her|its|their|er|sie|es|dies\w{0,2}|seine?\w?|ihre?\w?|il|"""
    r"elle|ils|elles|cela|ce|cette|ces|son|sa|ses|él|ella|ellos|ellas|esto|este|esta|su|sus|egli|lui|lei|essi|questo|"
    r"questa|ele|ela|eles|elas|isto|он|она|оно|они|это|этот|эта|hij|zij|het|dit|deze)\b|[他她它这這那此彼]|これ|それ|यह|वह|ये|वे)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A sentence: the place of its passage among the passages, its span in the passage's text, its terms and weight."""

    passage: int
    start: int
    end: int
    terms: frozenset[str]
    weight: float


def focus(passages: Sequence[Passage], question: str, usual: int | None = None) -> tuple[Passage, ...]:
    """Return the sentences that match a question best, in the order of the passages, each run of neighbours as one.

    The best few (`usual` of them, or as many as was measured to be best) come into focus and some more that match about
    as well, none that matches much less well than the best one, each with the sentence before it if it begins with a
    pronoun. A returned passage is a span of the one that
    has its number; its `start` is its place in the file. Where no sentence has more than a common word of the question
    ("Summarise the report"), nothing is in focus.

    >>> lamp = Passage(1, "lamp.txt", "0", 0, "Oil is dear. The man winds the lamp. This happens at night. Gulls cry.")
    >>> [each.text for each in focus([lamp], "When does the man wind the lamp at night?")]
    ['The man winds the lamp. This happens at night.']
    """
    found = _candidates(passages)
    chosen = set(_best(found, question, thresholds.FOCUS_USUAL if usual is None else usual))
    for place in sorted(chosen, reverse=True):
        while place and _refers(found, place, passages):
            place -= 1
            chosen.add(place)
    return tuple(_runs(sorted(chosen), found, passages))


def _candidates(passages: Sequence[Passage]) -> list[_Candidate]:
    power = thresholds.FOCUS_PASSAGE_POWER
    return [
        _Candidate(place, start, end, frozenset(stems(passage.text[start:end])), passage.weight**power)
        for place, passage in enumerate(passages)
        for start, end in sentence_spans(passage.text)
    ]


def _best(candidates: Sequence[_Candidate], question: str, usual: int) -> list[int]:
    """Return the places of the candidates in focus, the best first; only those with a word of the question."""
    holding = Counter(term for each in candidates for term in each.terms)
    weights = {term: _rarity(term, holding[term], len(candidates)) for term in stems(question)}
    scores = [each.weight * sum(weights[term] for term in each.terms & weights.keys()) for each in candidates]
    if max(scores, default=0) < thresholds.FOCUS_COVERED * sum(weights.values()):
        return []
    matching = [place for place, score in enumerate(scores) if score]
    fine = {place: scores[place] - thresholds.FOCUS_LENGTH_COST * len(candidates[place].terms) for place in matching}
    ranked = sorted(matching, key=lambda place: (-fine[place], place))
    ranked = [place for place in ranked if scores[place] >= thresholds.FOCUS_FAINT * scores[ranked[0]]]
    many = min(usual, len(ranked))
    alike = thresholds.FOCUS_ALIKE if all(each.weight == 1 for each in candidates) else thresholds.FOCUS_ALIKE_FOUND
    while many < min(thresholds.FOCUS_MOST, len(ranked)) and scores[ranked[many]] >= alike * scores[ranked[many - 1]]:
        many += 1
    return ranked[:many]


def _rarity(term: str, holding: int, of: int) -> float:
    """Return how rare a term is among the candidates, as BM25 weighs it; a short word counts less."""
    rare = math.log(1 + (of - holding + 0.5) / (holding + 0.5))
    is_short = len(term) <= thresholds.FOCUS_SHORT_LETTERS and term.isalpha() and term.islower()
    return rare * thresholds.FOCUS_SHORT_PART if is_short else rare


def _refers(candidates: Sequence[_Candidate], place: int, passages: Sequence[Passage]) -> bool:
    """Test if a candidate begins with a pronoun, behind another one of its passage."""
    each, before = candidates[place], candidates[place - 1]
    return each.passage == before.passage and _REFERRING.match(passages[each.passage].text, each.start) is not None


def _runs(chosen: Sequence[int], candidates: Sequence[_Candidate], passages: Sequence[Passage]) -> Iterator[Passage]:
    """Yield a passage for each run of neighbouring candidates of one passage."""
    at = 0
    while at < len(chosen):
        last = at
        while last + 1 < len(chosen) and _neighbours(candidates, chosen[last], chosen[last + 1]):
            last += 1
        first, end = candidates[chosen[at]], candidates[chosen[last]].end
        whole = passages[first.passage]
        yield replace(whole, start=whole.start + first.start, text=whole.text[first.start : end])
        at = last + 1


def _neighbours(candidates: Sequence[_Candidate], one: int, other: int) -> bool:
    return other == one + 1 and candidates[one].passage == candidates[other].passage
