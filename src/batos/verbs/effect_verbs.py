"""The verbs of grants and effects: what missions may do in the world, and what they did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import Field

from batos.protocol.effect_documents import AddedGrant, EffectDocument, EffectList, GrantList, RevokedGrant
from batos.protocol.wire_messages import Asker, Name, Place, StrictModel
from batos.terminal.layout import Column, listing, plain
from batos.terminal.short_names import local_time
from batos.verbs.approval_verbs import visible
from batos.verbs.wire_verb import Noun, WireVerb

GRANTS_NOUN: Final = Noun(
    "grants",
    """Let missions act on a folder or a program, and take that back.

    Without a grant no mission changes anything in the world. A mission reaches a grant only if its asker names it:
    --grant NAME.""",
    default="list",
)
#: Characters of an argument that are shown beside an answer; `batos effects --json` has all.
_MOST_SHOWN: Final = 300
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
    """Let missions that name the grant act on a folder, or on an address.

    Such missions append to files below a folder and write new ones there (file DIR), or post JSON to a program of the
    server's machine, or of another host by https, where each effect asks before (http URL). A program gets each effect
    with an Idempotency-Key, and does what comes under one key once: so nothing happens twice after a crash.
    """

    kind: Literal["file", "http"] = Field(description="`file`: write into files; `http`: post to a program.")
    target: Place = Field(description="The whole path of a folder, or an address.")
    name: Name | None = Field(default=None, description="The grant's name; absent: made of the target's.")
    blind: bool = Field(default=False, description="The program does not know keys: each effect asks before.")
    unattended: bool = Field(default=False, description="Missions of schedules act by it without asking.")
    user: Asker = Field(default=None, description="The user whose missions may name it; absent: the server's.")


def granted_text(told: AddedGrant) -> str:
    """Write what a grant allows, and how it is used."""
    grant = told["grant"]
    does, example = "posts to", '\'{"text": "Hello."}\''
    touches = "Nothing else is reached by it, and no redirection is followed."
    if not grant["target"].startswith("http:") or grant["sink"] == "blind":
        touches += " Each effect waits for your yes."
    if grant["kind"] == "file":
        does, example = "writes into files below", '"notes.txt" "A line."'
        touches = (
            "It makes new files there (write_) and appends to any that is there (append_), but for hidden ones, links, "
            "programs and scripts, and files from which builds and systems take orders."
        )
    whose = ", those of schedules without asking" if grant["unattended"] else ""
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
    if asking := next((each["approval"] for each in told["effects"] if each["approval"]), None):
        lines.append(f"What is asking waits for your yes: batos approvals {asking}, then batos approve (or: reject)")
    unknown = next((each["effect"] for each in told["effects"] if each["state"] == "unknown"), None)
    if unknown is not None:
        lines.append(f"Look whether it happened, then: batos effects settle {unknown} done (or: undone)")
    return "\n".join(lines)


def staged_text(told: EffectList, mission: str, grants: Sequence[str], why: str) -> str:
    """Write what a mission does in the world, as the messages that do it, and how to answer what waits for a yes.

    `why` is the reason for which an order of its question was not carried out.
    """
    if not told["effects"]:
        reason = why or f"the question orders none that {', '.join(grants)} can do, and no method that ran acts by it"
        return f"No effect was staged: {reason} (`batos send`)."
    shown = sorted(told["effects"], key=lambda each: each["effect"])
    waiting = [each for each in shown if each["approval"]]
    lines = [f"{_message_text(each)}: {each['state']}" for each in shown if not each["approval"]]
    if any(each["state"] in ("staged", "releasing") for each in shown):
        lines.append("`batos effects last` tells what came of it.")
    for each in waiting:
        name, because = each["approval"], (each["outcome"] or {}).get("reason", "")
        lines.append(f"{_message_text(each)} waits for your yes, since {because}:")
        lines.append(
            f"`batos approvals {name}` shows it; then `batos approve {name}` or `batos reject {name} --why ...`."
        )
    if len(waiting) > 1:
        lines.append(f"All of them: `batos approve --all-of {mission}`.")
    return "\n".join(lines)


def _message_text(effect: EffectDocument) -> str:
    """Return an effect as the message that does it; a long argument ends in its number of characters."""
    given = ", ".join(_argument_text(each) for each in effect["arguments"].values())
    return f"{effect['grant']} {effect['operation'].rpartition('.')[2]}_({given})"


def _argument_text(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return visible(text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}… ({len(text):,} characters)")


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
    examples=("batos grants add file ./notes", "batos grants add http http://127.0.0.1:8080/inbox --name inbox"),
)  # fmt: skip
GRANTS_REVOKE: Final = WireVerb[GrantsRevokeArgs, RevokedGrant](
    "grants_revoke", GrantsRevokeArgs, "grants revoke NAME", "{revoked[name]} is revoked.", governs=True
)
EFFECTS: Final = WireVerb("effects", EffectsArgs, "effects list [MISSION]", effects_text, reads=True)
EFFECTS_SETTLE: Final = WireVerb(
    "effects_settle", EffectsSettleArgs, "effects settle EFFECT OUTCOME", settled_text, governs=True
)
