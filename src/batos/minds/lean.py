"""The lean form of a prompt, for small models: one line on the speaker, the text in focus, and the question last.

A line of a text cannot pass for one of the prompt's own labels: each sentence stands on one line, and one that begins
with a label gets a mark before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from batos.memory.evidence import Evidence, Passage
from batos.memory.focus import focus
from batos.memory.sentences import sentence_spans

#: The task behind the line that says who speaks: with a text, without one, and for what is done to a text.
FROM_TEXT = "Answer the question from the text in one sentence."
ALONE = "Answer in one to three sentences."
JOIN = "Answer the question from the text in one to three sentences."
CHOOSE = "Give the number of the answer in the text that answers the question best."
DIVIDE = "Split the question into two short questions."
REWRITE = "Change the text as asked, and write the whole text again."
FORGE = "Describe one small function that does again what this text did by hand, or say that there is none."
#: The question to which summaries of older turns are the answer.
EARLIER = "What did we say before?"
#: The task of a revision, behind the faults.
REVISE = "Answer the question again, without that."

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

#: Characters of a text in which nothing matches the question: its beginning is shown.
UNFOCUSED = 1_200

#: Characters of pinned texts that are shown beside what is in focus.
PINNED = 600

_YOU_ARE = "You are "
_LABEL = re.compile(r"\W*(?:text|question)\s*[:：]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """The evidence as one call is shown it: spans of passages, and the number of sentences that it is not shown."""

    passages: tuple[Passage, ...] = ()
    omitted: int = 0

    @property
    def lines(self) -> str:
        """Return the spans as a prompt shows them."""
        return "\n".join(
            _as_line(each.with_mark(each.text[start:end]))
            for each in self.passages
            for start, end in sentence_spans(each.text)
        )


def select(evidence: Evidence, query: str, most: int | None = None) -> ShownEvidence:
    """Return what a call with this query is shown: the sentences in focus, at most so many characters of them.

    Where no sentence has enough of the query's words in it, the beginning of the passages is shown, because a request
    such as "Summarise the report" names nothing in it.
    """
    if not query or not evidence.passages:
        return ShownEvidence()
    found = focus(evidence.passages, query)
    limit = UNFOCUSED if most is None else min(most, UNFOCUSED)
    chosen = found or _beginning(evidence.passages, limit)
    in_focus = {each.number for each in found}
    pinned = [each for each in evidence.passages if each.is_pinned and each.number not in in_focus]
    if pinned:
        shown = {each.number: each for each in (*chosen, *_beginning(pinned, PINNED))}
        chosen = tuple(shown[number] for number in sorted(shown))
    if most is not None:
        chosen = _beginning(chosen, most)
    all_of_them = sum(len(sentence_spans(each.text)) for each in evidence.passages)
    return ShownEvidence(chosen, all_of_them - sum(len(sentence_spans(each.text)) for each in chosen))


def _beginning(passages: Sequence[Passage], most: int) -> tuple[Passage, ...]:
    """Return whole sentences from the beginning, in so many characters together, or the first one."""
    kept: list[Passage] = []
    for passage in passages:
        ends = [end for _, end in sentence_spans(passage.text) if end <= most]
        if not ends:
            break
        kept.append(_head(passage, ends[-1]))
        most -= ends[-1]
        if ends[-1] < len(passage.text.rstrip()):
            break
    return tuple(kept)


def _head(passage: Passage, end: int) -> Passage:
    return replace(passage, text=passage.text[:end])


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
