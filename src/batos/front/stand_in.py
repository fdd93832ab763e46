"""The verb `emulator`: the stand-in for the Ollama daemon, which needs no image and no home."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from batos.emulator.options import VERSION
from batos.emulator.serve import Options, serve
from batos.errors import ConfigError
from batos.front.options import run


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Loopback only.")
@click.option("--port", default=11434, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--vram", default=8.0, show_default=True, help="The simulated GPU's memory in GiB; 0 is no GPU.")
@click.option("--parallel", type=click.IntRange(1, 64), help="Requests a runner serves at once.")
@click.option("--load-s", default=0.0, show_default=True, help="Seconds that a model takes to load.")
@click.option("--tok-s", default=0.0, show_default=True, help="Tokens a second; 0 is at once.")
@click.option("--latency-ms", default=0.0, show_default=True, help="Milliseconds before every answer.")
@click.option("--faults", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Faults to inject (JSON).")
@click.option(
    "--registry", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="What can be pulled (JSON)."
)
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), help="Write every request there (NDJSON).")
@click.option("--store", type=click.Path(file_okay=False, path_type=Path), help="Keep models there across restarts.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="A model it has from the start. Repeatable.")
@click.option("--endless", is_flag=True, help="Free text never ends by itself, as that of random weights does not.")
@click.option("--speaks-as", "version", default=VERSION, show_default=True, help="The version of Ollama it says it is.")
@click.option("--control", is_flag=True, help="Answer /_emulator/fault and /_emulator/log.")
def emulator(**given: Any) -> int:
    """Run the stand-in for the Ollama daemon. It is not a model: its words are cut from the prompt."""
    try:
        return run(serve(Options(**given)))
    except OSError as error:
        raise ConfigError(
            f"port {given['port']} of {given['host']} cannot be used: {error.strerror}",
            field="port",
            remedy="Another daemon may be there; take another port, or --port 0.",
        ) from error
