"""An index of the sentences of evidence by their stems, built once and searched for each sentence of an answer."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from batos.gate import languages, thresholds
from batos.gate.languages import stems
from batos.memory.evidence import Evidence
from batos.memory.segmentation import line_of, sentence_spans
from batos.memory.text_units import TableHeads
from batos.protocol.evidence_documents import CitationDocument

#: The document number of what was said in the conversation: its turns and summaries are evidence, but no document.
CONVERSATION = 0
#: Ends of lines within a sentence from which on it is none: prose that is wrapped has fewer.
MANY_LINES = 4
_LINE = re.compile(r"[^\s][^\n]*")
_PRONOUN = re.compile(
    r"(?:it|its|they|their|he|his|she|her|this|these|that|those|such|er|sie|es|dies|diese[rs]?|sein|seine|ihre?|dabei|il|ils"
    r"|elle|elles|ce|cela|ces|cette|son|sa|leurs?|esto|este|esta|estos|ellos|ellas|su|sus|questo|questa|essi|suo|sua|isso|ele"
    r"|eles|ela|het|deze|dit|zij|hij)\b|(?:これ|それ|この|その|彼|这|它|他|她|该|هو |هي |وهو |وهي |هذا |هذه )",
    re.IGNORECASE,
)
_HIRAGANA = re.compile("[\u3041-\u309f]+")


@dataclass(frozen=True, slots=True)
class Citation:
    """A sentence of the evidence, word for word: the number of its document, and its place in the file in characters.

    Where it carries a `sentence` of an answer, `score` tells how much of that one it has, from 0 to 1.
    """

    document: int
    start: int
    end: int
    quote: str
    sentence: str = ""
    score: float = 1.0

    def with_score(self, score: float) -> Citation:
        """Return the sentence with how much of an answer's sentence it has."""
        return replace(self, score=round(min(1.0, score), 3))

    def as_dict(self) -> CitationDocument:
        """Return the citation as a voice shows it."""
        return CitationDocument(
            document=self.document,
            span=[self.start, self.end],
            quote=self.quote,
            sentence=self.sentence,
            score=self.score,
        )


