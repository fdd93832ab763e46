"""Gold items: questions whose right answers are known, in the image under the memory that each was made from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from BTrees.OOBTree import OOBTree

from batos.image import roots
from batos.image.roots import Root
from batos.objects.prototype import own_slots

#: The kinds: R, the sentence that a recall should find; A, an answer in a sentence; H, what stands under a heading;
#: N, an A asked without its document, where nothing answers; S, a value that took the place of another; U, an answer
#: that a person approved or wrote.
ItemKind: TypeAlias = Literal["R", "A", "H", "N", "S", "U"]
#: The use of an item: what proposes changes may see it, changes are judged by it, or nobody looks at it but for a sum.
ItemSplit: TypeAlias = Literal["propose", "judge", "sealed"]

#: The most items of a user.
CAP: Final = 600
#: The client of the missions by which a model makes items of a memory; its id stands behind it.
CLIENT: Final = "items"
#: The tree of the items, and the numbers of the first chunks from which on no memory was read, and none asked about.
_KEPT, READ, ASKED = "kept", "read", "asked"
#: The letter by which the id of an N is longer than that of its A.
_OF_N: Final = "n"


class GoldItem(NamedTuple):
    """A question with its right answers, all of which are wanted; none if nothing may be found.

    `source` is the id of the memory that it is of, or of the mission. An N is asked where its source is not. An item of
    one user's memory judges nothing of another's.
    """

    id: str
    kind: ItemKind
    question: str
    gold: tuple[str, ...]
    source: str
    split: ItemSplit
    user: str
    made_at: str


def split_of(place: str) -> ItemSplit:
    """Return the use of all items that come from one place: of ten places four propose, four judge, two are sealed.

    >>> split_of("/notes/lamp.md"), split_of("/notes/pier.md"), split_of("/notes/harbour.md")
    ('propose', 'propose', 'judge')
    """
    part = int(hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:8], 16) % 10
    return "propose" if part < 4 else "judge" if part < 8 else "sealed"


def client_of(memory: str) -> str:
    """Return the client of the missions that make items of a memory."""
    return f"{CLIENT} {memory}"


def number_of(root: Root, mark: str) -> int:
    """Return the number of the chunk up to which memories were read, or asked about."""
    return int(_record(root).get(mark, 0))


def list_items(root: Root, user: str, splits: Collection[ItemSplit] | None = None) -> list[GoldItem]:
    """Return a user's items (of some splits), the oldest first: of memories that are recalled as they are.

    Those of what was retracted, edited, folded away or given up for another value are left out; they may come back.
    """
    return sorted(
        (
            each
            for name, each in _rows(root)
            if each.user == user and (splits is None or each.split in splits) and is_current(root, name)
        ),
        key=_age,
    )


def list_unanswerable(root: Root, user: str) -> Iterator[tuple[str, str, str]]:
    """Yield the memory and the id of each N of a user, and the span that no other memory may have.

    The span is "" where the A is gone.
    """
    spans = {each.id: each.gold[0] for _, each in _rows(root) if each.kind == "A"}
    for name, each in _rows(root):
        if each.kind == "N" and each.user == user:
            yield name, each.id, spans.get(each.id.removesuffix(_OF_N), "")


def items_under(root: Root, memory: str) -> tuple[GoldItem, ...]:
    """Return the items that stand under a memory, whatever its standing."""
    return tuple(map(_read, _tree(root).get(memory, ())))


def put_items(root: Root, memory: str, items: Iterable[GoldItem]) -> None:
    """Put items under a memory in the place of those before; none of an equal id twice."""
    rows = tuple(tuple(each) for each in {each.id: each for each in items}.values())
    if not rows:
        drop_items(root, memory)
    elif rows != _tree(root).get(memory):
        kept = root[roots.ITEMS]
        if _KEPT not in kept:
            kept[_KEPT] = OOBTree()
        kept[_KEPT][memory] = rows


def drop_items(root: Root, memory: str) -> None:
    """Drop the items of a memory that goes."""
    _tree(root).pop(memory, None)


def note_number(root: Root, mark: str, number: int) -> None:
    """Write down up to which chunk memories were read, or asked about."""
    if number_of(root, mark) < number:
        root[roots.ITEMS][mark] = number


def cap_items(root: Root, user: str) -> None:
    """Drop the oldest items of a user who has too many, of the kinds that have the most: R cost nothing, A are few."""
    rows = sorted(
        ((name, each) for name, each in _rows(root) if each.user == user), key=lambda row: _age(row[1]), reverse=True
    )
    places: Counter[str] = Counter()
    ranked = list[tuple[int, str, str]]()
    for name, each in rows:
        kind = "A" if each.kind == "N" else each.kind
        places[kind] += 1
        ranked.append((places[kind], name, each.id))
    gone = {(name, item) for _, name, item in sorted(ranked, key=lambda row: row[0])[CAP:]}
    for memory in {name for name, _ in gone}:
        put_items(root, memory, (each for each in items_under(root, memory) if (memory, each.id) not in gone))


def _age(item: GoldItem) -> tuple[str, str, str]:
    return item.made_at, item.source, item.id


def is_current(root: Root, memory: str) -> bool:
    """Test if a memory is recalled as it is."""
    document = root[roots.DOCUMENTS].get(memory)
    return document is not None and own_slots(document)["standing"] == "current"


def _rows(root: Root) -> Iterator[tuple[str, GoldItem]]:
    for name, rows in _tree(root).items():
        yield from ((name, _read(each)) for each in rows)


def _read(kept: Any) -> GoldItem:
    return GoldItem(*kept)


def _tree(root: Root) -> Any:
    found = _record(root).get(_KEPT)
    return OOBTree() if found is None else found


def _record(root: Root) -> Any:
    return root.get(roots.ITEMS) or {}  # an older moment of the image has none
