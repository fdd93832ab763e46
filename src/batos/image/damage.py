"""Damage: recognises the read errors of a damaged database, and gives a person advice."""

from __future__ import annotations

import struct
from pickle import UnpicklingError

from ZODB.FileStorage.FileStorage import CorruptedFileStorageError
from ZODB.FileStorage.format import CorruptedError
from ZODB.POSException import POSError, POSKeyError, StateLoadError

from batos.protocol.errors import BatosError, ImageDamaged

REMEDY = "Nothing was changed. Keep a copy of the whole home, then restore its last backup."

#: Errors of opening a file that this storage did not write.
OPENING = (POSError, CorruptedError, UnpicklingError, KeyError, ValueError, OverflowError, EOFError, struct.error)

_READING = (POSKeyError, StateLoadError, CorruptedError, CorruptedFileStorageError)


def as_damage(error: BaseException) -> ImageDamaged | None:
    """Convert a storage's read error to ImageDamaged; return None for our own errors, for conflicts and for other
    errors.
    """
    if isinstance(error, BatosError) or not isinstance(error, _READING):
        return None
    # StateLoadError has no words of its own.
    told = str(error) or repr(error.__cause__ or error)
    return ImageDamaged(f"the database cannot be read ({type(error).__name__}: {told})", remedy=REMEDY)
