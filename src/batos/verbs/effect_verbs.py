"""The verbs of grants and effects: what missions may do in the world, and what they did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from batos.protocol.effect_documents import AddedGrant, EffectDocument, EffectList, GrantList, RevokedGrant
from batos.protocol.wire_messages import Asker, Name, Place, StrictModel
from batos.terminal.layout import Column, listing, plain
from batos.terminal.short_names import local_time
from batos.verbs.wire_verb import Noun, WireVerb

GRANTS_NOUN: Final = Noun(
    "grants",
    """Let missions act on a folder or a program of this machine, and take that back.

    Without a grant no mission changes anything in the world. A mission reaches a grant only if its asker names it:
    --grant NAME.""",
    default="list",
)
EFFECTS_NOUN: Final = Noun(
    "effects",
    "List what missions did in the world, or are about to do: `effects [MISSION]`, `effects settle ID done|undone`.",
    default="list",
)


class GrantsArgs(StrictModel):
    """List the grants: what missions may be allowed to do in the world."""

    user: Asker = Field(default=None, description="Only those of this user.")


def grants_text(told: GrantList) -> str:
    """Write a list of grants."""
    columns: Mapping[str, Column] = {
        "grant": "name", "answers": "selector", "target": "target", "sink": "sink", "of": "user",
        "since": lambda each: local_time(each["granted_at"]),
        "for": lambda each: "schedules too" if each["unattended"] else "",
    }  # fmt: skip
    none = "Nothing is granted: missions cannot act on the world. `batos grants add file DIR` grants a folder."
    return listing(told["grants"], columns, none)


class GrantsAddArgs(StrictModel):
    """Let missions that name the grant act on a folder, or on an address of the server's machine.

    Such missions append to files below a folder (file DIR), or post JSON to a program of this machine (http URL). A
    program gets each effect with an Idempotency-Key, and does what comes under one key once: so nothing happens twice
    after a crash. Or they ask an API that a text describes (api URL): the mind makes a tool of the description.
    """

    kind: Literal["file", "http", "api"] = Field(
        description="`file`: append to files; `http`: post to a program; `api`: ask a described API."
    )
    target: Place = Field(description="The whole path of a folder, or an http address.")
    description: Place | None = Field(
        default=None,
        description="The file in which the API is described; absent: the codex declares the object of this name.",
    )
    secret_header: Name | None = Field(
        default=None, description="The header in which the API wants the secret of HOME/secrets/NAME."
    )
    name: Name | None = Field(default=None, description="The grant's name; absent: made of the target's.")
    blind: bool = Field(default=False, description="The program does not know keys: after a crash a person is asked.")
    unattended: bool = Field(default=False, description="Missions of schedules may act by it too.")
    user: Asker = Field(default=None, description="The user whose missions may name it; absent: the server's.")


def granted_text(told: AddedGrant) -> str:
    """Write what a grant allows, and how it is used."""
    grant = told["grant"]
    if grant["kind"] == "api":
        calls = "\n".join(f"batos send {grant['name']} {plain(each)} --grant {grant['name']}" for each in told["calls"])
        asks = f"{grant['name']} asks {plain(grant['target'])}, for missions that name it:"
        return f"{asks}\n{calls}\nA question that names the grant may use it too: batos ask --grant {grant['name']} ..."
    does, example = "posts to", '\'{"text": "Hello."}\''
    touches = "Nothing else of this machine is reached by it, and no redirection is followed."
    if grant["kind"] == "file":
        does, example = "appends to files below", '"notes.txt" "A line."'
        touches = (
            "It makes new files there and appends to any that is there, but for hidden ones, links, programs and "
            "scripts, and files from which builds and systems take orders."
        )
    whose = ", also those of schedules" if grant["unattended"] else ""
    return (
        f"{grant['name']} {does} {plain(grant['target'])}, for missions that name it{whose}:\n"
        f"batos send {grant['name']} {grant['selector']} {example} --grant {grant['name']}\n{touches}"
    )


class GrantsRevokeArgs(StrictModel):
    """Take a grant back: what was staged under it and is not begun fails."""

    name: Name = Field(description="The grant's name.")
    user: Asker = Field(default=None, description="Only if it is this user's.")


class EffectsArgs(StrictModel):
    """List effects on the world: staged, released, failed and unknown ones, the newest first.

    With MISSION only those of one. Each stands with what it does, its state, and what came of it.
    """

    mission: Name | None = Field(default=None, description="Only those of this mission; `last`, `last-1`.")
    limit: int = Field(default=50, ge=1, le=10_000, description="Most effects in the list.")
    user: Asker = Field(default=None, description="Only those of this user's missions.")


def effects_text(told: EffectList) -> str:
    """Write a list of effects, and what to do about those that are unknown."""
    columns: Mapping[str, Column] = {
        "effect": "effect", "grant": "grant", "what": "what", "state": "state", "tries": "attempts",
        "outcome": _outcome_text,
    }  # fmt: skip
    lines = [listing(told["effects"], columns, "No mission has acted on the world.")]
    unknown = next((each["effect"] for each in told["effects"] if each["state"] == "unknown"), None)
    if unknown is not None:
        lines.append(f"Look whether it happened, then: batos effects settle {unknown} done (or: undone)")
    return "\n".join(lines)


def _outcome_text(effect: EffectDocument) -> str:
    outcome = effect["outcome"] or {}
    if "error" in outcome:
        came = outcome["error"]["message"]
    else:
        came = str(outcome.get("reason") or ", ".join(f"{key} {value}" for key, value in outcome.items()))[:120]
    waits = f"waits for {effect['host']}" if effect.get("host") else ""
    return "; ".join(filter(None, (came, waits)))


class EffectsSettleArgs(StrictModel):
    """Say of an effect that is unknown whether it happened.

    After `undone` another mission may do it again.
    """

    effect: Name = Field(description="The effect's id.")
    outcome: Literal["done", "undone"] = Field(description="`done`: it happened; `undone`: it did not.")
    user: Asker = Field(default=None, description="The user who answers; absent: the server's own user.")


def settled_text(told: EffectDocument) -> str:
    """Write what is recorded of an effect now."""
    happened = "happened" if told["state"] == "released" else "did not happen; another mission may do it"
    return f"{told['effect']} {happened}."


GRANTS: Final = WireVerb("grants", GrantsArgs, "grants list", grants_text, reads=True)
GRANTS_ADD: Final = WireVerb(
    "grants_add", GrantsAddArgs, "grants add KIND TARGET", granted_text, governs=True,
    examples=(
        "batos grants add file ./notes", "batos grants add http http://127.0.0.1:8080/inbox --name inbox",
        "batos grants add api http://127.0.0.1:9000 --name weather --description weather.md",
    ),
)  # fmt: skip
GRANTS_REVOKE: Final = WireVerb[GrantsRevokeArgs, RevokedGrant](
    "grants_revoke", GrantsRevokeArgs, "grants revoke NAME", "{revoked[name]} is revoked.", governs=True
)
EFFECTS: Final = WireVerb("effects", EffectsArgs, "effects list [MISSION]", effects_text, reads=True)
EFFECTS_SETTLE: Final = WireVerb(
    "effects_settle", EffectsSettleArgs, "effects settle EFFECT OUTCOME", settled_text, governs=True
)
