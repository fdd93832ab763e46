"""The contents of an adapters folder as values: adapters that can be made into models, and faults of the others."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["peft", "gguf"]

#: The word by which a person says that a persona thinks with its bare base; no adapter may be called so.
NONE = "none"


@dataclass(frozen=True, slots=True)
class TensorPair:
    """The two halves of one adapted matrix, under the GGUF name of the base's tensor.

    `shape` is what that tensor must have, in GGUF's order (what goes in, what comes out); `written` is the name of
    the first half as it stands in the file.
    """

    tensor: str
    rank: int
    shape: tuple[int, int]
    written: str


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter whose files are sound. `misfits.misfits` checks if it fits a base.

    `files` and `digests` (`sha256:<64 hex>`) are keyed by the names under which the daemon takes them. `rank` is the
    largest, `size` is in bytes. `architecture` and `base` are the adapter's own claims, None if it makes none. `doubts`
    are sentences about things that the daemon will perhaps take otherwise than they were meant.
    """

    persona: str
    name: str
    kind: Kind
    files: Mapping[str, Path]
    digests: Mapping[str, str]
    rank: int
    alpha: float | None
    architecture: str | None
    base: str | None
    pairs: tuple[TensorPair, ...] = field(default=(), repr=False)
    size: int = 0
    doubts: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Return a digest over all files, `sha256:<64 hex>`: other content is another adapter."""
        made_of = json.dumps(sorted(self.digests.items()), separators=(",", ":"))
        return f"sha256:{hashlib.sha256(made_of.encode()).hexdigest()}"

    @property
    def label(self) -> str:
        """Return the name that people see: `ROBIN/warm`."""
        return f"{self.persona}/{self.name}"


@dataclass(frozen=True, slots=True)
class AdapterFault:
    """A reason for which an adapter (or a folder, without a name) is not used; `where` is file, key or tensor."""

    persona: str
    name: str
    what: str
    remedy: str
    where: str

    @property
    def label(self) -> str:
        """Return `ROBIN/warm`, or the part of it that is known."""
        return "/".join(part for part in (self.persona, self.name) if part)

    def __str__(self) -> str:
        where = f" ({self.where})" if self.where else ""
        return f"{self.label}{where}: {self.what}"

    def as_dict(self) -> dict[str, str]:
        """Return the fault as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AdapterInventory:
    """Everything that was found, by persona in the codex's order and by name."""

    adapters: tuple[Adapter, ...] = ()
    faults: tuple[AdapterFault, ...] = ()

    def adapters_of(self, persona: str) -> tuple[Adapter, ...]:
        """Return the sound adapters of a persona."""
        return tuple(adapter for adapter in self.adapters if adapter.persona == persona)

    def find(self, persona: str, name: str) -> Adapter | None:
        """Return the sound adapter of that name, or None. Upper and lower case are the same, as for the daemon."""
        folded = name.casefold()
        return next((each for each in self.adapters_of(persona) if each.name.casefold() == folded), None)

    def without(self, faults: Iterable[AdapterFault]) -> AdapterInventory:
        """Return the inventory with further faults, and without the adapters that have them."""
        further = tuple(faults)
        faulty = {(fault.persona, fault.name) for fault in further}
        sound = tuple(each for each in self.adapters if (each.persona, each.name) not in faulty)
        return AdapterInventory(sound, (*self.faults, *further))


class AdapterFaults(list[AdapterFault]):
    """The faults of one adapter while it is looked at."""

    def __init__(self, persona: str, name: str) -> None:
        super().__init__()
        self._persona = persona
        self._name = name

    def add(self, what: str, remedy: str, where: str = "") -> None:
        """Add a fault."""
        self.append(AdapterFault(self._persona, self._name, what, remedy, where))
