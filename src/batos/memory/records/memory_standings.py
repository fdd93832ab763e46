"""The standings of memories: whether one is recalled, gave way to another, was edited, or is pinned."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from batos.image import roots
from batos.image.records import TRUST
from batos.image.roots import Root
from batos.memory.records import memory_archives, memory_claims
from batos.memory.records.memory_places import find_by_source, place_key
from batos.memory.records.memory_segments import count_change, find_tree, items_beginning, make_tree, trees_of
from batos.objects.prototype import own_slots

#: The standing of a memory: only a current one is recalled. The others stay, as marked history.
Standing: TypeAlias = Literal["current", "superseded", "edited", "retracted", "summarised"]

#: Standings of documents that are recalled, by themselves or by a summary.
RECALLED: Final = frozenset({"current", "summarised"})
#: Standings of documents whose claims count for nothing.
_TAKEN_BACK: Final = frozenset({"edited", "retracted"})
#: The newest facts of a key's family among which one that is recalled is looked for.
MOST_VALUES: Final = 512


def supersede(root: Root, name: str, by: str, since: str) -> None:
    """Make history of a document: another one holds in its place from a moment on."""
    document = root[roots.DOCUMENTS][name]
    document.superseded_by = by
    document.valid_to = since
    set_standing(root, name, "superseded")


def set_standing(root: Root, name: str, standing: Standing) -> None:
    """Change whether a document is recalled. The document, its chunks and their words in the indexes stay.

    Nothing gives way to a document while it is retracted, or history of an edit.
    """
    kept, document = trees_of(root), root[roots.DOCUMENTS][name]
    before = dict(own_slots(document))
    first, is_folded = before["chunks"][0], bool(memory_archives.summary_of(document))
    tree, ahead = (kept["folded"], 1) if is_folded else (kept["ranges"], 0)
    document.standing = standing = "summarised" if is_folded and standing == "current" else standing
    tree[first] = (*(row := tree[first])[:ahead], *memory_archives.with_standing(row[ahead:], standing))
    count_change(root, [(first, first)])
    is_held = standing not in _TAKEN_BACK
    if is_held != (before["standing"] not in _TAKEN_BACK):
        facts = memory_claims.hold_claims(root, document, is_held=is_held)
        if is_held:
            for each in facts:
                set_standing(root, each, "superseded")
        else:
            let_go(root, facts, before)
    if standing == "current" and before["kind"] != "fact" and before["source"]:
        other = find_by_source(root, *(place := (before["user"], before["scope"], before["source"])))
        if other is None or standing_of(root, other) != "current":
            kept["sources"][place_key(*place)] = name  # the next document from there takes its place


def let_go(root: Root, facts: Iterable[str], taken: Mapping[str, Any]) -> None:
    """Let facts hold again, as what took their place is taken away or back; `taken` are the slots that it had.

    Where another fact had taken the place of that one, they are history of this other fact.
    """
    by = root[roots.DOCUMENTS].get(taken.get("superseded_by", "") if taken["standing"] == "superseded" else "")
    for name in facts:
        if by is None:
            set_standing(root, name, "current")
            _settle_key(root, name)
        else:
            root[roots.DOCUMENTS][name].superseded_by = own_slots(by)["name"]
            memory_claims.note_marked(by, name)


def recall_again(root: Root, name: str) -> None:
    """Let a document that was edited or retracted be what it was: recalled, unless a fact in its place still holds.

    Where its key has got another value since, one of both is history.
    """
    if _gave_way(root, name):
        set_standing(root, name, "superseded")
    else:
        set_standing(root, name, "current")
        _settle_key(root, name)


def value_in_place(root: Root, name: str) -> str:
    """Return the fact that its key has got since a fact was retracted, and that holds; "" if there is none."""
    other = "" if _gave_way(root, name) else _other_value(root, name)
    return other if other and _weight(root, other) > _weight(root, name) else ""


def _gave_way(root: Root, name: str) -> bool:
    """Test if what took the place of a document was not taken back."""
    by = root[roots.DOCUMENTS].get(own_slots(root[roots.DOCUMENTS][name]).get("superseded_by", ""))
    return by is not None and own_slots(by)["standing"] not in _TAKEN_BACK


def _settle_key(root: Root, name: str) -> None:
    """Make history of one of two values of a key, as a fact is recalled that another one has not met."""
    other = _other_value(root, name)
    if not other:
        return
    older, newer = sorted((name, other), key=lambda each: _weight(root, each))
    document, since = root[roots.DOCUMENTS][older], memory_claims.stated_at(own_slots(root[roots.DOCUMENTS][newer]))
    for chunk in trees_of(root)["chunks"].values(*own_slots(document)["chunks"]):
        whole = memory_claims.ClaimMark(0, len(own_slots(chunk)["text"]), "superseded", "", newer, since)
        memory_claims.add_marks(chunk, [whole])
    memory_claims.note_marked(root[roots.DOCUMENTS][newer], older)
    supersede(root, older, newer, since)


def _other_value(root: Root, name: str) -> str:
    """Return another fact that is recalled, if one of both would have taken the place of the other; else ""."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    if not slots.get("family"):
        return ""
    several = memory_claims.facts_of_family(root, slots["user"], slots["scope"], slots["family"], MOST_VALUES)
    for each in several:
        other = own_slots(root[roots.DOCUMENTS][each])
        if each != name and other["standing"] == "current":
            older, newer = sorted((slots, other), key=lambda one: (memory_claims.stated_at(one), one["chunks"][0]))
            known = (older["key"].casefold(), older["family"])
            if newer["key"].casefold() in known or newer["supersedes"].casefold() in known:
                return each
    return ""


