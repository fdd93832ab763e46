"""The completion of a shell: the verb that prints its script, and the names of the image that it offers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from batos import config
from batos.config import Settings
from batos.protocol.errors import BatosError

#: Seconds that a shell is kept waiting at most.
_PATIENCE = 1.0
#: The most missions that are offered.
_MOST = 50


def mission_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete `last` and the newest missions, as far as a server tells them."""
    found = [CompletionItem("last", help="your newest")]
    lines = _ask_home(ctx, "missions", {"limit": _MOST}).get("missions", ())
    found += [CompletionItem(line["id"], help=f"{line['status']}: {line['text']}") for line in lines]
    return [item for item in found if str(item.value).startswith(incomplete)]


def object_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the names of the image's root and of declared objects, as far as a server tells them."""
    told = _ask_home(ctx, "inspect", {})
    names = (*told.get("objects", ()), *told.get("declared", ()))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def method_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete every slot that ever had a method, as far as a server tells them."""
    lines = _ask_home(ctx, "method_list", {}).get("methods", ())
    found = [CompletionItem(line["method"], help=f"{line['kind']}, {line['state']}") for line in lines]
    return [item for item in found if str(item.value).startswith(incomplete)]


def approval_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the approvals that wait for a person, as far as a server tells them."""
    found = _ask_home(ctx, "approvals", {"limit": _MOST, "status": "asked"})
    named = [
        CompletionItem(each["id"], help=f"{each['object']}.{each['selector']}") for each in found.get("approvals", ())
    ]
    named += [CompletionItem(each["id"], help=each["lever"]) for each in found.get("trials", ())]
    return [item for item in named if str(item.value).startswith(incomplete)]


def _ask_home(ctx: click.Context, verb: str, args: Mapping[str, object]) -> dict[str, Any]:
    """Ask the home's server; return nothing where none runs: a shell completes, it does not complain."""
    try:
        given = {name: value for name, value in ctx.params.items() if name in Settings.model_fields}
        return asyncio.run(asyncio.wait_for(_ask(config.load(flags=given).settings, verb, args), _PATIENCE))
    except (BatosError, OSError, TimeoutError):
        return {}


async def _ask(settings: Settings, verb: str, args: Mapping[str, object]) -> dict[str, Any]:
    from batos.client.clients import AsyncClient  # verbs import this module, and complete nothing

    found = AsyncClient(settings.home, server=settings.named_server or None, starts=False)
    async with found as client:
        return await client.call(verb, args)


#: The completion of an argument, by the field of a verb that it is.
COMPLETIONS: Final[Mapping[str, Callable[..., list[CompletionItem]]]] = {
    "mission": mission_ids,
    "object": object_names,
    "method": method_names,
    "approval": approval_ids,
    "approvals": approval_ids,
}


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
