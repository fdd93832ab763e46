"""Citations as clients of other servers show them: a mark behind a sentence, and annotations with an address."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from batos.image import roots
from batos.image.image import LivingImage
from batos.protocol.errors import BatosError
from batos.protocol.evidence_documents import CitationDocument

#: Files whose lines are known at once, and the size of a file in bytes beyond which they are not counted.
_FILES: Final = 64
_MOST: Final = 4 * 2**20
#: Begins code in an answer: editors write what stands there into files, by the names before it.
FENCE: Final = "```"
#: Characters of a quotation that an annotation shows as its title.
_TITLE: Final = 200


class LineNumbers:
    """The numbers of lines in attached files, by their digests."""

    def __init__(self, image: LivingImage) -> None:
        self._image = image
        self._starts: OrderedDict[str, Sequence[int]] = OrderedDict()

    def number(self, sha256: str, offset: int) -> int | None:
        """Return the line of a character in a file, from 1; None if the file is not here, or too long."""
        if sha256 not in self._starts:
            self._starts[sha256] = self._read(sha256)
            if len(self._starts) > _FILES:
                self._starts.popitem(last=False)
        starts = self._starts[sha256]
        return bisect_right(starts, offset) if starts else None

    def _read(self, sha256: str) -> Sequence[int]:
        """Return where the lines of a file begin."""
        with self._image.snapshot() as root, suppress(BatosError, UnicodeDecodeError):
            file = root[roots.ATTACHMENTS].get(sha256)
            if file is not None and file.size <= _MOST:
                text = file.read().decode("utf-8")
                return [0, *(place + 1 for place, sign in enumerate(text) if sign == "\n")]
        return ()


def mark_of(keys: Mapping[str, Any], lines: LineNumbers) -> str:
    """Return the mark of a citation: its file, with the line or the page where that is known."""
    name = " ".join(str(keys.get("name") or "memory").replace("[", "(").replace("]", ")").split())
    if "page" in keys:
        return f"[{name}:p{keys['page']}]"
    line = lines.number(str(keys["sha256"]), int(keys["span"][0])) if "sha256" in keys else None
    return f"[{name}]" if line is None else f"[{name}:{line}]"


def with_marks(answer: str, citations: Sequence[CitationDocument], lines: LineNumbers) -> str:
    """Return an answer with a mark behind each sentence that a document carries, unless programs read it as files."""
    if FENCE in answer:
        return answer
    marks: dict[str, dict[str, None]] = {}
    for each in citations:
        marks.setdefault(each["sentence"], {})[mark_of(each, lines)] = None
    made, done = [], 0
    for sentence, told in marks.items():
        place = answer.find(sentence, done)
        if place < 0:
            continue
        end = place + len(sentence.rstrip())
        made.append(answer[done:end] + "".join(f" {mark}" for mark in told if mark not in sentence))
        done = end
    return "".join([*made, answer[done:]])


def url_citations(text: str, citations: Sequence[CitationDocument], address: str) -> list[dict[str, Any]]:
    """Return the citations of an answer as OpenAI's annotations; `address` is the page of the mission."""
    found, done = [], 0
    for number, each in enumerate(citations):
        place = text.find(each["sentence"], done)
        if place >= 0:
            done = place
        start = max(place, 0)
        found.append(
            {
                "type": "url_citation",
                "url_citation": {
                    "url": f"{address}#c{number}",
                    "title": f"{each.get('name', 'memory')}: {each['quote'][:_TITLE]}",
                    "start_index": start,
                    "end_index": start + (len(each["sentence"]) if place >= 0 else 0),
                },
            }
        )
    return found
