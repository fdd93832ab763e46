"""Reads the description of an HTTP API by rule: operations, parameters, examples of replies, the header of a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from batos.agency.apis.api_operations import (
    MOST_OPERATIONS,
    ApiDescription,
    Json,
    Operation,
    Parameter,
    matches,
    variables,
)
from batos.agency.apis.blocks import CALLS, Block, blocks_of
from batos.agency.apis.examples import inline_examples, read_example, value_in
from batos.agency.apis.parameters import listed_parameters, named_parameters, settle, with_kind

#: The subject of the blocks of a section, by the words before them.
Mode: TypeAlias = Literal["", "parameters", "reply", "error"]

_ERROR: Final = re.compile(
    r"(?i)\berrors?\b|\bfail(?:s|ure|ed)?\b|\bunknown\b|not found|\binvalid\b|\b[45]\d\d\b|wrong"
)
_REPLY: Final = re.compile(
    r"(?i)\b(?:respon[ds]\w*|repl(?:y|ies)|returns?|answers?|result|output|sends? back|gives?|get back|gets back"
    r"|looks? like|you (?:get|see|receive)|example)\b"
)
_TAKES: Final = re.compile(
    r"(?i)\b(?:param(?:eter)?s?|arguments?|query(?: string)?|options?|filters?|pass|takes?|accepts?|add|set|give it"
    r"|supply|specif\w+|provide|with|narrow|require[sd]?|needs?|optional\w*)\b"
)
_HEADER: Final = re.compile(
    r"(?i)(?:header\w*[^.\n]{0,40}?|-H\s+)[`'\"]([A-Za-z][\w-]{1,40})\b"
    r"|[`'\"]([A-Za-z][\w-]{1,40})(?::[^`'\"]*)?[`'\"]\s+(?:http |request )?header"
)
_SECRET: Final = re.compile(r"(?i)key|token|auth|secret|credential")
#: Parameters that hold a secret: no argument fills them.
_SECRET_PARAMETER: Final = re.compile(r"(?i)(?:api|app|access|auth|client)?[_-]?(?:key|token|secret)|app_?id")
#: Words by which an address is the one that paths are below, those for calling one, and hosts that serve no API.
_BASE: Final = re.compile(
    r"(?i)\bbase\b|\bhosts?\b|\burl:|api url|endpoint|lives? at|served? (?:at|from)|below|available at"
)
_CALLED: Final = re.compile(r"(?i)(?:call|request|fetch|example|open|try|e\.g\.)\W*$")
_HOSTING: Final = re.compile(r"//(?:www\.)?(?:github|gitlab|npmjs|codepen|codesandbox|wikipedia|en\.wikipedia)\.")
#: Headings within the section of an operation.
_PART: Final = re.compile(
    r"(?i)(?:\w+ )?(?:param(?:eter)?s?|arguments?|requests?|responses?|returns?|repl(?:y|ies)|results?|examples?|usage"
    r"|errors?|output|samples?|fields?|headers?|endpoint|url)(?: \w+)?:?"
)
#: Scheme and host of an address.
_ORIGIN: Final = re.compile(r"^https?://[^/?#]*")
_VERSION: Final = re.compile(r"(?i)v\d+(?:\.\d+)*|api|rest|public|json|\d{4}-\d{2}-\d{2}")
_LITERALS: Final = re.compile(r"\d{4}-\d{2}-\d{2}|\d+|[0-9a-f]{8}-[0-9a-f-]{27}")
_PLACEHOLDER: Final = re.compile(r"[{<\[$]|^:\w|^[A-Z][A-Z_]{2,}$|^\.\.\.$|^YOUR")


@dataclass(frozen=True, slots=True)
class _ShownCall:
    """A call as it stands in a block: `query` are its parameters with the values that it shows."""

    method: str
    path: str
    query: tuple[Parameter, ...]
    block: int
    is_address: bool = False


@dataclass(slots=True)
class _Section:
    """An operation as far as it is known while its blocks are read."""

    call: _ShownCall
    parameters: dict[str, Parameter] = field(default_factory=dict)
    replies: list[Json] = field(default_factory=list)
    errors: list[Json] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    title: str = ""


@lru_cache(maxsize=256)
def read_description(text: str) -> ApiDescription:
    """Return what a description says of an API; one without operations is no description of an API."""
    blocks = blocks_of(text)
    calls = _calls(blocks)
    sections = _sections(blocks, calls)
    if len(sections) == 1 and not sections[0].replies:  # an example of what it holds may stand before the call
        shown = [read_example(each.text) for each in blocks if each.kind == "code"]
        sections[0].replies += [each for each in shown if isinstance(each, dict | list) and each][:1]
    made = [_operation(each) for each in sections if each.call.method == "GET"][:MOST_OPERATIONS]
    return ApiDescription(tuple(_with_names(made)), _secret_header(blocks))


# -- calls


def _calls(blocks: Sequence[Block]) -> list[_ShownCall]:
    """Return the calls that are operations, each at its first place, below the base path of the addresses."""
    found: list[_ShownCall] = []
    bases: list[tuple[int, str]] = []
    for number, block in enumerate(blocks):
        for match in CALLS.finditer(block.text):
            where = match["where"] or match["address"] or match["path"] or match["bare"] or match["word"]
            call = _read_call(match["method"] or _curl_method(block.text, match), where, number)
            if match["bare"] is not None and not _is_called(block.text, match):
                heading = blocks[number - 1].text if number and blocks[number - 1].kind == "heading" else ""
                bases.append((_rank_base(f"{heading} {block.text}", match), "" if call.query else call.path))
            elif call.path.strip("/"):
                found.append(call)
    best = max(bases, key=lambda each: each[0], default=(0, ""))
    base = best[1].rstrip("/") if best[0] > 0 else ""
    return _distinct([_below(each, base) for each in found if each.path.rstrip("/") != base])


def _is_called(text: str, match: re.Match[str]) -> bool:
    """Test if a bare address is called: it begins a line or a link, or a word for calling stands before it."""
    before = text[: match.start()].rstrip("` \t<")
    if before.endswith("](") or _HOSTING.search(match["bare"]):
        return False
    has_path = bool(_ORIGIN.sub("", match["bare"]).strip("/"))
    begins = not before or before.endswith("\n") or (before == "[" and has_path)
    return (begins and not _BASE.search(text[match.end() :])) or bool(_CALLED.search(before))


def _rank_base(text: str, match: re.Match[str]) -> int:
    """Return how surely an address is the one that paths are below: words for it stand around it."""
    if _HOSTING.search(match["bare"]):
        return 0
    is_target = f"]({match['bare']}" in text
    return (2 if _BASE.search(text) else 0) + (0 if is_target else 1)


def _curl_method(text: str, match: re.Match[str]) -> str:
    found = re.search(r"-X\s+([A-Z]+)", match[0]) if match["address"] else None
    if found is not None:
        return found[1]
    return "POST" if match["address"] and re.search(r"\s(?:-d|--data)\s", text) else "GET"


def _read_call(method: str, where: str, block: int) -> _ShownCall:
    """Return a call of a path or address: other forms of names in a path become `{name}`."""
    where = re.sub(r"\[[?&]([^\]]*)\]", r"&\1", where).rstrip(".,;:)*")
    target = _ORIGIN.sub("", where)
    path, _, query = target.partition("#")[0].partition("?")
    if "?" not in where and "&" in path:
        path, _, query = path.partition("&")
    segments = [_segment(each) for each in unquote(path).split("/")]
    given = [each.partition("=") for each in re.split(r"[&?]", query) if each]
    shown = tuple(
        Parameter(
            unquote(name).strip("[]{}<>"),
            example="" if _PLACEHOLDER.search(value) else unquote(value).replace("+", " "),
        )
        for name, _, value in given
        if re.fullmatch(r"[\w.\[\]{}<>-]+", unquote(name))
    )
    return _ShownCall(method, "/".join(segments).rstrip("/") or "/", shown, block, target != where)


def _segment(text: str) -> str:
    """Return a segment of a path with its names as `{name}`.

    >>> _segment(":id"), _segment("<city>.json"), _segment("COUNTRY_CODE"), _segment("42"), _segment("v1")
    ('{id}', '{city}.json', '{country_code}', '{id}', 'v1')
    """
    text = re.sub(r"\$?[{<\[]+([^}>\]]+)[}>\]]+", lambda found: "{" + _name(found[1]) + "}", text)
    if re.fullmatch(r":\w+", text):
        return "{" + _name(text[1:]) + "}"
    if re.fullmatch(r"[A-Z][A-Z_]{2,}", text):
        return "{" + text.lower() + "}"
    if _LITERALS.fullmatch(text):
        return "{date}" if re.match(r"\d{4}-", text) else "{id}"
    return text


def _name(text: str) -> str:
    return re.sub(r"\W+", "_", text.partition(":")[0].strip()).strip("_") or "value"


def _below(call: _ShownCall, base: str) -> _ShownCall:
    """Return a call with the base path before its own, unless it has that already."""
    begins = call.path == base or call.path.startswith(f"{base}/")
    return call if not base or begins else replace(call, path=base + call.path)


def _distinct(calls: Sequence[_ShownCall]) -> list[_ShownCall]:
    """Return each operation once: a call with values of another one's path is an example of that one."""
    templates = [each for each in calls if variables(each.path)]
    made: dict[tuple[str, str], _ShownCall] = {}
    for call in calls:
        own = next((each for each in templates if _is_example(call, each)), call)
        before = made.get((own.method, own.path))
        if before is None:
            made[own.method, own.path] = replace(own, query=_join(own.query, call.query), block=call.block)
        else:
            made[own.method, own.path] = replace(before, query=_join(before.query, call.query))
    return list(made.values())


