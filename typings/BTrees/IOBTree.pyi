from typing import Generic, TypeVar

from BTrees._tree import KeySet, Tree

_V = TypeVar("_V")

class IOBTree(Tree[int, _V], Generic[_V]): ...
class IOBucket(Tree[int, _V], Generic[_V]): ...
class IOTreeSet(KeySet[int]): ...
class IOSet(KeySet[int]): ...

BTree = IOBTree
Bucket = IOBucket
TreeSet = IOTreeSet
Set = IOSet
