"""The bridge to the daemon that the settings name, with the deadlines and threads that they say."""

from __future__ import annotations

from batos.config import Settings
from batos.inference.bridge import Bridge, Deadlines


def bridge(settings: Settings) -> Bridge:
    """A bridge as configured; whoever opens it closes it."""
    return Bridge(settings.ollama_host, deadlines=deadlines(settings), cpu_threads=settings.cpu_threads or None)


def deadlines(settings: Settings) -> Deadlines:
    """The bridge's deadlines as configured."""
    return Deadlines(
        connect=settings.connect_seconds,
        load=settings.load_seconds,
        first_token=settings.first_token_seconds,
        between_tokens=settings.between_tokens_seconds,
        progress=settings.progress_seconds,
    )
