"""The options of an emulator: its address, its simulated machine, and the daemon's environment variables."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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
    """The settings of an emulator. Port 0 takes a free one; `vram` is in GiB (0: no GPU).

    `load_s` and `pull_s` are the seconds of a load and of a download. `tok_s` is in tokens a second (0: no delay), and
    `latency_ms` delays every answer. `parallel` overrides OLLAMA_NUM_PARALLEL. An `environ` of None is the process' own
    environment for the command, and empty for an emulator in a process. `models` exist from the start, as if pulled.

    With `endless` answers resemble those of random weights: free text never ends, there is no thinking and no tool
    call. `authors` write the code that requests ask for, each once and the last from then on (docs/emulator.md).
    `embedder` returns the vector of a text and is called in a thread; without it texts are embedded by hashing.
    `gguf` has the files of real models, or their names in the user's cache, which answer by llama.cpp in place of the
    invented words and vectors: at most one that writes and one embedder.
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
    gguf: Path | str | Sequence[Path | str] = ()
    environ: Mapping[str, str] | None = None
    version: str = VERSION
    limits: HttpLimits = field(default_factory=HttpLimits)


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """The daemon's environment variables, read as the daemon reads them.

    A `window` of 0 depends on the GPU; a `max_loaded` of 0 means three. `warnings` are about values that the daemon
    could not read and replaced by the default, as in its log.
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
        """Read the settings from the environment in the options. Raises: OptionError: an option is out of range."""
        for name in _MEASURES:
            if not 0 <= getattr(options, name) <= _MOST:
                flag = "--" + name.replace("_", "-")
                raise OptionError(f"{flag} is a number from 0 to {_MOST:g}", field=name)
        for author in options.authors or ("",):
            if author not in AUTHORS:
                raise OptionError(
                    f"there is no author {author[:60]!r}", field="author", remedy=f"There are {', '.join(AUTHORS)}."
                )
        if options.gguf:
            _refuse_beside_real(options)
        if options.parallel is not None and options.parallel < 1:
            raise OptionError("--parallel is at least 1", field="parallel")
        found = _Variables(options.environ or {})
        parallel = max(1, found.count("OLLAMA_NUM_PARALLEL", 1))
        return cls(
            found.count("OLLAMA_MAX_QUEUE", 512),
            parallel if options.parallel is None else options.parallel,
            found.count("OLLAMA_MAX_LOADED_MODELS", 0),
            found.count("OLLAMA_CONTEXT_LENGTH", 0),
            found.duration_ns("OLLAMA_KEEP_ALIVE", zero_is_for_ever=False),
            found.duration_ns("OLLAMA_LOAD_TIMEOUT", zero_is_for_ever=True),
            found.text("OLLAMA_KV_CACHE_TYPE"),
            tuple(found.warnings),
        )


def _refuse_beside_real(options: Options) -> None:
    """Check the options beside `gguf`. Raises: OptionError: one of them is for invented answers only."""
    given = {
        "endless": options.endless,
        "tok_s": options.tok_s > 0,
        "author": options.authors != (GOOD,),
    }
    for name in (name for name, is_given in given.items() if is_given):
        flag = "--" + name.replace("_", "-")
        raise OptionError(
            f"{flag} is for invented answers, and --gguf names a real model, which has its own words and speed",
            field=name,
            remedy=f"Leave out {flag}, or --gguf.",
        )


def process_environ() -> Mapping[str, str]:
    """Return the environment of this process."""
    return os.environ


@dataclass(slots=True)
class _Variables:
    """An environment as the daemon reads it: blanks and quotation marks around a value are ignored."""

    environ: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        return self.environ.get(name, "").strip().strip("\"'")

    def count(self, name: str, default: int) -> int:
        """Return an unsigned 64-bit number; for anything else add a warning and return the default."""
        text = self.text(name)
        if not text:
            return default
        if text.isascii() and text.isdigit() and int(text) < 2**64:
            return int(text)
        self.warnings.append(f"invalid environment variable, using default: {name}={text!r}, default {default}")
        return default

    def duration_ns(self, name: str, *, zero_is_for_ever: bool) -> int:
        """Return a duration in nanoseconds, given as in Go or in whole seconds; five minutes for any other text.

        Negative means for ever, and with `zero_is_for_ever` zero does too.
        """
        text = self.text(name)
        asked = _FIVE_MINUTES
        try:
            asked = duration(text)
        except ValueError:
            digits = text[1:] if text[:1] in ("-", "+") else text
            if digits.isascii() and digits.isdigit():
                asked = max(-FOR_EVER, min(int(text) * 10**9, FOR_EVER))
        return FOR_EVER if asked < 0 or (zero_is_for_ever and not asked) else asked
