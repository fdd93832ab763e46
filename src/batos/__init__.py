"""BAT OS: a local-first mind that lives in a database and thinks through Ollama."""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from batos.client.clients import AsyncClient, Client
    from batos.client.named_documents import Mission
    from batos.client.tool_functions import ToolUse, always, read, tool
    from batos.protocol.brief import as_file
    from batos.protocol.errors import BatosError
    from batos.version import __version__ as __version__

__all__ = ["AsyncClient", "BatosError", "Client", "Mission", "ToolUse", "always", "as_file", "read", "tool"]

#: Loaded when they are first asked for: `import batos` alone loads no library.
_PLACES = {
    "AsyncClient": "batos.client.clients",
    "BatosError": "batos.protocol.errors",
    "Client": "batos.client.clients",
    "Mission": "batos.client.named_documents",
    "__version__": "batos.version",
    "ToolUse": "batos.client.tool_functions",
    "always": "batos.client.tool_functions",
    "as_file": "batos.protocol.brief",
    "read": "batos.client.tool_functions",
    "tool": "batos.client.tool_functions",
}


def __getattr__(name: str) -> object:
    """Give a name of `__all__`."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
