from typing import Generic, TypeVar

from BTrees._tree import KeySet, Tree

_K = TypeVar("_K")

class OLBTree(Tree[_K, int], Generic[_K]): ...
class OLBucket(Tree[_K, int], Generic[_K]): ...
class OLTreeSet(KeySet[_K], Generic[_K]): ...
class OLSet(KeySet[_K], Generic[_K]): ...

BTree = OLBTree
Bucket = OLBucket
TreeSet = OLTreeSet
Set = OLSet
