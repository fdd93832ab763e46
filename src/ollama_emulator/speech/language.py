"""Compose texts from sentences of the prompt, never a thought; every answer says that no model wrote it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ollama_emulator.speech.sources import Sentence, Sources, clauses, cut, words

NOTICE = "[emulator, not a model]"
_ANSWERS = (
    "answer",
    "text",
    "response",
    "reply",
    "content",
    "partial",
    "synthesis",
    "weave",
    "message",
    "summary",
    "report",
)
_QUERIES = ("query", "question", "sub_query", "subquery", "search")
#: A question of fewer words has too few for different parts: they are numbered.
_FEW = 6
_NUMBERED = re.compile(r"q\d+")
_ORDERED = re.compile(r"[a-z]\d?_(?=.)")


def plain_name(name: str) -> str:
    """Return a property's name in small letters, without the prefix that only sorts it (`b_quote` becomes `quote`)."""
    return _ORDERED.sub("", name, count=1).lower()


def answer(sources: Sources, longest: int | None = None, at: int = 0) -> str:
    """Return the notice, then one to three sentences near to the question, as many as `longest` characters allow.

    `at` varies the choice of sentences.
    """
    ranked = sources.ranking
    parts = len(clauses(sources.question_line))
    many = min(3, max(1 + sources.number("answer", at) % 3, parts + 1 if parts > 1 else 0))
    text = NOTICE
    for sentence in _rotate(ranked, at)[:many]:
        longer = f"{text} {sentence.text}"
        if longest is not None and len(longer) > longest:
            break
        text = longer
    if text == NOTICE and ranked:
        text = cut(f"{NOTICE} {_rotate(ranked, at)[0].text}", longest)
    return cut(text, longest)


def query(sources: Sources, longest: int | None, at: int) -> str:
    """Return the variant `at` of the question: its clauses, then the whole, then questions about some of its words.

    No two of the first few variants have the same words.
    """
    parts = clauses(sources.question_line)
    variants = [*parts, sources.question_line] if len(parts) > 1 else [sources.question_line]
    if at < len(variants):
        return cut(variants[at], longest)
    found = list(dict.fromkeys(words(sources.question_line)))
    turn = at % len(found) if found else 0
    some = [*found[turn:], *found[:turn]][: max(1, 2 * len(found) // 3)]
    if len(found) < _FEW:
        some.append(str(at + 1))
    return cut(f"{' '.join(some)}?", longest)


def asks(name: str) -> bool:
    """Return whether a property of this name holds a question: a query, or a numbered one (`q1`)."""
    plain = plain_name(name)
    return plain in _QUERIES or plain.endswith("_query") or bool(_NUMBERED.fullmatch(plain))


def line(sources: Sources, longest: int | None, at: int) -> str:
    """Return one sentence near to the question, at most `longest` characters; `at` chooses it."""
    ranked = sources.ranking
    return cut(_rotate(ranked, at)[0].text, longest) if ranked else cut(sources.question_line, longest)


def quotable(sources: Sources, allowed: frozenset[int] | None) -> Sequence[Sentence]:
    """Return the sentences of the evidence, nearest to the question first; `allowed` limits them to some blocks."""
    if not sources.evidence:
        return ()
    if allowed is None or allowed.issuperset(sources.blocks):
        return sources.ranking
    return [sentence for sentence in sources.ranking if sentence.source in allowed]


def text_for(name: str, sources: Sources, longest: int | None, at: int) -> str:
    """Return a text for a string property by its name; `at` is the index of its item in an array."""
    plain = plain_name(name)
    if asks(name):
        return query(sources, longest, at)
    if plain in _ANSWERS or plain.endswith(("_answer", "_text")):
        return answer(sources, longest, at)
    if plain.endswith("quote"):
        found = quotable(sources, None)
        return cut(_rotate(found, at)[0].text, longest) if found else ""
    return line(sources, longest, at)


def _rotate(ranked: Sequence[Sentence], at: int) -> Sequence[Sentence]:
    """Return the sentences rotated to begin with the one at `at`, counted round."""
    turn = at % len(ranked) if ranked else 0
    return [*ranked[turn:], *ranked[:turn]] if turn else ranked
