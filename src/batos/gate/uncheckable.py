"""Recognise sentences of an answer that evidence can neither carry nor contradict: greetings, questions, advice."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Literal, TypeAlias

from batos.memory.segmentation import sentence_spans

#: The reason that a sentence is not checked. `language`: the answer is in a language that no document is in, and words
#: alone cannot compare the two.
Uncheckable: TypeAlias = Literal[
    "no_content",
    "code",
    "heading",
    "question",
    "greeting",
    "letter",
    "refusal",
    "offer",
    "nothing_found",
    "lead_in",
    "advice",
    "no_evidence",
    "language",
]

_PIECES: Mapping[str, Sequence[str]] = tomllib.loads(
    files(__package__).joinpath("uncheckable.toml").read_text(encoding="utf-8")
)


def _pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile("".join(_PIECES[name]), re.IGNORECASE | flags)


_QUESTION = re.compile(r"[?？؟;՞][\"'”’»)\]」』）*_]*\s*\Z")
_GREEK = re.compile("[\u0370-\u03ff]")
_HEADING = re.compile(r"\*{2}[^*\n]{1,80}\*{2}:?\s*\Z|__[^_\n]{1,80}__:?\s*\Z")
_LEAD_IN = re.compile(r"[:：]\s*\Z")

_GREETING = _pattern("greeting")
_INTERJECTION = _pattern("interjection")
_NOTHING_FOUND = _pattern("nothing_found")
_REFUSAL = _pattern("refusal")
_OFFER = _pattern("offer")
_ADVICE = _pattern("advice")

_FRAME = _pattern("frame")

#: Further forms of sentences, in the order in which they are looked for.
_MANNERS: tuple[tuple[Uncheckable, re.Pattern[str]], ...] = (
    ("nothing_found", _NOTHING_FOUND),
    ("refusal", _REFUSAL),
    ("offer", _OFFER),
    ("advice", _ADVICE),
    ("lead_in", _LEAD_IN),
)


def frame_length(sentence: str) -> int:
    """Return the length of the beginning of a sentence that only says that an answer or a text follows.

    >>> "The answer is: In 1961."[frame_length("The answer is: In 1961."):]
    'In 1961.'
    """
    found = _FRAME.match(sentence)
    return found.end() if found and found.end() < len(sentence) else 0


def is_question(sentence: str) -> bool:
    """Test if a sentence asks. A semicolon asks in Greek only."""
    return _QUESTION.search(sentence) is not None and (
        not sentence.rstrip().endswith(";") or bool(_GREEK.search(sentence))
    )


def declines(text: str) -> bool:
    """Test if a text says nothing but that nothing was found, or that it refuses."""
    said = [text[start:end] for start, end in sentence_spans(text)]
    return bool(said) and all(manner(each, each) in ("nothing_found", "refusal") for each in said)


def manner(sentence: str, line: str) -> Uncheckable | None:
    """Return the reason that a sentence is not one to check, by its form; None if it states something.

    `line` is the line or item that the sentence stands in, with its marks, which tells a heading.
    """
    if is_question(sentence):
        return "question"
    if line.lstrip().startswith("#") or _HEADING.fullmatch(sentence.strip()):
        return "heading"
    if _GREETING.match(sentence.lstrip(" *_\"'“«")) or _INTERJECTION.fullmatch(sentence.strip(" *_")):
        return "greeting"
    whole = line if line.strip().endswith(sentence.strip()) else sentence
    if is_form(whole) or is_form(sentence):
        return "letter"
    return next((reason for reason, pattern in _MANNERS if pattern.search(sentence)), None)


# -- the forms of a letter, and the requests for a text: neither states anything that evidence could carry


_FORM = _pattern("form", re.MULTILINE)
_ASKS_FOR_TEXT = _pattern("asks_for_text")


def without_forms(text: str) -> str:
    """Remove subject lines, salutations, closings with the name below, and placeholders on lines of their own.

    >>> without_forms("Dear Ms Lund,\\n\\nthe lamp burns.\\n\\nKind regards,\\nAnna").strip()
    'the lamp burns.'
    """
    return _FORM.sub("", text)


def is_form(text: str) -> bool:
    """Test if a sentence is nothing but such a line, or several of them."""
    return _FORM.match(text) is not None and not without_forms(text).strip()


def asks_for_text(question: str) -> bool:
    """Test if a question asks for a text of the model's own: a letter, a poem, a plan, other words for something."""
    return _ASKS_FOR_TEXT.search(question) is not None
