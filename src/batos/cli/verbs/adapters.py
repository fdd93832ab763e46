"""The verbs about adapters: list what is there, check it, choose which one a persona thinks with."""

from __future__ import annotations

import click

from batos.cli.declared import ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall, common, run, with_server
from batos.cli.wrong_usage import Subverbs
from batos.verbs.server_verbs import ADAPTERS_USE


@click.group(cls=Subverbs)
def adapters() -> None:
    """List, check and choose the adapters that personas think with."""


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


@adapters.command(short_help="Choose which one a persona thinks with.")
@click.argument("persona", type=given_name)
@click.argument("name", metavar="NAME|none", type=given_name)
@with_server
def use(called: VerbCall, persona: str, name: str) -> int:
    """Choose the adapter that a persona thinks with from its next mission on, or `none` for its bare base."""
    told = run(ask_once(open_door(called), ADAPTERS_USE, {"persona": persona, "name": name}))
    if called.console.as_json:
        called.console.document(told)
        return 0
    if not called.quiet:
        chosen = told["adapter"]
        said = "its bare base" if chosen is None else f"the adapter {chosen}"
        when = "from its next mission on" if told["changed"] else "already"
        called.console.write(f"{told['persona']} thinks with {said} {when}.")
        for note in told["notes"]:
            called.console.write(f"  {note}")
    return 0
