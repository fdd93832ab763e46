from collections import UserList
from typing import TypeVar

from persistent import Persistent

_T = TypeVar("_T")

class PersistentList(Persistent, UserList[_T]): ...
