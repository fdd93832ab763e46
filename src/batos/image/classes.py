"""The allow-list: the only classes that a database of ours may load, the same as in docs/image-format.md."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from ZODB.POSException import POSError

from batos.errors import ForbiddenClass

#: Our own classes, by module and name. What each holds is written in docs/image-format.md.
OURS: frozenset[tuple[str, str]] = frozenset(
    {
        ("batos.image.records", "Attachment"),
        ("batos.image.records", "Brief"),
        ("batos.image.records", "Status"),
        ("batos.inference.journal", "Entry"),
        ("batos.inference.journal", "MissionLog"),
        ("batos.objects.method", "Intent"),
        ("batos.objects.method", "Method"),
        ("batos.objects.method", "Primitive"),
        ("batos.objects.prototype", "UvmObject"),
    }
)

#: Containers of the libraries, which hold nothing but data.
LIBRARIES: frozenset[tuple[str, str]] = frozenset(
    {
        ("BTrees.IOBTree", "IOBTree"),
        ("BTrees.IOBTree", "IOBucket"),
        ("BTrees.OOBTree", "OOBTree"),
        ("BTrees.OOBTree", "OOBucket"),
        ("BTrees.OOBTree", "OOSet"),
        ("BTrees.OOBTree", "OOTreeSet"),
        ("ZODB.blob", "Blob"),
        ("builtins", "frozenset"),
        ("builtins", "set"),
        ("persistent.list", "PersistentList"),
        ("persistent.mapping", "PersistentMapping"),
    }
)

ALLOWED: frozenset[tuple[str, str]] = OURS | LIBRARIES


#: Pickle's own names for builtins, as protocol 3 of ZODB's pickler still writes them.
_OLD_NAMES = {"__builtin__": "builtins"}


class _Refused(ForbiddenClass, POSError):
    """A ForbiddenClass that ZODB passes on: it wraps what is no POSError in one of its own."""


def class_factory(connection: object, module: str, name: str) -> Any:
    """The class that a record names; raises ForbiddenClass for every class that is not on the list.

    ZODB asks here for each global of each pickle, so nothing else is ever imported or called on load.
    """
    return _allowed(_OLD_NAMES.get(module, module), name)


@cache
def _allowed(module: str, name: str) -> Any:
    if (module, name) not in ALLOWED:
        raise _Refused(f"the database names the class {module}.{name}, which it may not load")
    return getattr(importlib.import_module(module), name)