def _is_example(call: _ShownCall, template: _ShownCall) -> bool:
    """Test if a call is one of another operation, with values: a plain word in its path is an operation's own."""
    if call.method != template.method or call.path == template.path or not matches(template.path, call.path):
        return False
    if len(variables(template.path)) < len(variables(call.path)):
        return False
    pairs = zip(template.path.split("/"), call.path.split("/"), strict=True)
    values = [value for name, value in pairs if name != value]
    return call.is_address or not all(re.fullmatch(r"[a-z_-]+", each) for each in values)


def _join(one: Sequence[Parameter], other: Sequence[Parameter]) -> tuple[Parameter, ...]:
    kept = {each.name: each for each in one}
    for each in other:
        before = kept.get(each.name)
        kept[each.name] = each if before is None or not before.example else before
    return tuple(kept.values())


# -- the section of each operation


def _sections(blocks: Sequence[Block], calls: Sequence[_ShownCall]) -> list[_Section]:
    """Return what the blocks say of each operation: those from its heading, or its call, to the next one's."""
    starts = [_start(blocks, calls, at) for at in range(len(calls))]
    ends = [*starts[1:], len(blocks)][: len(calls)]
    found = []
    for call, begin, end in zip(calls, starts, ends, strict=True):
        same = [each for each in calls if each.block == call.block]
        section = _Section(call)
        _read_blocks(section, blocks[begin : max(end, call.block + 1)], alone=len(same) == 1)
        found.append(section)
    return found


