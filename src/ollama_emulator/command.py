"""The emulator's command line and its options."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ollama_emulator.emulator import serve
from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.options import DEFAULT_PORT, VERSION, Options

HELP = """Run the stand-in for the Ollama daemon. The emulator is not a model: its words are cut from the prompt, unless
--gguf names a real one.

It reads OLLAMA_MAX_QUEUE, _NUM_PARALLEL, _MAX_LOADED_MODELS, _CONTEXT_LENGTH, _KEEP_ALIVE, _KV_CACHE_TYPE,
_LOAD_TIMEOUT and _ORIGINS as the daemon does. OLLAMA_HOST is not read: it may name the real one.
"""
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PORT = click.IntRange(0, 65535)


def command(name: str, run: Callable[[Options], int], manual: Callable[[str], str]) -> click.Command:
    """Return a command that calls `run` with the options given.

    `manual` returns the reference to the manual for a topic: "faults", "the-registry" or "authors-of-methods".
    """
    return click.Command(
        name,
        params=[*_machine(), *_contents(manual)],
        callback=lambda **given: run(Options(**given)),
        help=HELP,
    )


def _machine() -> list[click.Parameter]:
    """Return the options for the simulated machine and the address."""
    return [
        _option("--host", default="127.0.0.1", help="Loopback only."),
        _option("--port", default=DEFAULT_PORT, type=_PORT, help="0 takes a free one."),
        _option("--vram", default=8.0, help="The simulated GPU's memory in GiB; 0 is no GPU."),
        click.Option(["--parallel"], type=click.IntRange(1, 64), help="Requests a runner serves at once."),
        _option("--load-s", default=0.0, help="Seconds that a model takes to load."),
        _option("--tok-s", default=0.0, help="Tokens a second, prompts at twenty times that; 0 is at once."),
        _option("--latency-ms", default=0.0, help="Milliseconds before every answer."),
        _option("--pull-s", default=0.0, help="Seconds that a pull takes."),
    ]


def _contents(manual: Callable[[str], str]) -> list[click.Parameter]:
    """Return the options for models, faults, logs and answers."""
    faults, registry, authors = (manual(topic) for topic in ("faults", "the-registry", "authors-of-methods"))
    return [
        click.Option(["--faults"], type=_FILE, help=f"Faults to inject (JSON; {faults})."),
        click.Option(["--registry"], type=_FILE, help=f"What can be pulled (JSON; {registry})."),
        click.Option(["--log"], type=_NEW_FILE, help="Write every request there (NDJSON)."),
        click.Option(["--store"], type=_FOLDER, help="Keep models there across restarts."),
        click.Option(
            ["--model", "models"], multiple=True, metavar="NAME", help="A model it has from the start. Repeatable."
        ),
        click.Option(
            ["--gguf"],
            multiple=True,
            metavar="FILE|NAME",
            help="Answer with this real model, by llama.cpp: a file, or a name in the cache that `make real` fills. "
            "Given twice: one that writes, one embedder.",
        ),
        _flag("--control", help="Answer /_emulator/fault, /_emulator/log and /_emulator/state."),
        _flag("--endless", help="Free text goes on to num_predict, as that of random weights does."),
        _option(
            "--author",
            "authors",
            default="good",
            metavar="NAME,...",
            callback=lambda context, option, value: tuple(part.strip() for part in value.split(",")),
            help=f"Who writes methods, one request each and the last from then on ({authors}).",
        ),
        _option("--speaks-as", "version", default=VERSION, help="The version that it says it is."),
    ]


def _option(*names: str, **given: Any) -> click.Option:
    return click.Option(names, show_default=True, **given)


def _flag(name: str, **given: Any) -> click.Option:
    return click.Option([name], is_flag=True, **given)


def _run(options: Options) -> int:
    """Serve until a signal ends it, and return 0.

    Raises: click.UsageError: an option is invalid.
    """
    try:
        return asyncio.run(serve(options))
    except OptionError as error:
        raise click.UsageError(f"{error.message}. {error.remedy}") from error


def _in_readme(topic: str) -> str:
    return f"'{topic.replace('-', ' ').capitalize()}' in the README"


def main() -> None:
    """Run the command with this process' arguments and exit."""
    command("ollama-emulator", _run, _in_readme)()
