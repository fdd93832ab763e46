"""BAT OS: a local-first mind that lives in a database and thinks through Ollama."""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from batos.cognition.brief import as_file
    from batos.errors import BatosError
    from batos.front.client.asynchronous import AsyncClient
    from batos.front.client.results import Mission
    from batos.front.client.synchronous import Client

__version__ = "0.1.0"
__all__ = ["AsyncClient", "BatosError", "Client", "Mission", "as_file"]

#: Loaded when they are first asked for: `import batos` alone loads no library.
_PLACES = {
    "AsyncClient": "batos.front.client.asynchronous",
    "BatosError": "batos.errors",
    "Client": "batos.front.client.synchronous",
    "Mission": "batos.front.client.results",
    "as_file": "batos.cognition.brief",
}


def __getattr__(name: str) -> object:
    """Give a name of `__all__`."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