def _start(blocks: Sequence[Block], calls: Sequence[_ShownCall], at: int) -> int:
    """Return the first block of a section: the heading over the call, if no other call stands under it."""
    call, before = calls[at].block, calls[at - 1].block if at else -1
    until = calls[at + 1].block if at + 1 < len(calls) else len(blocks)
    is_shared = until < len(blocks) and not any(each.kind == "heading" for each in blocks[call + 1 : until + 1])
    part = 0
    for number in () if is_shared else range(call, before, -1):
        if blocks[number].kind == "heading":
            if not _PART.fullmatch(blocks[number].text):
                return number
            part = number
    leads = call - 1 > before and blocks[call].kind == "code" and blocks[call - 1].kind in ("text", "item")
    return part or (call - 1 if leads else call)


def _read_blocks(section: _Section, blocks: Sequence[Block], *, alone: bool) -> None:
    """Read the blocks of a section in their order."""
    mode: Mode = ""
    for block in blocks:
        if block.kind == "code":
            _read_code(section, block.text, mode)
            continue
        section.words.append(block.text.replace("\t", " "))
        if block.kind == "heading":
            section.title = section.title or ("" if _PART.fullmatch(block.text) else block.text)
            mode = _mode(block.text, "")
        elif block.kind == "text" or CALLS.search(block.text):
            mode = _mode(block.text, mode)
            _read_sentence(section, block.text, mode, alone=alone)
        elif mode in ("reply", "error"):
            _read_sentence(section, block.text, mode, alone=False)
        else:
            plain = _read_sentence(section, block.text, mode, alone=False, lists=False)
            _add(section, listed_parameters(plain, is_row=block.kind == "row"))


def _read_sentence(section: _Section, text: str, mode: Mode, *, alone: bool, lists: bool = True) -> str:
    """Read the examples in a sentence, and the parameters that it names; return it without the examples."""
    for inline, written in inline_examples(text):
        _add_reply(section, inline, "error" if _ERROR.search(text) else mode or "reply")
        text = text.replace(written, " ")
    if lists and mode not in ("reply", "error") and (alone or _TAKES.search(text)):
        _add(section, named_parameters(text))
    return text


def _mode(text: str, before: Mode) -> Mode:
    """Return what follows a heading or a sentence."""
    if _ERROR.search(text) and (before in ("reply", "error") or _REPLY.search(text)):
        return "error"
    takes, replies = _TAKES.search(text), _REPLY.search(text)
    leads = text.rstrip().endswith(":") and not re.search("(?i)param", text)
    if replies and (not takes or leads or replies.start() < takes.start()):
        return "reply"
    return "parameters" if takes else before


