"""Makes the bridge to the daemon that the settings name, with the deadlines and threads they set."""

from __future__ import annotations

from batos.config import Settings
from batos.inference.ollama.bridge import Bridge, Deadlines


def bridge(settings: Settings) -> Bridge:
    """Return a bridge as configured. The caller opens and closes it."""
    return Bridge(settings.ollama_host, deadlines=deadlines(settings), cpu_threads=settings.cpu_threads or None)


def deadlines(settings: Settings) -> Deadlines:
    """Return the bridge's deadlines as configured."""
    return Deadlines(
        connect=settings.connect_seconds,
        load=settings.load_seconds,
        first_token=settings.first_token_seconds,
        between_tokens=settings.between_tokens_seconds,
        progress=settings.progress_seconds,
    )
