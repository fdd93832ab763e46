"""The verbs `grants` and `effects`: what missions may do in the world, and what they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from batos.cli.doors.door import open_door
from batos.cli.render.effect_texts import effects_text, granted_text, grants_text, settled_text
from batos.cli.shared_options import examples, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.verbs.completion import mission_ids
from batos.cli.verbs.show import ask_once
from batos.cli.wrong_usage import DefaultVerb, Subverbs
from batos.protocol.effect_shapes import EFFECTS, EFFECTS_SETTLE, GRANTS, GRANTS_ADD, GRANTS_REVOKE


@click.group(cls=Subverbs)
def grants() -> None:
    """Let missions act on a folder or a program of this machine, and take that back.

    Without a grant no mission changes anything in the world. A mission reaches a grant only if its asker names it:
    --grant NAME.
    """


@grants.command("list", short_help="List the grants.")
@with_server
def list_(called: VerbCall) -> int:
    """List the grants, and what each allows."""
    found = run(ask_once(open_door(called, reads=True), GRANTS, {"user": called.settings.asker}))
    called.answer(found, grants_text)
    return 0


@grants.command(
    short_help="Grant a folder, or an address of this machine.",
    epilog=examples("batos grants add file ./notes", "batos grants add http http://127.0.0.1:8080/inbox --name inbox"),
)
@click.argument("kind", type=click.Choice(["file", "http"]))
@click.argument("target", type=given_name)
@click.option("--name", type=given_name, help="The grant's name; else it is made of the target's.")
@click.option("--blind", is_flag=True, help="The program does not know keys: after a crash a person is asked.")
@with_server
def add(called: VerbCall, kind: str, target: str, name: str | None, blind: bool) -> int:
    """Let missions append to files below a folder (file DIR), or post JSON to a program of this machine (http URL).

    A program gets each effect with an Idempotency-Key, and does what comes under one key once: so nothing happens twice
    after a crash.
    """
    whole = str(Path(target).absolute()) if kind == "file" else target
    args: dict[str, Any] = {"kind": kind, "target": whole, "blind": blind, "user": called.settings.asker}
    found = run(ask_once(open_door(called), GRANTS_ADD, args | ({} if name is None else {"name": name})))
    called.answer(found, granted_text)
    return 0


@grants.command(short_help="Take a grant back.")
@click.argument("name", type=given_name)
@with_server
def revoke(called: VerbCall, name: str) -> int:
    """Take the grant NAME back. Effects that are staged under it and not begun fail."""
    found = run(ask_once(open_door(called), GRANTS_REVOKE, {"name": name, "user": called.settings.asker}))
    called.answer(found, lambda told: f"{told['revoked']['name']} is revoked.")
    return 0


@click.group(cls=DefaultVerb, default="list")
def effects() -> None:
    """List what missions did in the world, or are about to do: `effects [MISSION]`, `effects settle ID done|undone`."""


@effects.command("list", short_help="List effects: staged, released, failed, unknown.")
@click.argument("mission", type=given_name, required=False, shell_complete=mission_ids)
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@with_server
def list_effects(called: VerbCall, mission: str | None, limit: int) -> int:
    """List the newest effects, or those of a MISSION: what each does, its state, and what came of it."""
    args: dict[str, Any] = {"limit": limit, "user": called.settings.asker}
    found = run(ask_once(open_door(called, reads=True), EFFECTS, args | ({"mission": mission} if mission else {})))
    called.answer(found, effects_text)
    return 0


@effects.command(short_help="Say whether an unknown effect happened.")
@click.argument("effect", type=given_name)
@click.argument("outcome", type=click.Choice(["done", "undone"]))
@with_server
def settle(called: VerbCall, effect: str, outcome: str) -> int:
    """Say of an EFFECT that is unknown whether it happened: done, or undone.

    After `undone` another mission may do it again.
    """
    args = {"effect": effect, "outcome": outcome, "user": called.settings.asker}
    called.answer(run(ask_once(open_door(called), EFFECTS_SETTLE, args)), settled_text)
    return 0
