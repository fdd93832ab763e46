"""The name of the key that a home itself has: apart from the keys, since whoever has no client loads no sockets."""

from __future__ import annotations

from typing import Final

#: The client that a home itself is.
OWN: Final = "home"
