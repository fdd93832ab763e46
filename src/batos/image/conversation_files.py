"""The files of a conversation: a file attached to one question is available to all later ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from batos.objects.prototype import UvmObject, own_slots

#: A file as a brief names it: its name, its media type, the SHA-256 of its content.
Ref: TypeAlias = Mapping[str, Any]

_FILES: Final = "files"


def files_of(conversation: UvmObject) -> list[Ref]:
    """Return the files of a conversation, in the order in which they came."""
    return list(own_slots(conversation).get(_FILES, ()))


def merge_files(before: Iterable[Ref], given: Collection[Ref]) -> list[Ref]:
    """Join what was there with what comes; a file takes the place of one of its name, and of one of its content.

    >>> a, b = {"name": "a", "sha256": "1"}, {"name": "b", "sha256": "2"}
    >>> merge_files([a, b], [{"name": "a", "sha256": "3"}])
    [{'name': 'b', 'sha256': '2'}, {'name': 'a', 'sha256': '3'}]
    """
    names, contents = {each["name"] for each in given}, {each["sha256"] for each in given}
    return [each for each in before if each["name"] not in names and each["sha256"] not in contents] + list(given)


def keep(conversation: UvmObject, given: Collection[Ref]) -> None:
    """Let what was attached be the conversation's; one that has it all is not written again."""
    before = files_of(conversation)
    after = merge_files(before, given)
    if given and after != before:
        _set(conversation, after)


def drop(conversation: UvmObject, names: Collection[str]) -> list[str]:
    """Leave the files of these names out from now on, and what is not there: then nothing is left out."""
    before = files_of(conversation)
    unknown = sorted(set(names) - {each["name"] for each in before})
    if not unknown:
        _set(conversation, [each for each in before if each["name"] not in names])
    return unknown


def _set(conversation: UvmObject, files: Iterable[Ref]) -> None:
    setattr(conversation, _FILES, tuple(dict(each) for each in files))
