"""The documents of the image's care, key by key: a pack, an erasure, a mind that came back."""

from __future__ import annotations

from typing import TypedDict

from batos.protocol.server_documents import StoredSizes


class PackedPage(TypedDict):
    """The outcome of a pack: the moment from which on history is kept, and the bytes before and after it."""

    until: str
    before: StoredSizes
    after: StoredSizes
    #: The open mission, or the question to the past, for which more was kept; "" if there was none.
    held_by: str
    #: Calls whose words are erased, since their missions ended so long ago.
    erased: int


class RemainingPlace(TypedDict):
    """A place that has, or may have, words that were erased here, and what to do about it."""

    place: str
    what: str
    remedy: str


class ErasedPage(TypedDict):
    """The outcome of an erasure, or with `dry_run` of a plan: what goes, by kind, and what may still have the words.

    `missions` and `memories` have the reason why each goes. `calls` and `lines` count what went from the journal and
    from files, `objects` the other objects in which a mark stands now, `found` what a scan afterwards still found.
    """

    target: str
    kind: str
    dry_run: bool
    missions: dict[str, str]
    memories: list[str]
    conversations: list[str]
    slots: list[str]
    methods: list[str]
    files: int
    calls: int
    objects: int
    lines: int
    found: list[str]
    left: list[RemainingPlace]


class DisarmingReport(TypedDict):
    """The grants that were taken back, by name, and the effects of which nobody knows whether they happened."""

    grants: list[str]
    effects: list[str]


class RestorationReport(DisarmingReport):
    """The grants and effects that disarming took back, and names of files in the home.

    `aside` has the new names of what was in the way, `unused` the names of settings that are not taken over.
    """

    aside: list[str]
    unused: list[str]
