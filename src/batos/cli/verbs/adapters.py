"""The verbs about adapters: list what is there, check it, choose which one a persona thinks with."""

from __future__ import annotations

import click

from batos.cli.command_line import given_name
from batos.cli.declared import group
from batos.cli.verb_options import VerbCall, common
from batos.verbs import server_verbs

adapters = group(server_verbs.ADAPTERS_NOUN, server_verbs)


@adapters.command("list", short_help="Show every adapter, and whether it is in use.")
@common
def list_(called: VerbCall) -> int:
    """Show every adapter: its persona, its size, its base, and if it is in use."""
    from batos.cli.verbs import adapter_folder

    return adapter_folder.tell_all(called)


@adapters.command(short_help="Tell everything that is wrong with them.")
@click.argument("which", metavar="[PERSONA[/NAME]]", type=given_name, required=False)
@common
def check(called: VerbCall, which: str | None) -> int:
    """Check files, header and fit of all adapters, or of a persona's; exit 1 when something is wrong.

    Adapters are compared with their bases in Ollama; if Ollama cannot be asked, the verb reports that.
    """
    from batos.cli.verbs import adapter_folder

    return adapter_folder.check(called, which or "")


@adapters.command(short_help="Write a PEFT adapter as GGUF beside it.")
@click.argument("which", metavar="PERSONA/NAME", type=given_name)
@common
def convert(called: VerbCall, which: str) -> int:
    """Write a PEFT adapter as GGUF beside it, as PERSONA/NAME-gguf, for the base that Ollama has.

    The daemon's own conversion spoils queries and keys on bases of the llama family, and refuses most others.
    """
    from batos.cli.verbs import adapter_folder

    return adapter_folder.convert(called, which)