class EvidenceIndex:
    """The sentences of evidence, and the places of each stem among them; rows of a table have the stems of its head."""

    def __init__(self, evidence: Evidence, said: str = "") -> None:
        """Split and index all passages, and the turns, the summaries and what else was `said` as one text."""
        self.evidence = evidence
        self.sentences: list[Citation] = []
        self.stems: list[frozenset[str]] = []
        #: The place of each sentence's document among all of them.
        self.document_of: list[int] = []
        #: The places of sentences that begin with a pronoun, behind another of their document.
        self.pronouns: set[int] = set()
        #: The language of each document; None where it is not clear: of a table, of code.
        self.own_languages: list[str | None] = []
        self._first_of_line: dict[str, int] = {}
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._documents: defaultdict[str, list[int]] = defaultdict(list)
        texts = list(_texts(evidence, said))
        self.language = languages.guess("\n".join(text[:400] for _, _, text, _ in texts))
        for document, begin, text, head in texts:
            self._add(document, begin, text, head)

    def _add(self, document: int, begin: int, text: str, head: str) -> None:
        place = len(self.own_languages)
        self.own_languages.append(languages.guess(text))
        language = self.own_languages[place] or self.language
        held: set[str] = set()
        tables = TableHeads(text, head)
        for start, end in evidence_spans(text):
            quote = text[start:end]
            above = tables.above(start)
            found = stems(f"{above}\n{quote}" if above else quote, language)
            at = len(self.sentences)
            self.sentences.append(Citation(document, begin + start, begin + end, quote))
            self.stems.append(found)
            self.document_of.append(place)
            if held and _PRONOUN.match(quote):
                self.pronouns.add(at)
            self._first_of_line.setdefault(line_of(quote), at)
            for stem in found:
                self._places[stem].append(at)
            held |= found
        for stem in held:
            self._documents[stem].append(place)

    def language_of(self, sentence: int) -> str | None:
        """Return the language of a sentence's document by its English name, else that of all; None if none is clear."""
        return self.own_languages[self.document_of[sentence]] or self.language

    def has(self, stem: str) -> bool:
        """Test if any sentence has a stem."""
        return stem in self._places

    def with_stem(self, stem: str) -> list[int]:
        """Return the places of the sentences of documents that have a stem."""
        return [at for at in self._places.get(stem, ()) if self.sentences[at].document != CONVERSATION]

    def weight(self, stem: str) -> float:
        """Return how much a stem says: the rarer among the sentences, the more; most if none has it."""
        holding = len(self._places.get(stem, ()))
        everyone = max(thresholds.LEAST_SENTENCES, len(self.sentences))
        weight = math.log(1 + (everyone - holding + 0.5) / (holding + 0.5))
        return weight * thresholds.HIRAGANA_PART if _HIRAGANA.fullmatch(stem) else weight

    def weigh(self, said: Set[str]) -> float:
        """Return the sum of the weights of stems."""
        return sum(map(self.weight, sorted(said)))

    def hits(self, said: Set[str]) -> dict[int, float]:
        """Return the weight of the stems that each sentence has of these, by its place in `sentences`."""
        return self._sum(said, self._places)

    def context_hits(self, said: Set[str]) -> dict[int, float]:
        """Return the same, with a part of the words of the sentence before where a sentence begins with a pronoun."""
        found = self.hits(said)
        for at in self.pronouns.intersection(place + 1 for place in list(found)):
            before = self.weigh((said & self.stems[at - 1]) - self.stems[at])
            found[at] = found.get(at, 0.0) + thresholds.PRONOUN_PART * before
        return found

    def document_hits(self, said: Set[str]) -> dict[int, float]:
        """Return the weight of the stems that each document has of these, by its place."""
        return self._sum(said, self._documents)

    def _sum(self, said: Set[str], places: dict[str, list[int]]) -> dict[int, float]:
        found: defaultdict[int, float] = defaultdict(float)
        for stem in sorted(said):  # the order of a set is not the same in each process, and sums of floats tell
            weight = self.weight(stem)
            for at in places.get(stem, ()):
                found[at] += weight
        return found

    def copy_of(self, text: str) -> int | None:
        """Return the place of the first sentence that has the same words in the same order, or all of them in a row
        with others around them; None if there is none. A first word such as `Because` may be before them.
        """
        line = line_of(text)
        if not line.strip():
            return None
        whole = self._first_of_line.get(line)
        if whole is not None:
            return whole
        for run in (line, f" {line.strip().partition(' ')[2]} "):
            if run.count(" ") > thresholds.COPIED_WORDS:
                found = next((at for each, at in self._first_of_line.items() if run in each), None)
                if found is not None:
                    return found
        return None

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Return the scripts that the evidence is mainly written in."""
        return languages.main_scripts("\n".join(each.quote for each in self.sentences))


def evidence_spans(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence of a text; one of many lines is a table, code or a chat, cut at lines.

    >>> len(evidence_spans("a,1\\nb,2\\nc,3\\nd,4\\ne,5"))
    5
    """
    found: list[tuple[int, int]] = []
    for start, end in sentence_spans(text):
        if text.count("\n", start, end) < MANY_LINES:
            found.append((start, end))
        else:
            found += [each.span() for each in _LINE.finditer(text, start, end)]
    return found


@lru_cache(maxsize=4)
def index_of(evidence: Evidence, said: str = "") -> EvidenceIndex:
    """Return the index of evidence; the parts of a mind are shown the same, and it is built once for them."""
    return EvidenceIndex(evidence, said)


def _texts(evidence: Evidence, also: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield number, place in its file, text and head of each passage, then the conversation."""
    for passage in evidence.passages:
        yield passage.number, passage.start, passage.text, passage.head
    turns = (f"{turn.question}\n\n{turn.answer}" for turn in evidence.turns)
    said = "\n\n".join(filter(None, (*(summary.text for summary in evidence.view), *turns, also)))
    if said:
        yield CONVERSATION, 0, said, ""
