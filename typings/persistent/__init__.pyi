from typing import Any

UPTODATE: int
CHANGED: int
GHOST: int
STICKY: int

class Persistent:
    _p_changed: bool | None
    _p_estimated_size: int
    _p_jar: Any
    _p_mtime: float | None
    _p_oid: bytes | None
    _p_serial: bytes
    _p_state: int
    _p_status: str
    _p_sticky: bool

    def _p_activate(self) -> None: ...
    def _p_deactivate(self) -> None: ...
    def _p_invalidate(self) -> None: ...
    # The three by which a __getattribute__ override finds out what is not its business.
    def _p_getattr(self, name: str) -> bool: ...
    def _p_setattr(self, name: str, value: object) -> bool: ...
    def _p_delattr(self, name: str) -> bool: ...
    def __getstate__(self) -> Any: ...
    def __setstate__(self, state: Any) -> None: ...
