"""What an emulator is started with: its address, its simulated machine, and what Ollama reads from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from batos.emulator.gojson import duration
from batos.emulator.http import Limits
from batos.errors import ConfigError

DEFAULT_PORT = 11434
VERSION = "0.33.0"
FOR_EVER = 2**63 - 1
_FIVE_MINUTES = 300 * 10**9


@dataclass(frozen=True, slots=True)
class Options:
    """An emulator's settings. Port 0 takes a free one; `vram` in GiB (0 is a machine without a GPU).

    `load_s` and `pull_s` are the seconds that a load and a download take, `tok_s` tokens a second (0 is at once),
    `latency_ms` comes before every answer. `parallel` overrides OLLAMA_NUM_PARALLEL. `environ` None is the process'
    own for the command and none for an emulator within a process. `models` are there from the start, as if pulled.
    With `endless` free text never ends by itself, as that of random weights does not.
    """

    host: str = "127.0.0.1"
    port: int = 0
    vram: float = 8.0
    parallel: int | None = None
    load_s: float = 0.0
    tok_s: float = 0.0
    latency_ms: float = 0.0
    pull_s: float = 0.0
    faults: Path | None = None
    registry: Path | None = None
    log: Path | None = None
    store: Path | None = None
    control: bool = False
    endless: bool = False
    models: tuple[str, ...] = ()
    environ: Mapping[str, str] | None = None
    version: str = VERSION
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Settings:
    """The daemon's own variables, read as it reads them; a window of 0 goes by the GPU, `max_loaded` 0 is three."""

    max_queue: int = 512
    parallel: int = 1
    max_loaded: int = 0
    window: int = 0
    keep_alive_ns: int = _FIVE_MINUTES

    @classmethod
    def read(cls, options: Options) -> Settings:
        """From the options' environment; ConfigError for an impossible parallelism."""
        environ = options.environ or {}
        parallel = max(1, _count(environ, "OLLAMA_NUM_PARALLEL", 1)) if options.parallel is None else options.parallel
        if parallel < 1:
            raise ConfigError("--parallel is at least 1", field="parallel")
        return cls(
            _count(environ, "OLLAMA_MAX_QUEUE", 512),
            parallel,
            _count(environ, "OLLAMA_MAX_LOADED_MODELS", 0),
            _count(environ, "OLLAMA_CONTEXT_LENGTH", 0),
            _lasting(environ.get("OLLAMA_KEEP_ALIVE", "")),
        )


def process_environ() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ


def _count(environ: Mapping[str, str], name: str, default: int) -> int:
    """A number as the daemon reads it: what is none falls back to the default."""
    text = environ.get(name, "").strip().strip("\"'")
    return int(text) if text.isdecimal() else default


def _lasting(text: str) -> int:
    """OLLAMA_KEEP_ALIVE in nanoseconds: a duration or whole seconds, negative for ever."""
    text = text.strip().strip("\"'")
    if not text:
        return _FIVE_MINUTES
    try:
        asked = int(text) * 10**9 if text.lstrip("-").isdecimal() else duration(text)
    except ValueError:
        return _FIVE_MINUTES
    return FOR_EVER if asked < 0 else asked
