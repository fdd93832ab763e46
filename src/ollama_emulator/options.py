"""The options of an emulator: its address, its simulated machine, and the daemon's environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.go.json import duration
from ollama_emulator.http.incoming import HttpLimits
from ollama_emulator.speech.authoring.authors import AUTHORS, GOOD

DEFAULT_PORT = 11434
VERSION = "0.33.0"
FOR_EVER = 2**63 - 1
_FIVE_MINUTES = 300 * 10**9
_MEASURES = ("vram", "load_s", "tok_s", "latency_ms", "pull_s")
_MOST = 1e9


@dataclass(frozen=True, slots=True)
class Options:
    """An emulator's settings. Port 0 takes a free one; `vram` in GiB (0 is a machine without a GPU).

    `load_s` and `pull_s` are the seconds that a load and a download take, `tok_s` tokens a second (0 is at once),
    `latency_ms` comes before every answer. `parallel` overrides OLLAMA_NUM_PARALLEL. `environ` None is the process'
    own for the command and none for an emulator within a process. `models` are there from the start, as if pulled.
    With `endless` answers are as those of random weights: free text never ends, no thought is opened, no tool called.
    `authors` write where a request asks for code: each one time, the last of them from then on (docs/emulator.md).
    `embedder` gives a text its vector, in a thread, where texts' words are hashed otherwise.
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
    authors: tuple[str, ...] = (GOOD,)
    embedder: Callable[[str], list[float]] | None = None
    environ: Mapping[str, str] | None = None
    version: str = VERSION
    limits: HttpLimits = field(default_factory=HttpLimits)


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The daemon's own variables, read as it reads them; a window of 0 goes by the GPU, `max_loaded` 0 is three.

    `warnings` tells of those that it could not read and left at their default, as its log does.
    """

    max_queue: int = 512
    parallel: int = 1
    max_loaded: int = 0
    window: int = 0
    keep_alive_ns: int = _FIVE_MINUTES
    load_timeout_ns: int = _FIVE_MINUTES
    cache_type: str = ""
    warnings: tuple[str, ...] = ()

    @classmethod
    def read(cls, options: Options) -> DaemonSettings:
        """Return the settings in the options' environment.

        Raises: OptionError: an impossible parallelism, size, time or author.
        """
        for name in _MEASURES:
            if not 0 <= getattr(options, name) <= _MOST:
                flag = "--" + name.replace("_", "-")
                raise OptionError(f"{flag} is a number from 0 to {_MOST:g}", field=name)
        for author in options.authors or ("",):
            if author not in AUTHORS:
                raise OptionError(
                    f"there is no author {author[:60]!r}", field="author", remedy=f"There are {', '.join(AUTHORS)}."
                )
        if options.parallel is not None and options.parallel < 1:
            raise OptionError("--parallel is at least 1", field="parallel")
        found = _Variables(options.environ or {})
        parallel = max(1, found.count("OLLAMA_NUM_PARALLEL", 1))
        return cls(
            found.count("OLLAMA_MAX_QUEUE", 512),
            parallel if options.parallel is None else options.parallel,
            found.count("OLLAMA_MAX_LOADED_MODELS", 0),
            found.count("OLLAMA_CONTEXT_LENGTH", 0),
            found.lasting("OLLAMA_KEEP_ALIVE", zero_is_for_ever=False),
            found.lasting("OLLAMA_LOAD_TIMEOUT", zero_is_for_ever=True),
            found.text("OLLAMA_KV_CACHE_TYPE"),
            tuple(found.warnings),
        )


def process_environ() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ


@dataclass(slots=True)
class _Variables:
    """An environment as the daemon reads it: blanks and quotes at the ends are no part of a value."""

    environ: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.environ.get(name, "").strip().strip("\"'")

    def count(self, name: str, default: int) -> int:
        """Return an unsigned number of 64 bits; anything else adds a warning and counts as the default."""
        text = self.text(name)
        if not text:
            return default
        if text.isascii() and text.isdigit() and int(text) < 2**64:
            return int(text)
        self.warnings.append(f"invalid environment variable, using default: {name}={text!r}, default {default}")
        return default

    def lasting(self, name: str, *, zero_is_for_ever: bool) -> int:
        """Return a duration, or whole seconds, in nanoseconds; negative is for ever. Any other text is five minutes."""
        text = self.text(name)
        asked = _FIVE_MINUTES
        try:
            asked = duration(text)
        except ValueError:
            digits = text[1:] if text[:1] in ("-", "+") else text
            if digits.isascii() and digits.isdigit():
                asked = max(-FOR_EVER, min(int(text) * 10**9, FOR_EVER))
        return FOR_EVER if asked < 0 or (zero_is_for_ever and not asked) else asked
