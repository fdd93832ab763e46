from typing import Generic, TypeVar

from BTrees._tree import KeySet, Tree

_K = TypeVar("_K")
_V = TypeVar("_V")

class OOBTree(Tree[_K, _V], Generic[_K, _V]): ...
class OOBucket(Tree[_K, _V], Generic[_K, _V]): ...
class OOTreeSet(KeySet[_K], Generic[_K]): ...
class OOSet(KeySet[_K], Generic[_K]): ...

BTree = OOBTree
Bucket = OOBucket
TreeSet = OOTreeSet
Set = OOSet
