"""The lean form of a prompt, for small models: one line on the speaker, the text, and the question last.

The text is shown whole, line by line as its file has it. Where a question asks for one fact, the sentences in focus are
shown instead, which the models that get this form were measured to gain by. A line of a text cannot pass for one of the
prompt's own labels: one that begins with a label gets a mark before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from batos.gate import unfounded
from batos.memory.evidence import Evidence, Passage, rank
from batos.memory.search.recall import documents_of, focus
from batos.memory.segmentation import sentence_spans
from batos.minds.question_kind import kind_of

#: The task behind the line that says who speaks: with sentences in focus, with whole texts, and for a text that is
#: joined or changed. Only a question of one fact, which prescribes no form, is told how long its answer may be.
FROM_TEXT = "Answer the question from the text in one sentence."
FROM_WHOLE = "Do what is asked, from the text alone. If the text does not say it, say so."
JOIN = "Answer the question from the text."
CHOOSE = "Give the number of the answer in the text that answers the question best."
DIVIDE = "Split the question into two short questions."
REWRITE = "Change the text as asked, and write the whole text again."
FORGE = "Describe one small function that does again what this text did by hand, or say that there is none."
#: All lines of orders.
LINES = (FROM_TEXT, FROM_WHOLE, JOIN, CHOOSE, DIVIDE, REWRITE, FORGE)
#: The question to which summaries of older turns are the answer.
EARLIER = "What did we say before?"

#: A question that is to be divided, and examples of it. No reply may have five words in a row of theirs, so they are
#: about things that are seldom asked about.
DIVIDED = "Question: {}"
DIVISIONS = tuple(
    (DIVIDED.format(asked), json.dumps({"q1": first, "q2": second}))
    for asked, first, second in (
        (
            "Who built the old mill and what was it used for?",
            "Who built the old mill?",
            "What was the old mill used for?",
        ),
        (
            "When does the ferry leave, and what does a ride on it cost?",
            "When does the ferry leave?",
            "What does a ride on the ferry cost?",
        ),
        (
            "Which birds nest on the cliff and why do they come there?",
            "Which birds nest on the cliff?",
            "Why do the birds come to the cliff?",
        ),
    )
)

#: Characters of whole texts that a lean prompt shows at most, unless its window has less room: a small model reads no
#: more with use.
WHOLE = 12_000

#: Characters of pinned texts that are shown beside what is in focus.
PINNED = 600

_YOU_ARE = "You are "
_SECOND_NAME = re.compile(r", and [A-Z]{2,}\b[^,.]*, ")
_NAMED = re.compile(r"You are [^,.]*\b[A-Z]{2,}\b[^,.]*, (.+)", re.DOTALL)
_LABEL = re.compile(r"\W*(?:text|question)\s*[:：]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """The evidence as one call is shown it: passages or spans of them, and the number of sentences that are left out.

    `focused` says that sentences were chosen; else the passages are shown as their files have them.
    """

    passages: tuple[Passage, ...] = ()
    omitted: int = 0
    focused: bool = False

    @property
    def lines(self) -> str:
        """Return the texts as a prompt shows them."""
        if not self.focused:
            shown = documents_of(self.passages)
            return "\n\n".join(f"{each.title}:\n{whole_lines(each.text)}" for each in shown)
        return "\n".join(line for each in self.passages for line in _focus_lines(each))


def select(evidence: Evidence, query: str, most: int | None = None, usual: int | None = None) -> ShownEvidence:
    """Return what a call with this query is shown, at most so many characters of it.

    A question of one fact is shown the sentences in focus (`usual` of them, or as many as was measured to be best),
    any other one whole passages: all of them, or the best matches that fit.
    """
    if not query or not evidence.passages:
        return ShownEvidence()
    found = focus(evidence.passages, query, usual) if kind_of(query) == "fact" else ()
    limit = WHOLE if most is None else min(most, WHOLE)
    chosen = _add_pinned(found, evidence) if found else _whole(evidence.passages, query, limit)
    if found and most is not None:
        chosen = _beginning(chosen, most)
    all_of_them = sum(len(sentence_spans(each.text)) for each in evidence.passages)
    shown = sum(len(sentence_spans(each.text)) for each in chosen)
    return ShownEvidence(chosen, all_of_them - shown, bool(found))


def _add_pinned(found: Sequence[Passage], evidence: Evidence) -> tuple[Passage, ...]:
    """Return what is in focus, and the beginnings of pinned texts of which nothing is."""
    in_focus = {each.number for each in found}
    pinned = [each for each in evidence.passages if each.is_pinned and each.number not in in_focus]
    shown = (*found, *_beginning(pinned, PINNED))
    return tuple(sorted(shown, key=lambda each: (each.number, each.start)))


def _whole(passages: Sequence[Passage], query: str, most: int) -> tuple[Passage, ...]:
    """Return whole passages of at most so many characters, pinned ones and the best matches first, in their order."""
    ranked = sorted(rank(passages, query), key=lambda each: not each.is_pinned)
    kept = set[int]()
    for each in ranked:
        if len(each.text) <= most:
            kept.add(each.number)
            most -= len(each.text)
    return tuple(each for each in passages if each.number in kept) or _beginning(passages, most)


def _beginning(passages: Sequence[Passage], most: int) -> tuple[Passage, ...]:
    """Return whole sentences from the beginning, in so many characters together, or the first one."""
    kept: list[Passage] = []
    for passage in passages:
        ends = [end for _, end in sentence_spans(passage.text) if end <= most]
        if not ends:
            break
        kept.append(replace(passage, text=passage.text[: ends[-1]]))
        most -= ends[-1]
        if ends[-1] < len(passage.text.rstrip()):
            break
    return tuple(kept)


def _focus_lines(passage: Passage) -> Iterator[str]:
    """Yield the sentences of a passage, below who said them when where that is known, or days are counted from it."""
    if passage.document and (passage.speaker or unfounded.names_relative_day(passage.text, spoken=False)):
        yield f"{_as_line(', '.join(filter(None, (passage.speaker, passage.day))))}:"
    for start, end in sentence_spans(passage.text):
        yield _as_line(passage.with_mark(passage.text[start:end]))


def whole_lines(text: str) -> str:
    """Return a text with its lines as they are, none of which can pass for a label of the prompt."""
    return "\n".join(f"> {line}" if _LABEL.match(line) else line for line in text.splitlines())


def text_lines(texts: Iterable[str]) -> str:
    """Return texts one sentence a line, none of which can pass for a label of the prompt."""
    return "\n".join(_as_line(text[start:end]) for text in texts for start, end in sentence_spans(text))


def _as_line(sentence: str) -> str:
    line = " ".join(sentence.split())
    return f"> {line}" if _LABEL.match(line) else line


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line.

    >>> first_sentence("You are BRICK. You build.")
    'You are BRICK.'
    """
    return next((" ".join(text[start:end].split()) for start, end in sentence_spans(text)), "")


