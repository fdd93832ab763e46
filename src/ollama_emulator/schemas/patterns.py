"""Strings for a pattern or a length: a fitting word of the prompt, else the plainest string that fits."""

from __future__ import annotations

from typing import Any

from ollama_emulator.remembering import short
from ollama_emulator.schemas import compiled_schema, matching
from ollama_emulator.speech.sources import Sources, cut

LONGEST = 100_000  # longest string that is made up, in characters
_TRIED = 200  # words of the prompt that are tried against a pattern
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.,:;!?/"


def match(pattern: str, sources: Sources, fewest: int, longest: int | None, at: int) -> str:
    """Return a string that the pattern matches: a word of the evidence, chosen by `at`, else the plainest string.

    `fewest` and `longest` bound its length in characters; a None for `longest` sets no bound.
    """
    spans = [word for sentence in sources.ranking[:8] for word in sentence.text.split()]
    sized = [span for span in spans if _fits_length(span, fewest, longest)]
    fitting = [span for span in sized[:_TRIED] if matching.found(pattern, span)]
    if fitting:
        return fitting[at % len(fitting)]
    plainest = _shortest_match(pattern, fewest)
    if not _fits_length(plainest, fewest, longest) and not pattern.startswith("^"):
        return lengthen(plainest, sources, fewest, longest)
    return plainest


def lengthen(text: str, sources: Sources, fewest: int, longest: int | None) -> str:
    """Return the text, lengthened with words of the prompt to `fewest` characters, and cut at `longest`."""
    if len(text) >= fewest:
        return text
    supply = " ".join([sentence.text for sentence in sources.ranking]) or sources.question_line or "-"
    while len(text) < fewest:
        text = f"{text} {supply}" if text else supply
    whole = cut(text, longest)
    return whole if len(whole) >= fewest else text[: longest if longest is not None else fewest].replace("\n", " ")


def _fits_length(text: str, fewest: int, longest: int | None) -> bool:
    return fewest <= len(text) and (longest is None or len(text) <= longest)


@short(256, 2000)
def _shortest_match(pattern: str, fewest: int) -> str:
    """Return the shortest string of plain letters that a pattern matches; a repeat is stretched to reach `fewest`."""
    parsed = matching.parse(pattern)
    short = _write(parsed, 0)
    if len(short) >= fewest:
        return short
    for extra in (fewest - len(short), fewest):
        text = _write(parsed, extra)
        if len(text) >= fewest:
            return text
    return short


def _write(parsed: Any, extra: int) -> str:
    """Return a string for a parse tree; the first repeat that can take `extra` more turns gets them."""
    out = []
    left = extra
    for kind, value in parsed:
        if str(kind) in matching.REPEATS:
            fewest, most, inner = value
            turns = min(fewest + left, int(most)) if left else fewest
            left -= turns - fewest
            written = _write(inner, 0)
            if len(written) * turns > LONGEST:
                raise compiled_schema.excessive(f"text of {len(written) * turns} characters")
            out.append(written * turns)
        else:
            out.append(_element_text(str(kind), value))
    return "".join(out)


def _element_text(kind: str, value: Any) -> str:
    """Return a string for one element of a parse tree."""
    if kind == "LITERAL":
        return chr(value)
    if kind == "NOT_LITERAL":
        return "b" if value == ord("a") else "a"
    if kind == "ANY":
        return "a"
    if kind == "IN":
        return _letter_of_class(value)
    if kind == "BRANCH":
        return min((_write(part, 0) for part in value[1]), key=len)
    if kind == "SUBPATTERN":
        return _write(value[3], 0)
    if kind == "ATOMIC_GROUP":
        return _write(value, 0)
    return ""  # anchors and lookarounds match no characters


def _letter_of_class(items: Any) -> str:
    """Return a character of a parsed class, the plainest first."""
    allowed = {character for character in _PLAIN if matching.in_class(items, character)}
    for character in _PLAIN:
        if character in allowed:
            return character
    for kind, value in items:
        if str(kind) == "LITERAL":
            return chr(value)
        if str(kind) == "RANGE":
            return chr(value[0])
    return "a"
