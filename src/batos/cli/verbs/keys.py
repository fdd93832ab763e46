"""The verbs `token` and `keys`: they give a client access to the server, and revoke it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from batos import home_folder
from batos.cli.command_line import DefaultVerb, file_names, given_name
from batos.cli.verb_options import VerbCall, common
from batos.client import addresses
from batos.client.addresses import parse_listening, parse_reachable
from batos.client.keys import KeyFile, Keyring
from batos.config import Settings
from batos.protocol.errors import ConfigError, UsageError
from batos.terminal.layout import table


@click.command()
@click.option("--new", is_flag=True, help="Make a new token; the old one is rejected at once.")
@common
def token(called: VerbCall, new: bool) -> int:
    """Show the token with which a program of this machine connects to the server, and explain its use."""
    settings = called.settings
    ring = Keyring(settings.home)
    found = ring.renew_token() if new else ring.token()
    bound = parse_listening(settings.bind, "bind")
    if called.console.as_json:
        called.console.document({"token": found, "file": str(settings.home / "token"), "bind": str(bound)})
        return 0
    called.console.write(found)
    if not called.quiet:
        called.console.say(f"The token is in {settings.home / 'token'}, readable by its owner alone.")
        if bound.is_loopback:
            called.console.say("Programs of this home need not give it: batos.Client reads it (`batos help python`).")
            called.console.say(
                f"Other programs send it by PLAIN to {bound}, with the user name batos. It is valid on loopback only."
            )
        else:
            called.console.say(f"The token is not valid at {bound}, which is beyond loopback: a key is needed there.")
            called.console.say(
                "Programs of this home need not give one (batos.Client); `batos keys new NAME` makes one for others."
            )
    return 0


@click.group(cls=DefaultVerb, default="list")
def keys() -> None:
    """List the keys of clients on other machines; make and revoke them.

    Without a verb: `list`.
    """


@keys.command("list", short_help="List the keys of clients.")
@common
def list_(called: VerbCall) -> int:
    """List the keys of clients on other machines: name, when each was made, and its public half."""
    found = Keyring(called.settings.home).clients()
    if called.console.as_json:
        shown = [{"name": key.name, "public": key.public, "made": key.made} for key in found]
        called.console.document({"keys": shown})
    elif found:
        called.console.write(table([[key.name, key.made, key.public] for key in found], ("name", "made", "public key")))
    else:
        called.console.say("No client has a key. `batos keys new NAME` makes one, for a server beyond loopback.")
    return 0


@keys.command(short_help="Make a key for a client: of HTTP, or on another machine.")
@click.argument("name", type=given_name)
@click.option(
    "--address", metavar="HOST", help="The address of this machine for the client (default: where the server binds)."
)
@click.option(
    "--out",
    metavar="FILE",
    shell_complete=file_names,
    help="The file of the key (default: NAME.batos-key.json here); - is stdout.",
)
@click.option("--http", "is_for_http", is_flag=True, help="Print a key for HTTP, and make no file.")
@click.option("--person", is_flag=True, help="A person types there: what comes by this key is that person's word.")
@common
def new(called: VerbCall, name: str, address: str | None, out: str | None, is_for_http: bool, person: bool) -> int:
    """Make a key: for a client on another machine, in a file to copy to it; on this machine for one that uses HTTP.

    Where the server is reached from this machine alone, the key is printed, for clients of OpenAI and Ollama. Its
    client may ask, and see what it asked; it may not govern. Else, on the client: `batos VERB --server FILE`,
    BATOS_SERVER, or `server` in batos.toml. Only that file has the secret half.
    """
    if is_for_http and (address or out):
        raise click.UsageError("--http makes no file: leave --address and --out out.")
    if is_for_http or (address is None and out is None and parse_listening(called.settings.bind, "bind").is_loopback):
        return _http_key(called, name, person=person)
    target = Path(out or f"{name}.batos-key.json")
    if out != "-" and target.exists():
        raise UsageError(f"{target} exists", field="out", remedy="Name another file with --out, or remove it.")
    bind = _reachable_address(called.settings, address)
    key = Keyring(called.settings.home).new(name, bind, person=person)
    if out == "-":
        sys.stdout.write(key.text())
        sys.stdout.flush()
        return 0
    _write(called.settings, target, key)
    if called.console.as_json:
        called.console.document({"name": name, "file": str(target), "bind": bind})
    else:
        called.console.write(str(target))
        called.console.say(f"The key is for {bind}. On the client: BATOS_SERVER={target.name} batos status")
        if parse_reachable(bind, "address").is_loopback:
            called.console.say("That is this machine: for a client on another one give its address, --address HOST.")
    return 0


def _http_key(called: VerbCall, name: str, *, person: bool) -> int:
    """Make a key for a client of this machine, which comes in over HTTP, and print it: it is kept nowhere."""
    bound = str(parse_listening(called.settings.bind, "bind"))
    key = Keyring(called.settings.home).new(name, bound, person=person).http_key
    if called.console.as_json:
        called.console.document({"name": name, "key": key})
        return 0
    called.console.write(key)
    if not called.quiet:
        at = called.settings.http
        called.console.say(f"The key of {name} for HTTP; it is shown once. OpenAI's clients: http://{at}/v1, this key.")
        called.console.say(f"The `ollama` command and clients without a key: OLLAMA_HOST=http://{at}/key/{key}")
        called.console.say("A key in an address stands in process lists and in logs of clients.")
        called.console.say(f"`batos keys revoke {name}` ends it at once.")
    return 0


def _write(settings: Settings, target: Path, key: KeyFile) -> None:
    try:
        home_folder.write(target.absolute(), key.text(), new=True)
    except OSError as error:
        Keyring(settings.home).revoke(key.name)
        raise UsageError(
            f"{target} cannot be written: {error.strerror}", field="out", remedy="Name another file with --out."
        ) from error


def _reachable_address(settings: Settings, address: str | None) -> str:
    """Return the address at which a client elsewhere reaches the server; ConfigError if none can.

    A server that runs goes before the settings: it may listen elsewhere.
    """
    bound, running = parse_listening(settings.bind, "bind"), addresses.running_server(settings.home)
    if running is not None and running.bind_by == "curve":
        bound = replace(parse_reachable(running.bind, "server"), is_loopback=False)
    if bound.is_loopback:
        raise ConfigError(
            f"bind is {bound}: nobody on another machine can reach it, and here the token is enough",
            field="bind",
            remedy=f'Let it listen beyond loopback: bind = "tcp://0.0.0.0:{bound.port or 7717}" in batos.toml.',
        )
    if address is None:
        return bound.near
    named = f"[{address}]" if ":" in address and "[" not in address else address
    return str(parse_reachable(f"tcp://{named}:{bound.port}", "address"))


@keys.command(short_help="Revoke the key of a client, at once.")
@click.argument("name", type=given_name)
@common
def revoke(called: VerbCall, name: str) -> int:
    """Revoke a client's key, also on a running server: its requests and streams end within a second."""
    Keyring(called.settings.home).revoke(name)
    if called.console.as_json:
        called.console.document({"name": name, "revoked": True})
    elif not called.quiet:
        called.console.write(f"{name} can no longer connect.")
    return 0
