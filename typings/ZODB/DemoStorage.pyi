from typing import Any

from ZODB._storage import Storage

class DemoStorage(Storage):
    base: Any
    changes: Any

    def __init__(
        self,
        name: str | None = ...,
        base: Any = ...,
        changes: Any = ...,
        close_base_on_close: bool | None = ...,
        close_changes_on_close: bool | None = ...,
    ) -> None: ...
    def pop(self) -> Any: ...
    def push(self, changes: Any = ...) -> DemoStorage: ...
