"""The faults of an image, each with the change that mends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from batos.image.roots import Root
from batos.memory.records.memory_segments import trees_of

#: The kind of a fault: a reference to an object that is lost; an entry of a list or an index whose object is not there;
#: an object that its list or index lacks; an entry that leads to another object than it should; an object that nothing
#: refers to; an answer that was never published; a count that is not what is counted; another kind of object than is
#: kept there.
FaultKind: TypeAlias = Literal[
    "dangling reference", "entry without object", "object without entry", "wrong link", "orphan record",
    "unpublished contribution", "wrong count", "wrong kind",
]  # fmt: skip


def discard(tree: object, key: object, root: Root) -> None:
    """Take an entry off a list of the image, if it is there."""
    found: Any = root[tree]  # type: ignore[literal-required]
    found.discard(key) if hasattr(found, "discard") else found.pop(key, None)


def discard_memory(tree: object, key: object, root: Root) -> None:
    """Take an entry off a list of what is remembered, if it is there."""
    trees_of(root)[tree].pop(key, None)


@dataclass(frozen=True, slots=True)
class ImageFault:
    """A fault: where it is, what is wrong, and what its repair does; `mend` is None if only a backup helps."""

    kind: FaultKind
    where: str
    what: str
    repair: str
    mend: Callable[[Root], object] | None

    def as_dict(self) -> dict[str, Any]:
        """Return the fault as plain data."""
        can = self.mend is not None
        return {"kind": self.kind, "where": self.where, "what": self.what, "repair": self.repair, "can_repair": can}
