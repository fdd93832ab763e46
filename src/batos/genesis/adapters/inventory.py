"""The contents of an adapters folder as values, and the digests of its large files, computed once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import time_ns
from typing import Any, Literal, NamedTuple

from batos import private_files

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


#: A file changed within this time may change again without its mark telling; its digest is not written down.
_SETTLED_NS = 2_000_000_000
_MOST_BYTES = 4 << 20


class FileMark(NamedTuple):
    """Tells one content of a file from another without reading it: bytes, both times of change, inode.

    The second time is the system's own: a copy that keeps the first one, as `cp -p` and archives make, still changes
    it.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def mark(path: Path) -> FileMark:
    """Return the mark of a file or folder.

    Raises: OSError: there is none.
    """
    found = path.stat()
    return FileMark(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def is_settled(seen: FileMark) -> bool:
    """Test if a file was last changed so long ago that another change would show in its mark."""
    return seen.mtime_ns < time_ns() - _SETTLED_NS


class Digests:
    """`sha256:<64 hex>` by path and mark, kept in a file that may be lost or removed at any time.

    With None they live only as long as this object.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, tuple[FileMark, str]] = _read(path) if path is not None else {}
        self._wanted: set[str] = set()
        self._changed = False

    def digest(self, path: Path) -> str:
        """Return the digest of a file's present content.

        Raises: OSError: the file cannot be read.
        """
        key = str(path.absolute())
        self._wanted.add(key)
        known = self._known.get(key)
        while True:
            before = mark(path)
            if known is not None and known[0] == before:
                return known[1]
            with path.open("rb") as file:
                digest = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            # A file that was written meanwhile is read again: its mark would belong to other content.
            if mark(path) == before:
                break
        self._known[key] = before, digest
        self._changed = True
        return digest

    def save(self) -> None:
        """Write down what is known of the files that were asked for; whatever fails only costs time later."""
        gone = self._known.keys() - self._wanted
        if self._path is None or not (self._changed or gone):
            return
        files = {key: [*seen, digest] for key, (seen, digest) in sorted(self._known.items())
                 if key in self._wanted and is_settled(seen)}  # fmt: skip
        text = json.dumps({"v": 1, "files": files}, indent=1)
        try:
            private_files.write_shared(self._path, text)
        except OSError:
            return
        self._changed = False


def _read(path: Path) -> dict[str, tuple[FileMark, str]]:
    """Read the stored digests; return none if the file is not in our format."""
    if not path.is_file():  # nor is a pipe opened, which would wait for somebody to write
        return {}
    try:
        with path.open("rb") as file:
            found: Any = json.loads(file.read(_MOST_BYTES))
        rows = found["files"].items() if found["v"] == 1 else ()
        return {str(key): (FileMark(*map(int, row[:4])), _digest(row[4])) for key, row in rows}
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return {}


def _digest(value: object) -> str:
    if isinstance(value, str) and len(value) == 71 and value.startswith("sha256:"):
        return value
    raise ValueError("no digest")
