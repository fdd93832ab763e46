"""Find the fault of a division that is valid JSON and yet useless: computed from its texts, in any language.

A small model copies the names and words that it was shown, writes one question several times, or none at all. No list
of words is needed to see this: texts are compared by their terms, and a question is known by its mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

from batos.gate.texts import languages
from batos.memory.terms import terms, words

#: Texts whose terms agree to this share (Jaccard) are alike.
ALIKE: Final = 0.85
#: So many words in a row that also stand in a request are copied from it.
COPIED_RUN: Final = 5
#: A text of so many terms at least has a share of different ones that is no less than this, or it repeats itself.
LEAST_TERMS, LEAST_DIFFERENT = 8, 0.4
#: Letters of a word that are compared where its ending may differ.
STEM: Final = 4

#: The marks of a question: Latin, Arabic, Armenian, Ethiopic, Limbu, Coptic, Vai, Bamum, Chinese; Greek in two forms.
_MARKS: Final = frozenset(
    "?\u061f\u2047\u2048\u2049\u203d\u00bf\u055e\u1367\u1945\u2cfa\u2cfb\ua60f\ua6f7\uff1f\ufe56\ufe16\u037e"
)
_GREEK_END: Final = ";"


def fault(texts: Sequence[str], question: str, request: str = "", labels: Iterable[str] = ()) -> str:
    """Return the reason why texts do not divide a question, as a short sentence; "" if they do.

    `request` is the text that asked for them, without the question, and `labels` are names that were shown with it. The
    order of the texts changes nothing.
    """
    named = {_plain_words(label) for label in labels} - {""}
    for text in sorted(texts):
        found = _own_fault(text, question, request, named)
        if found:
            return found
    if any(alike(one, other) for one, other in combinations(texts, 2)):
        return "two parts are alike"
    return ""


def alike(one: str, other: str) -> bool:
    """Test if two texts have nearly the same terms, in any order and whatever their case and marks."""
    first, second = frozenset(terms(one)), frozenset(terms(other))
    return len(first & second) >= ALIKE * len(first | second)


def asks(text: str) -> bool:
    """Test if a text has the mark of a question, of any script."""
    return not _MARKS.isdisjoint(text) or text.rstrip().endswith(_GREEK_END)


def repeats(text: str) -> bool:
    """Test if a text says the same over and over: few of its terms are different ones."""
    found = list(terms(text))
    return len(found) >= LEAST_TERMS and len(set(found)) < LEAST_DIFFERENT * len(found)


def copies(text: str, request: str, question: str) -> bool:
    """Test if a text repeats a run of a request's words that is not in the question."""
    ours = _runs(request) - _runs(question)
    return not ours.isdisjoint(_runs(text))


def echoes(text: str, question: str) -> bool:
    """Test if a text that should answer a question says the question again.

    >>> echoes("When was the lamp lit?", "When was the lamp lit?"), echoes("In 1887.", "When was the lamp lit?")
    (True, False)
    """
    return asks(question) and alike(text, question)


def bears_on(text: str, question: str) -> bool:
    """Test if a text has a word of the question that is no small word, as far as its first letters.

    A question of small words alone is borne on by every text.

    >>> bears_on("Who built the mill?", "How is the wick trimmed?")
    False
    """
    wanted = _stems(question)
    return not wanted or not wanted.isdisjoint(_stems(text))


def common_words(text: str, question: str) -> int:
    """Count the words of a question, as far as their first letters, that a text has too, without small words.

    >>> common_words("Within what time?", "Who repairs the heating, and within what time?")
    1
    """
    return len(_stems(text) & _stems(question))


def _stems(text: str) -> set[str]:
    return {term[:STEM] for term in terms(text) if term not in languages.SMALL_WORDS}


def _own_fault(text: str, question: str, request: str, labels: set[str]) -> str:
    folded = _plain_words(text)
    if not folded:
        return "a part is empty"
    if folded in labels or any(set(folded.split()) <= set(label.split()) for label in labels):
        return "a part is only a name from the request"
    if copies(text, request, question):
        return "a part copies the request"
    if repeats(text):
        return "a part repeats itself"
    if asks(question) and not asks(text):
        return "a part is no question"
    return ""


def _plain_words(text: str) -> str:
    return " ".join(words(text))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return every run of `COPIED_RUN` terms."""
    found = list(terms(text))
    return {tuple(found[at : at + COPIED_RUN]) for at in range(len(found) - COPIED_RUN + 1)}
