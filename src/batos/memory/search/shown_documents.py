"""Lay out passages as a model is shown them: files in one piece, line by line, with notes where parts are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from batos.memory.evidence import Passage, by_file, mark

#: Stands in the place of a part of a file.
LEFT_OUT: Final = "[{:,} characters of this document are left out here]"
#: The blanks between two parts of a remembered document, of which only the places are known.
_GAP: Final = "\n\n"
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029<>\"]")


@dataclass(frozen=True, slots=True)
class ShownDocument:
    """A file, or a remembered document, as far as it is shown; its `day` and `speaker` are "" where not known."""

    name: str
    text: str
    day: str = ""
    speaker: str = ""

    @property
    def title(self) -> str:
        """Return its name, speaker and date on one line, without marks that could end it."""
        about = ", ".join(filter(None, (self.speaker, self.day)))
        return _UNSAFE.sub("_", f"{self.name} ({about})" if about else self.name)

    def block(self, number: int) -> str:
        """Return it between marks that its text does not hold."""
        end, about = mark(self.text), {"name": self.name, "day": self.day, "by": self.speaker}
        told = "".join(f' {key}="{_UNSAFE.sub("_", said)}"' for key, said in about.items() if said or key == "name")
        return f'<document id="{number}"{told} digest="{end}">\n{self.text}\n</document {end}>'


def documents_of(passages: Iterable[Passage]) -> list[ShownDocument]:
    """Return the documents that passages are of, in the order of their first passages, with the text between joined.

    >>> lamp = [Passage(1, "lamp.txt", "0", 0, "Oil."), Passage(2, "lamp.txt", "0", 6, "Wick.")]
    >>> documents_of(lamp)[0].text.split()
    ['Oil.', 'Wick.']
    """
    return [_join(several) for several in by_file(passages)]


def blocks(passages: Sequence[Passage]) -> list[str]:
    """Return a block for each document that passages are of."""
    return [each.block(number) for number, each in enumerate(documents_of(passages), 1)]


def size(passages: Sequence[Passage]) -> int:
    """Return the bytes that passages take in a prompt, with what stands around their documents."""
    return sum(len(each.encode()) + 1 for each in blocks(passages))


def _join(passages: Sequence[Passage]) -> ShownDocument:
    return ShownDocument(passages[0].name, "".join(_pieces(passages)), passages[0].day, passages[0].speaker)


def _pieces(passages: Sequence[Passage]) -> Iterator[str]:
    """Yield the texts in order, and what stands between them: the blanks of the file, or a note and the heading."""
    end = 0
    for place, each in enumerate(passages):
        gap = each.start - end
        if gap > max(len(each.lead), len(_GAP)):
            yield "\n" if place else ""
            yield f"{LEFT_OUT.format(gap)}\n"
            yield f"{each.head}\n" if each.head and not each.text.startswith(each.head) else ""
        elif place:
            yield each.lead if len(each.lead) == gap else _GAP[: max(gap, 0)]
        yield each.with_mark(each.text)
        end = max(end, each.start + len(each.text))
