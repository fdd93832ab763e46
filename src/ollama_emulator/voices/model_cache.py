"""The folder of the user's cache that holds real models, each by its name: `make real` fills it, nothing here does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: The embedder beside a model that writes.
EMBEDDER = "all-minilm"


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder by XDG_CACHE_HOME or the home of an environment, or of this process' own."""
    environ = os.environ if environ is None else environ
    cache = Path(environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path(environ.get("HOME") or Path.home(), ".cache")) / "batos" / "models"


def cached_model(name: str, environ: Mapping[str, str] | None = None) -> Path:
    """Return the place of a model's file, which may not be there."""
    return models_folder(environ) / f"{name}.gguf"
