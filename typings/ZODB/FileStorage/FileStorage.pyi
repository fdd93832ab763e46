from collections.abc import Callable, Iterator
from typing import IO, Any

from ZODB._storage import Storage

class FileStorage(Storage):
    _file: IO[bytes]
    _file_name: str
    _lock_file: Any

    def __init__(
        self,
        file_name: str,
        create: bool = ...,
        read_only: bool = ...,
        stop: bytes | None = ...,
        quota: int | None = ...,
        pack_gc: bool = ...,
        pack_keep_old: bool = ...,
        packer: Callable[..., Any] | None = ...,
        blob_dir: str | None = ...,
    ) -> None: ...
    def cleanup(self) -> None: ...
    def openCommittedBlobFile(self, oid: bytes, serial: bytes, blob: Any = ...) -> IO[bytes]: ...
    def supportsUndo(self) -> bool: ...
    def undo(self, transaction_id: bytes, transaction: Any) -> Any: ...
    def undoLog(self, first: int, last: int, filter: Any = ...) -> list[dict[str, Any]]: ...

class FileIterator:
    def __init__(self, filename: str, start: bytes | None = ..., stop: bytes | None = ..., pos: int = ...) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...
    def close(self) -> None: ...
