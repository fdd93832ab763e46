"""Damage: which errors of reading say that a database is not what was written, and what a person is told."""

from __future__ import annotations

import struct
from pickle import UnpicklingError

from ZODB.FileStorage.FileStorage import CorruptedFileStorageError
from ZODB.FileStorage.format import CorruptedError
from ZODB.POSException import POSError, POSKeyError, StateLoadError

from batos.errors import BatosError, ImageDamaged

REMEDY = "Nothing was changed. Keep a copy of the whole home, then bring back its last backup."

#: What opening a file that was not written by this storage may raise.
OPENING = (POSError, CorruptedError, UnpicklingError, KeyError, ValueError, OverflowError, EOFError, struct.error)

_READING = (POSKeyError, StateLoadError, CorruptedError, CorruptedFileStorageError)


def as_damage(error: BaseException) -> ImageDamaged | None:
    """A storage's error of reading as ImageDamaged; None if it is one of ours, a conflict, or of another kind."""
    if isinstance(error, BatosError) or not isinstance(error, _READING):
        return None
    # StateLoadError has no words of its own.
    told = str(error) or repr(error.__cause__ or error)
    return ImageDamaged(f"the database cannot be read ({type(error).__name__}: {told})", remedy=REMEDY)
