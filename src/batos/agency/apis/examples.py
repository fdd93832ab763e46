"""Examples of JSON as descriptions and models write them: with comments, with dots for more, with types for values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from batos.agency.apis.api_operations import Json

#: Turns a form with types for values into JSON, step by step.
_TYPED: Final = (
    (r"<[^<>\n]{1,80}>", '"text"'),
    (r"(?<=[\w\"'\]}])[ \t]*\n\s*(?=[\"'\w])", ",\n"),
    (r"([{,]\s*)([A-Za-z_][\w-]*)\??\s*:", r'\1"\2":'),
    (r"(?i)(?<=[:\[])\s*(?:string|str|text|date|datetime|uuid|url)\b(?:\s*\|\s*null)?", ' "text"'),
    (r"(?i)(?<=[:\[])\s*(?:number|int|integer|float|double|long)\b(?:\s*\|\s*null)?", " 1"),
    (r"(?i)(?<=[:\[])\s*bool(?:ean)?\b(?:\s*\|\s*null)?", " true"),
    (r"(?<=:)\s*(?=[,}])", " null"),
    (r'(\{[^{}]*\}|"text"|\b1|true)\[\]', r"[\1]"),
)


def inline_examples(text: str) -> Iterator[tuple[Json, str]]:
    """Yield the JSON objects, and lists of objects, within a sentence, each with its text."""
    begin = 0
    while match := re.compile(r"\{\s*\"|\[\s*\{").search(text, begin):
        value, end = _decode(text[match.start() :])
        begin = match.start() + max(1, end)
        if isinstance(value, dict | list) and value:
            yield value, text[match.start() : begin]


def _json(text: str) -> Json:
    """Return the JSON of an example: comments and dots that stand for more are left out; None where it is none."""
    plain = re.sub(r"(?m)(?<!:)//.*$|(?<=[\s,{\[])#.*$", "", text)
    plain = re.sub(r",?\s*(?:\.\.\.|…)\s*(?=[}\],]|$)|(?<=[\[{,])\s*(?:\.\.\.|…)", "", plain)
    plain = re.sub(r",(\s*[}\]])", r"\1", plain)
    return _decode(text.strip())[0] or _decode(plain.strip())[0] or _decode(_quoted_json(plain.strip()))[0]


def _quoted_json(text: str) -> str:
    """Return JSON for a form in which keys are bare and types stand for values, as programmers write them."""
    for pattern, put in _TYPED:
        text = re.sub(pattern, put, text)
    return text


def read_example(text: str) -> Json:
    """Return the JSON object or list that a text holds, as a model writes one; None where there is none."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=len(text))
    return _json(text[start:])


def _decode(text: str) -> tuple[Json, int]:
    """Return the JSON that a text begins with, and where it ends; None and 0 where it is none."""
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0
    return value, end


def value_in(replies: Sequence[Json], name: str) -> str:
    """Return the value that an example of a reply has under a parameter's name, or in an only object below it."""
    for each in replies:
        inner = each.get(name) if isinstance(each, dict) else None
        if isinstance(inner, str | int) and not isinstance(inner, bool):
            return str(inner)
        if isinstance(each, dict) and (
            found := value_in([one for one in each.values() if isinstance(one, dict)], name)
        ):
            return found
    return ""
