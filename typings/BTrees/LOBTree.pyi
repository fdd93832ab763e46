from typing import Generic, TypeVar

from BTrees._tree import KeySet, Tree

_V = TypeVar("_V")

class LOBTree(Tree[int, _V], Generic[_V]): ...
class LOBucket(Tree[int, _V], Generic[_V]): ...
class LOTreeSet(KeySet[int]): ...
class LOSet(KeySet[int]): ...

BTree = LOBTree
Bucket = LOBucket
TreeSet = LOTreeSet
Set = LOSet
