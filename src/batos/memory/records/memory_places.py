"""The places and contents by which memories are found, and the further places that a content came from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records.memory_segments import find_tree, items_beginning, make_tree, trees_of
from batos.objects.prototype import own_slots


def find_by_source(root: Root, user: str, scope: str, source: str) -> str | None:
    """Return the name of a user's document that came from there."""
    return _find(root, "sources", user, scope, source) if source else None


def find_by_content(root: Root, user: str, scope: str, sha256: str) -> str | None:
    """Return the name of a user's document that has this content."""
    return _find(root, "digests", user, scope, sha256)


def names_with_content(root: Root, sha256: str, user: str | None = None) -> Iterator[str]:
    """Yield the names of the documents that have this content; a user's, or everybody's."""
    yield from in_any_scope(root, "digests", sha256, user)


def names_with_source(root: Root, source: str, user: str | None = None) -> Iterator[str]:
    """Yield the names of the documents that came from there, scope by scope; a user's, or everybody's."""
    yield from in_any_scope(root, "sources", source, user)


def in_any_scope(root: Root, tree: str, value: str, user: str | None) -> Iterator[str]:
    """Yield the names that a tree has for a value, scope by scope; a user's, or everybody's."""
    names = trees_of(root)[tree]
    for whose, scope in _scopes(names, user):
        name = names.get(place_key(whose, scope, value))
        if name is not None:
            yield name


def _find(root: Root, tree: str, user: str, scope: str, value: str) -> str | None:
    found: str | None = trees_of(root)[tree].get(place_key(user, scope, value))
    return found


def names_below(root: Root, beginning: str, user: str | None = None) -> Iterator[str]:
    """Yield the names of the documents whose sources begin so; a user's, or everybody's."""
    yield from (name for _, name in list_below(root, beginning, user))


def list_below(
    root: Root, beginning: str, user: str | None = None, only: str | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the places that begin so, with the names of their documents; a user's or everybody's, `only` of a scope."""
    sources = trees_of(root)["sources"]
    for whose, scope in _scopes(sources, user):
        if only in (None, scope):
            for key, name in items_beginning(sources, place_key(whose, scope, beginning)):
                yield key.split("\0", 2)[2], name


def messages_of(root: Root, source: str, user: str | None = None) -> Iterator[str]:
    """Yield the names of the mails of a mailbox, or of the messages of a file of chats."""
    for name in names_below(root, f"{source}#", user):
        if own_slots(root[roots.DOCUMENTS][name])["kind"] == "turn":
            yield name


def place_key(user: str, scope: str, value: str) -> str:
    """Return the key under which a document stands in the trees of sources and of contents."""
    return f"{user}\0{scope}\0{value}"


def _scopes(names: Any, user: str | None) -> Iterator[tuple[str, str]]:
    """Yield the users and scopes that a tree has names of; a user's, or all."""
    at = "" if user is None else place_key(user, "", "")
    while key := next(iter(names.keys(at)), None):
        whose, scope, _ = key.split("\0", 2)
        if user not in (None, whose):
            return
        yield whose, scope
        at = f"{whose}\0{scope}\1"  # behind all of the scope


_TREE: Final = "copies"
_NONE: Final = object()


def note_place(root: Root, name: str, place: str) -> None:
    """Note a further place of a document."""
    make_tree(root, _TREE)[f"{name}\0{place}"] = None


def drop_place(root: Root, name: str, place: str) -> bool:
    """Take a further place from a document; return False where it is none."""
    return find_tree(root, _TREE).pop(f"{name}\0{place}", _NONE) is not _NONE


def places_of(root: Root, name: str) -> list[str]:
    """Return the further places of a document."""
    return [key.partition("\0")[2] for key, _ in items_beginning(find_tree(root, _TREE), f"{name}\0")]


def names_at(root: Root, place: str) -> list[str]:
    """Return the names of the documents that have this further place. Reads all further places."""
    return [key.partition("\0")[0] for key in find_tree(root, _TREE) if key.partition("\0")[2] == place]
