"""The blocks of a description in prose or Markdown: headings, sentences, items, rows of tables, code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

#: A call as descriptions write it: a method and a path or address, an address after curl, or a path in code.
_METHOD: Final = r"(?P<method>GET|POST|PUT|PATCH|DELETE|HEAD)"
_ADDRESS: Final = r"https?://[^\s`\"'<>|)\]]+(?:<\w+>[^\s`\"'<>|)\]]*)*"
_PATH: Final = r"/(?:[\w.~:@%+,;=?&*-]|[{<\[]\w[^}>\]\n]{0,30}[}>\]]|/|\$\{)*"
CALLS: Final = re.compile(
    rf"\b{_METHOD}\*{{0,2}}[`'\"]?\s+(?:requests? )?(?:to |from |on |at )?[`'\"]?(?P<where>{_ADDRESS}|{_PATH})"
    rf"|curl\s[^\n]*?(?P<address>{_ADDRESS})"
    rf"|`(?P<path>{_PATH})`"
    rf"|(?P<bare>{_ADDRESS})"
    rf"|(?:^|(?<=[\s(\"']))(?P<word>/[a-zA-Z]{_PATH[1:]})",
)
_FENCE: Final = re.compile(r"^\s*(```+|~~~+)")
_HEADING: Final = re.compile(r"^\s*#{1,6}\s+(.*?)\s*#*\s*$|^\s*\*\*([^*]+)\*\*:?\s*$")
_ITEM: Final = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+(.*)$")
_ROW: Final = re.compile(r"^\s*\|(.*?)\|?\s*$")
#: A name and what it means in columns, without bars.
_COLUMNS: Final = re.compile(r"^\s+([A-Za-z_][\w.]{0,30})(?:\s{2,}|\t+)(\S.*)$")
_RULE: Final = re.compile(r"^[\s|:=-]+$")
#: The end of a sentence: not behind a short form, and not within code.
_END: Final = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<=[.!?])\s+(?=[A-Z`/{\"'(\d])|;\s+(?=[a-zA-Z`])")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a description. Cells of a row are joined by tabs."""

    kind: Literal["heading", "text", "item", "row", "code"]
    text: str


def blocks_of(text: str) -> list[Block]:
    """Return the blocks of a description in their order; a paragraph is a block for each sentence."""
    found: list[Block] = []
    for kind, part in _chunks(text.replace("\r\n", "\n")):
        found += _sentences(part) if kind == "text" else [Block(kind, part)]
    return found


def _chunks(text: str) -> Iterator[tuple[Literal["heading", "text", "item", "row", "code"], str]]:
    """Yield headings, whole paragraphs, items with the lines below them, rows, and code."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        fence, heading, item, row = (each.match(line) for each in (_FENCE, _HEADING, _ITEM, _ROW))
        if fence is not None:
            end = next((n for n in range(at + 1, len(lines)) if lines[n].strip().startswith(fence[1])), len(lines))
            yield "code", "\n".join(lines[at + 1 : end])
            at = end + 1
        elif heading is not None:
            yield "heading", (heading[1] or heading[2] or "").strip()
            at += 1
        elif row is not None:
            cells = [each.strip() for each in row[1].split("|")]
            if at + 1 < len(lines) and _RULE.match(lines[at + 1]) and "-" in lines[at + 1]:
                yield "text", " ".join(cells)  # the heads of columns
            elif not _RULE.match(line):
                yield "row", "\t".join(cells)
            at += 1
        elif columns := _COLUMNS.match(line):
            yield "row", f"{columns[1]}\t{columns[2]}"
            at += 1
        elif line.startswith(("    ", "\t")) and (at == 0 or not lines[at - 1].strip()):
            end = next(
                (n for n in range(at, len(lines)) if lines[n].strip() and not lines[n][:1].isspace()), len(lines)
            )
            yield "code", "\n".join(each.removeprefix("    ") for each in lines[at:end])
            at = end
        else:
            begun, at = ([item[1]] if item is not None else [line]), at + 1
            while at < len(lines) and _continues(lines[at]):
                begun.append(lines[at])
                at += 1
            yield "item" if item is not None else "text", "\n".join(each.strip() for each in begun).strip()


def _continues(line: str) -> bool:
    """Test if a line belongs to the paragraph or item before it."""
    return bool(line.strip()) and not any(each.match(line) for each in (_FENCE, _HEADING, _ITEM, _ROW, _COLUMNS))


def _sentences(text: str) -> Iterator[Block]:
    """Yield the sentences of a paragraph; a line that is JSON stands as code."""
    prose: list[str] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if lines[at].startswith(("{", "[")):
            end = next((n for n in range(len(lines), at, -1) if lines[n - 1].endswith(("}", "]"))), 0)
            if end:
                yield from _split(" ".join(prose))
                prose = []
                yield Block("code", "\n".join(lines[at:end]))
                at = end
                continue
        prose.append(lines[at])
        at += 1
    yield from _split(" ".join(prose))


def _split(text: str) -> Iterator[Block]:
    """Yield a paragraph's sentences, and each further call of a sentence with what follows it."""
    for sentence in _END.split(text):
        starts = [0, *(each.start() for each in [*CALLS.finditer(sentence)][1:]), len(sentence)]
        for begin, end in pairwise(starts):
            if sentence[begin:end].strip():
                yield Block("text", sentence[begin:end].strip())
