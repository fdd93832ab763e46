"""The verb `emulator`: the stand-in for the Ollama daemon, which needs no image and no home."""

from __future__ import annotations

from batos.cli.verb_options import run
from batos.protocol.errors import ConfigError
from ollama_emulator.command import command
from ollama_emulator.emulator import serve
from ollama_emulator.emulator_errors import OptionError
from ollama_emulator.options import Options


def _serve(options: Options) -> int:
    """Serve until a signal comes; raises ConfigError for an option that cannot be."""
    try:
        return run(serve(options))
    except OptionError as error:
        raise ConfigError(error.message, field=error.field, remedy=error.remedy) from error


emulator = command("emulator", _serve, lambda topic: f"`batos help {topic}`")
