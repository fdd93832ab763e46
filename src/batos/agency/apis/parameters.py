"""Parameters of an operation as prose, items and tables name them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from batos.agency.apis.api_operations import Parameter

_IDENTIFIER: Final = r"[A-Za-z][\w.\[\]-]{0,40}"
_REQUIRED: Final = re.compile(r"(?i)\b(?:required|mandatory|must|obligatory|need(?:s|ed)?|always)\b")
_NOT_REQUIRED: Final = re.compile(
    r"(?i)\b(?:optional\w*|default\w*|may|can|if (?:you|given|left|set|absent|missing)|not required|no)\b"
)
_KINDS: Final = (
    ("boolean", re.compile(r"(?i)\bbool(?:ean)?\b|\btrue\b|\bfalse\b")),
    (
        "integer",
        re.compile(r"(?i)\bint(?:eger)?s?\b|\bhow many\b|\bwhole number\b|\bcount\b|\bnumber of\b|page number"),
    ),
    ("number", re.compile(r"(?i)\bfloat\b|\bdecimal\b|\blatitude\b|\blongitude\b|\bnumber\b|\bdegrees\b")),
)
_CHOICES: Final = re.compile(
    r"(?i)(?:one of|either|values?(?: are)?|choose|can be|may be|is|be|:|allowed|\()\s*"
    r"((?:[`'\"][\w.+-]+[`'\"](?:\s*\([^)]*\))?(?:\s*,\s*(?:or\s+)?|\s+or\s+|\s*/\s*|\s*\|\s*|\s+and\s+)?){2,})"
)
_ITEM: Final = re.compile(
    rf"^[`*'\"]*({_IDENTIFIER})[`*'\"]*(?:\s*=\s*[`<]?[\w.]+[`>]?)?[`*]*\s*(\([^)]*\))?\s*(?:[:=–—-]+|\.|$|is\b|(?=\())\s*(.*)$",
    re.DOTALL,
)
_CODE: Final = re.compile(rf"[`\"']({_IDENTIFIER})(?:=([^`\"'\s]*))?[`\"']")
_NAMED: Final = re.compile(rf"(?i)\b(?:query )?(?:parameters?|argument)s?\s+(?:called|named)\s+({_IDENTIFIER})\b")
#: Words in code that are no parameters: types, methods, media types, headers.
_NOT_NAMES: Final = re.compile(
    r"(?i)get|post|put|delete|patch|json|xml|csv|true|false|null|string|integer|number|boolean|x-[\w-]+"
    r"|authorization|accept|content-type|user-agent|retry-after|https?|utf-8"
)


def listed_parameters(text: str, *, is_row: bool) -> list[Parameter]:
    """Return the parameter of an item or a row of a table; [] where it names none."""
    if is_row:
        name, *cells = text.split("\t")
        name = name.strip("`*' \"")
        if not re.fullmatch(_IDENTIFIER, name) or _NOT_NAMES.fullmatch(name):
            return []
        return [_parameter(name, " ".join(map(_cell, cells)))]
    match = _ITEM.match(text)
    if match is None or _NOT_NAMES.fullmatch(match[1]) or _is_sentence(text, match):
        return named_parameters(text)
    return [_parameter(match[1], f"{match[2] or ''} {match[3]}")]


def _is_sentence(text: str, item: re.Match[str]) -> bool:
    """Test if an item begins with a word of a sentence, and not with a name."""
    return text[0] not in "`*'\"" and " " in text.partition(":")[0].strip() and not item[2]


def _cell(text: str) -> str:
    """Return what a cell of a table says, where it stands under a head as `required`."""
    if re.fullmatch(r"(?i)yes|required|true|✓", text):
        return "required"
    return "optional" if re.fullmatch(r"(?i)no|optional|false|-", text) else text


def named_parameters(text: str) -> list[Parameter]:
    """Return the parameters that a sentence names: words in code, or behind the word `parameter`."""
    found: list[Parameter] = []
    spans = [(match.start(), match.end(), match[1], match[2] or "") for match in _CODE.finditer(text)]
    if not spans:
        spans = [(match.start(), match.end(), match[1], "") for match in _NAMED.finditer(text)]
    values = {value for match in _CHOICES.finditer(text) for value in re.findall(r"[`'\"]([\w.+-]+)[`'\"]", match[1])}
    for at, (begin, end, name, example) in enumerate(spans):
        if (
            name in values
            or _NOT_NAMES.fullmatch(name)
            or re.search(r"(?i)(?:=|like|such as|default(?:s to)?|e\.g\.|example,?)\s*$", text[:begin])
        ):
            continue
        until = spans[at + 1][0] if at + 1 < len(spans) and spans[at + 1][2] not in values else len(text)
        before = re.split(r"[,;.]| and ", text[:begin])[-1]
        told = f"{before} {text[end:until]}" if len(spans) > 1 else f"{text[:begin]} {text[end:]}"
        found.append(replace(_parameter(name, told), example="" if example[:1] in "{<" else example))
    return found


def settle(one: Parameter, other: Parameter) -> Parameter:
    """Return what two places say of one parameter: the first, with what only the other knows."""
    return replace(
        one, kind=one.kind if one.kind != "string" else other.kind, choices=one.choices or other.choices,
        is_required=one.is_required or other.is_required, example=one.example or other.example,
        text=one.text or other.text,
    )  # fmt: skip


def _parameter(name: str, told: str) -> Parameter:
    """Return the parameter of a name and the words about it."""
    words = " ".join(told.replace("\t", " ").split()).strip(" -:–—")
    required, optional = _REQUIRED.search(words), _NOT_REQUIRED.search(words)
    is_required = required is not None and (optional is None or required.start() < optional.start())
    plain = "" if re.match(r"(?i)(?:the )?parameters?\b", words) else re.sub(r"[`*]", "", words)
    return Parameter(name, "query", _kind(words), is_required, tuple(_choices(words)), _example(words), plain[:120])


def _kind(words: str) -> str:
    return next((kind for kind, pattern in _KINDS if pattern.search(words)), "string")


def _choices(words: str) -> Iterator[str]:
    """Yield the values of which a parameter takes one."""
    match = _CHOICES.search(words)
    if match is not None:
        yield from dict.fromkeys(re.findall(r"[`'\"]([\w.+-]+)[`'\"]", match[1]))


def _example(words: str) -> str:
    match = re.search(r"(?i)(?:e\.g\.|for example|such as|like|example:?)\s*,?\s*[`'\"]([^`'\"]{1,60})[`'\"]", words)
    return match[1] if match else ""


def with_kind(parameter: Parameter) -> Parameter:
    """Return a parameter of which the query shows an example: the example tells its kind."""
    if parameter.kind == "string" and re.fullmatch(r"-?\d+", parameter.example):
        return replace(parameter, kind="integer")
    if parameter.kind == "string" and re.fullmatch(r"-?\d+\.\d+", parameter.example):
        return replace(parameter, kind="number")
    return parameter
