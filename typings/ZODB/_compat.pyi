from collections.abc import Callable
from typing import IO, Any

def PersistentUnpickler(
    find_global: Callable[[str, str], Any] | None, load_persistent: Callable[[Any], Any] | None, file: IO[bytes]
) -> Any: ...
