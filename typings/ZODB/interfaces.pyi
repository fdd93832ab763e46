from typing import Any

IBlobStorage: Any
IStorage: Any
IStorageUndoable: Any
IStorageCurrentRecordIteration: Any
