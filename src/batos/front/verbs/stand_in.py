"""The verb `emulator`: the stand-in for the Ollama daemon, which needs no image and no home."""

from __future__ import annotations

from batos.emulator.command import command
from batos.emulator.errors import OptionError
from batos.emulator.options import Options
from batos.emulator.serve import serve
from batos.errors import ConfigError
from batos.front.options import run


def _serve(options: Options) -> int:
    """Serve until a signal comes; raises ConfigError for an option that cannot be."""
    try:
        return run(serve(options))
    except OptionError as error:
        raise ConfigError(error.message, field=error.field, remedy=error.remedy) from error


emulator = command("emulator", _serve, lambda topic: f"`batos help {topic}`")
