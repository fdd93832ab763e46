from typing import Generic, TypeVar

from BTrees._tree import KeySet, Tree

_K = TypeVar("_K")

class OIBTree(Tree[_K, int], Generic[_K]): ...
class OIBucket(Tree[_K, int], Generic[_K]): ...
class OITreeSet(KeySet[_K], Generic[_K]): ...
class OISet(KeySet[_K], Generic[_K]): ...

BTree = OIBTree
Bucket = OIBucket
TreeSet = OITreeSet
Set = OISet