def _weight(root: Root, name: str) -> tuple[int, str, int]:
    """Return what decides which of two values of a key holds: trust, then the moment."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    return -TRUST.index(slots["trust"]), memory_claims.stated_at(slots), slots["chunks"][0]


def standing_of(root: Root, name: str) -> str:
    """Return the standing of a document."""
    return str(own_slots(root[roots.DOCUMENTS][name])["standing"])


def is_place_taken(root: Root, name: str) -> bool:
    """Test if another document that is recalled came from the source of this one since."""
    slots = own_slots(root[roots.DOCUMENTS][name])
    other = find_by_source(root, slots["user"], slots["scope"], "" if slots["kind"] == "fact" else slots["source"])
    return other not in (None, name) and standing_of(root, str(other)) in RECALLED


#: The name of the tree among the records of memories; an image in which nothing was pinned has none.
_PINS: Final = "pins"


def pin(root: Root, name: str, at: str) -> bool:
    """Set a pin on a memory; return False if there was one already."""
    return bool(make_tree(root, _PINS).insert(_key(root, name), at))


def unpin(root: Root, name: str) -> bool:
    """Take a pin away; return False if there was none."""
    return find_tree(root, _PINS).pop(_key(root, name), None) is not None


def pinned_at(root: Root, name: str) -> str:
    """Return when a memory was pinned; "" if it is not."""
    return str(find_tree(root, _PINS).get(_key(root, name), ""))


def is_pinned(root: Root, name: str) -> bool:
    """Test if a memory is pinned."""
    return _key(root, name) in find_tree(root, _PINS)


def list_pinned(root: Root, user: str, scopes: Collection[str] | None = None) -> Iterator[str]:
    """Yield the names of a user's pinned memories, of some scopes or of all, scope by scope, the oldest first."""
    for key, _ in items_beginning(find_tree(root, _PINS), f"{user}\0"):
        _, scope, name = key.split("\0")
        if scopes is None or scope in scopes:
            yield name


def _key(root: Root, name: str) -> str:
    slots = own_slots(root[roots.DOCUMENTS][name])
    return f"{slots['user']}\0{slots['scope']}\0{name}"
