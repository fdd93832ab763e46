from collections.abc import Callable
from typing import Any

def resolve_uri(uri: str) -> tuple[Callable[[], Any], dict[str, Any]]: ...
