"""The verb `completion`."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

#: The shells by name, each with the class that writes its script.
_SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print the script by which a SHELL completes verbs, options, personas, and ids if a server runs.

    \b
    bash   batos completion bash > ~/.local/share/bash-completion/completions/batos
    zsh    batos completion zsh > ~/.zfunc/_batos     (with ~/.zfunc in fpath, before compinit)
    fish   batos completion fish > ~/.config/fish/completions/batos.fish
    """
    root = ctx.find_root().command
    made = _SHELLS[shell](root, {}, "batos", "_BATOS_COMPLETE")
    # Not `source`: it asks the shell that is installed here for its version, and the script may be for another machine.
    click.echo(made.source_template % made.source_vars())
    return 0
