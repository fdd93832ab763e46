"""The allow-list: the only classes that a database of ours may load, and the damage that reading one may find."""

from __future__ import annotations

import importlib
import io
import re
import struct
from collections.abc import Mapping
from functools import cache
from pickle import UnpicklingError
from typing import Any

from ZODB._compat import PersistentUnpickler
from ZODB.FileStorage.FileStorage import CorruptedFileStorageError
from ZODB.FileStorage.format import CorruptedError
from ZODB.POSException import POSError, POSKeyError, StateLoadError

from batos.protocol.errors import BatosError, ForbiddenClass, ImageDamaged

#: Our own classes, by module and name. docs/image-format.md describes their contents.
OURS: frozenset[tuple[str, str]] = frozenset(
    {
        ("batos.image.records", "Approval"),
        ("batos.image.records", "Archive"),
        ("batos.image.records", "Attachment"),
        ("batos.image.records", "Brief"),
        ("batos.image.records", "Chronicle"),
        ("batos.image.records", "Lineage"),
        ("batos.image.records", "Segment"),
        ("batos.image.records", "Status"),
        ("batos.inference.journal", "Entry"),
        ("batos.inference.journal", "MissionLog"),
        ("batos.objects.method", "Intent"),
        ("batos.objects.method", "Method"),
        ("batos.objects.method", "Primitive"),
        ("batos.objects.prototype", "UvmObject"),
    }
)

#: Names that version 0.1.0 wrote, and the classes of today that they stand for.
FORMER: Mapping[tuple[str, str], tuple[str, str]] = {
    ("batos.image.approvals", "Approval"): ("batos.image.records", "Approval"),
    ("batos.image.methods", "Lineage"): ("batos.image.records", "Lineage"),
}

#: The BTrees by their kinds of key and value: O objects, I L signed and U Q unsigned whole numbers, F floats, fs bytes.
FAMILIES = (
    *("OO", "OI", "OU", "OL", "OQ", "IO", "II", "IF", "IU", "UO", "UU", "UF", "UI"),
    *("LO", "LL", "LF", "LQ", "QO", "QQ", "QF", "QL", "fs"),
)

#: The classes of each family; an object of any of them may be in a slot, and a clone copies it.
KINDS = ("BTree", "Bucket", "TreeSet", "Set")

BTREES: frozenset[tuple[str, str]] = frozenset(
    (f"BTrees.{family}BTree", f"{family}{kind}") for family in FAMILIES for kind in KINDS
)

#: Other containers of the libraries, which hold nothing but data.
LIBRARIES: frozenset[tuple[str, str]] = frozenset(
    {
        ("BTrees.Length", "Length"),
        ("ZODB.blob", "Blob"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("persistent.list", "PersistentList"),
        ("persistent.mapping", "PersistentMapping"),
    }
)

ALLOWED: frozenset[tuple[str, str]] = OURS | LIBRARIES | BTREES


#: Pickle's own names for builtins, as protocol 3 of ZODB's pickler still writes them.
_OLD_NAMES = {"__builtin__": "builtins"}


class _Refused(ForbiddenClass, POSError):
    """A ForbiddenClass that ZODB passes on: it wraps what is no POSError in one of its own."""


def class_factory(connection: object, module: str, name: str) -> Any:
    """Return the class that a stored record names.

    ZODB calls this for each global name in each pickle, so that loading never imports or calls anything else.

    Raises: ForbiddenClass: the class is not on the list.
    """
    return _load_allowed(_OLD_NAMES.get(module, module), name)


@cache
def _load_allowed(module: str, name: str) -> Any:
    module, name = FORMER.get((module, name), (module, name))
    if (module, name) not in ALLOWED:
        raise _Refused(f"the database names the class {module}.{name}, which it may not load")
    return getattr(importlib.import_module(module), name)


#: A name on a line of its own, as a pickle of protocol 3 writes a class: `c`, module, line's end, name, line's end.
_NAME = re.compile(rb"\n(?=([\w.\x80-\xff]{1,80})\n)")
_MODULE = re.compile(rb"c[\w.\x80-\xff]{1,80}\Z")


def _endings() -> dict[bytes, tuple[bytes, ...]]:
    """Return, for each listed class name, the bytes that may stand before that name in a pickle."""
    old = {new: old for old, new in _OLD_NAMES.items()}
    found: dict[bytes, tuple[bytes, ...]] = {}
    for module, name in ALLOWED:
        written = {f"c{module}".encode(), f"c{old.get(module, module)}".encode()}
        found[name.encode()] = (*found.get(name.encode(), ()), *sorted(written))
    return found


_ENDINGS = _endings()


def check_record(record: bytes) -> None:
    """Raise ForbiddenClass if a record that is about to be stored names a class that could not be loaded again.

    Reading every pickle once more would cost as much as making it. So what looks like a class's name is found first;
    where one is not on the list (it may also be a line of somebody's text) the pickle is read, with nothing in it made.
    """
    for found in _NAME.finditer(record):
        module = record[max(0, found.start() - 81) : found.start()]
        if not module.endswith(_ENDINGS.get(found[1], ())) and _MODULE.search(module):
            _read_names(record)
            return


def _read_names(record: bytes) -> None:
    reader = PersistentUnpickler(_inert, lambda reference: None, io.BytesIO(record))
    reader.load()
    reader.load()


class _Inert:
    """Stands for every object of a pickle that is only read for the names in it."""

    def __new__(cls, *arguments: object) -> _Inert:
        return object.__new__(cls)

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def _inert(module: str, name: str) -> type[_Inert]:
    if (_OLD_NAMES.get(module, module), name) not in ALLOWED:
        raise ForbiddenClass(
            f"a {module}.{name} was to be stored, and the database could not load it again",
            remedy="Keep plain data and containers in slots: `batos help image-format` lists them.",
        )
    return _Inert


REMEDY = "Nothing was changed. Keep a copy of the whole home, then restore its last backup."

#: Errors of opening a file that this storage did not write.
OPENING = (POSError, CorruptedError, UnpicklingError, KeyError, ValueError, OverflowError, EOFError, struct.error)

_READING = (POSKeyError, StateLoadError, CorruptedError, CorruptedFileStorageError)


def as_damage(error: BaseException) -> ImageDamaged | None:
    """Convert a storage's read error to ImageDamaged; return None for our own errors, conflicts and others."""
    if isinstance(error, BatosError) or not isinstance(error, _READING):
        return None
    # StateLoadError has no words of its own.
    told = str(error) or repr(error.__cause__ or error)
    return ImageDamaged(f"the database cannot be read ({type(error).__name__}: {told})", remedy=REMEDY)
