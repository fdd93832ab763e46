"""The verb `emulator`: the stand-in for the Ollama daemon, which needs no image and no home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from batos.emulator.options import VERSION
from batos.emulator.serve import Options, serve
from batos.errors import ConfigError
from batos.front.options import run

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback only.")
@click.option("--port", default=11434, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--vram", default=8.0, show_default=True, help="The simulated GPU's memory in GiB; 0 is no GPU.")
@click.option("--parallel", type=click.IntRange(1, 64), help="Requests a runner serves at once.")
@click.option("--load-s", default=0.0, show_default=True, help="Seconds that a model takes to load.")
@click.option(
    "--tok-s", default=0.0, show_default=True, help="Tokens a second, prompts at twenty times that; 0 is at once."
)
@click.option("--latency-ms", default=0.0, show_default=True, help="Milliseconds before every answer.")
@click.option("--pull-s", default=0.0, show_default=True, help="Seconds that a pull takes.")
@click.option("--faults", type=_FILE, help="Faults to inject (JSON; `batos help faults`).")
@click.option("--registry", type=_FILE, help="What can be pulled (JSON; `batos help the-registry`).")
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="Write every request there (NDJSON).")
@click.option("--store", type=click.Path(file_okay=False, path_type=Path), help="Keep models there across restarts.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="A model it has from the start. Repeatable.")
@click.option("--control", is_flag=True, help="Answer /_emulator/fault, /_emulator/log and /_emulator/state.")
@click.option("--endless", is_flag=True, help="Free text goes on to num_predict, as that of random weights does.")
@click.option(
    "--author",
    "authors",
    default="good",
    show_default=True,
    metavar="NAME,...",
    callback=lambda context, option, value: tuple(part.strip() for part in value.split(",")),
    help="Who writes methods, one request each and the last from then on (`batos help who-writes-methods`).",
)
@click.option("--speaks-as", "version", default=VERSION, show_default=True, help="The version that it says it is.")
def emulator(**given: Any) -> int:
    """Run the stand-in for the Ollama daemon. It is not a model: its words are cut from the prompt.

    It reads OLLAMA_MAX_QUEUE, _NUM_PARALLEL, _MAX_LOADED_MODELS, _CONTEXT_LENGTH, _KEEP_ALIVE, _KV_CACHE_TYPE and
    _LOAD_TIMEOUT as the daemon does. OLLAMA_HOST is not read: it may name the real one.
    """
    try:
        return run(serve(Options(**given)))
    except OSError as error:
        raise ConfigError(
            f"port {given['port']} of {given['host']} cannot be used: {error.strerror}",
            field="port",
            remedy="Another daemon may be there; take another port, or --port 0.",
        ) from error