def _read_code(section: _Section, code: str, mode: Mode) -> None:
    """Read code: the example of a reply, or of a request with its parameters."""
    text = re.sub(r"(?m)^\s*(?:HTTP/[\d.]+ .*|[A-Z][\w-]*: .*)$", "", code) if re.search(r"(?m)^HTTP/", code) else code
    status = re.search(r"(?m)^HTTP/[\d.]+ (\d+)", code)
    value = read_example(text)
    lines = [re.match(r"\s*([\w.-]+)\s{2,}(\S.*)$", each) for each in code.strip().split("\n")]
    if value is None and mode not in ("reply", "error") and all(lines):
        rows = [f"{each[1]}\t{each[2]}" for each in lines if each]
        _add(section, [one for row in rows for one in listed_parameters(row, is_row=True)])
    elif value is None:
        if mode == "reply" and not CALLS.search(code) and code.strip() and "{" not in code:
            section.replies.append(code.strip())
    else:
        _add_reply(section, value, "error" if status is not None and status[1] >= "300" else mode)


def _add_reply(section: _Section, value: Json, mode: Mode) -> None:
    """Add an example of a reply to the good ones, or to the errors."""
    says = isinstance(value, dict) and (
        value.get("ok") is False or value.get("success") is False or bool(value.get("error"))
    )
    (section.errors if says or mode == "error" else section.replies).append(value)


def _add(section: _Section, found: Sequence[Parameter]) -> None:
    for each in found:
        before = section.parameters.get(each.name)
        section.parameters[each.name] = each if before is None else settle(before, each)


# -- operations of sections


def _operation(section: _Section) -> Operation:
    """Return the operation of a section: the names in its path are required, the rest as it is told."""
    call, known = section.call, section.parameters
    told = {each.name.casefold(): each for each in known.values()}
    made: dict[str, Parameter] = {}
    for name in variables(call.path):
        kept = told.get(name.casefold(), Parameter(name))
        shown_as = kept.example or value_in(section.replies, name)
        made[name] = replace(kept, name=name, place="path", is_required=True, example=shown_as)
    for shown in call.query:
        if not _SECRET_PARAMETER.fullmatch(shown.name):
            before = told.get(shown.name.casefold())
            kept = (
                shown if before is None else replace(before, name=shown.name, example=before.example or shown.example)
            )
            made.setdefault(shown.name, with_kind(kept))
    for each in known.values():
        if (
            not _SECRET_PARAMETER.fullmatch(each.name)
            and each.name not in made
            and each.name.casefold() not in map(str.casefold, made)
        ):
            made[each.name] = each
    purpose = _purpose(section)
    words = "\n".join(section.words)
    return Operation("", call.path, purpose, tuple(made.values()), tuple(section.replies), tuple(section.errors), words)


def _purpose(section: _Section) -> str:
    """Return what an operation is for, in one line: its title, and the sentence about it."""
    said = [
        re.sub(r"[`({\[]*[{\[]\s*[\"{].*", "", re.sub(CALLS, "", each), flags=re.DOTALL).strip(" `:-–—.\n*|")
        for each in section.words
    ]
    kept = [" ".join(each.split()) for each in said if len(each.split()) >= 2]
    title = re.sub(CALLS, "", section.title).strip(" `:-–—.*")
    others = [each for each in kept if each != title]
    return ". ".join(each for each in (title, *others[:1]) if each)[:200]


def _with_names(made: Sequence[Operation]) -> Iterator[Operation]:
    """Yield the operations with names of their own, made of their paths."""
    taken: set[str] = set()
    for operation in made:
        parts = [each for each in operation.path.split("/") if each and not _VERSION.fullmatch(each)]
        plain = [re.sub(r"\W+|\.\w+$", "_", each).strip("_").lower() for each in parts if "{" not in each]
        words = [each for each in plain if each] or ["look_up"]
        name = "_".join(words[-2:] if len(words) > 2 else words)
        name = re.sub(r"_+", "_", name if name[:1].isalpha() else f"get_{name}")[:40].strip("_")
        shorter = [*variables(operation.path), *map(str, range(2, 99))]
        whole = next(each for each in (name, *(f"{name}_by_{each.lower()}" for each in shorter)) if each not in taken)
        taken.add(whole)
        yield replace(operation, name=f"{whole}_")


def _secret_header(blocks: Sequence[Block]) -> str:
    """Return the header in which the description wants a secret."""
    for block in blocks:
        for match in _HEADER.finditer(block.text):
            name = match[1] or match[2]
            if _SECRET.search(name):
                return name
        if re.search(r"\bAuthorization\b", block.text):
            return "Authorization"
    return ""