def without_name(line: str) -> str:
    """Return a line on the speaker as a manner to speak in, without the name.

    >>> without_name("You are BRICK, logical and plain.")
    'Be logical and plain.'
    >>> without_name("You are ROBIN, warm and kind, and BRICK, logical and plain.")
    'Be warm and kind, and logical and plain.'
    """
    found = _NAMED.match(line)
    if found is None:
        return line
    manner = _SECOND_NAME.sub(", and ", found[1])
    return f"Be {'one ' if manner.startswith('who ') else ''}{manner}"


def line_of_two(first: str, second: str) -> str:
    """Return one line for two who speak: one sentence where both begin alike, as the shipped lines do.

    >>> line_of_two("You are ROBIN, warm and kind.", "You are BRICK, logical and plain.")
    'You are ROBIN, warm and kind, and BRICK, logical and plain.'
    """
    if first.startswith(_YOU_ARE) and second.startswith(_YOU_ARE):
        return f"{first.rstrip('.')}, and {second.removeprefix(_YOU_ARE)}"
    return f"{first} {second}".strip()


def user_message(text: str, end: str, *, asks: bool) -> str:
    """Return the message of a call: the text, then the question or the task; without a text that alone.

    >>> print(user_message("The lamp burns.", "Does it burn?", asks=True))
    Text:
    The lamp burns.
    <BLANKLINE>
    Question: Does it burn?
    """
    if not text:
        return end
    return f"Text:\n{text}\n\n{'Question: ' if asks else ''}{end}"
