from collections import UserDict
from typing import TypeVar

from persistent import Persistent

_K = TypeVar("_K")
_V = TypeVar("_V")

class PersistentMapping(Persistent, UserDict[_K, _V]): ...

PersistentDict = PersistentMapping
