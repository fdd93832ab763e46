"""The texts on grants and effects."""

from __future__ import annotations

from typing import Final

from batos.cli.render.short_names import local_time
from batos.protocol.effect_documents import AddedGrant, EffectDocument, EffectList, GrantList
from batos.terminal.layout import plain, table

_NO_GRANT: Final = "Nothing is granted: missions cannot act on the world. `batos grants add file DIR` grants a folder."


def grants_text(told: GrantList) -> str:
    """Write a list of grants."""
    rows = [
        [
            each["name"],
            each["selector"],
            plain(each["target"]),
            each["sink"],
            each["user"],
            local_time(each["granted_at"]),
        ]
        for each in told["grants"]
    ]
    return table(rows, ("grant", "answers", "target", "sink", "of", "since")) if rows else _NO_GRANT


def granted_text(told: AddedGrant) -> str:
    """Tell what a grant allows, and how it is used."""
    grant = told["grant"]
    does = "appends to files below" if grant["kind"] == "file" else "posts to"
    return (
        f"{grant['name']} {does} {plain(grant['target'])}, for missions that name it:\n"
        f"batos send {grant['name']} {grant['selector']} {_example(grant['kind'])} --grant {grant['name']}"
    )


def _example(kind: str) -> str:
    return '"notes.txt" "A line."' if kind == "file" else '\'{"text": "Hello."}\''


def effects_text(told: EffectList) -> str:
    """Write a list of effects, and what to do about those that are unknown."""
    found = told["effects"]
    rows = [
        [each["effect"], each["grant"], plain(each["what"]), each["state"], str(each["attempts"]), _outcome_text(each)]
        for each in found
    ]
    if not rows:
        return "No mission has acted on the world."
    lines = [table(rows, ("effect", "grant", "what", "state", "tries", "outcome"))]
    unknown = next((each["effect"] for each in found if each["state"] == "unknown"), None)
    if unknown is not None:
        lines.append(f"Look whether it happened, then: batos effects settle {unknown} done (or: undone)")
    return "\n".join(lines)


def settled_text(told: EffectDocument) -> str:
    """Tell what is recorded of an effect now."""
    happened = "happened" if told["state"] == "released" else "did not happen; another mission may do it"
    return f"{told['effect']} {happened}."


def _outcome_text(effect: EffectDocument) -> str:
    outcome = effect["outcome"] or {}
    if "error" in outcome:
        came = plain(outcome["error"]["message"])
    else:
        came = plain(str(outcome.get("reason") or ", ".join(f"{key} {value}" for key, value in outcome.items())))[:120]
    waits = f"waits for {plain(effect['host'])}" if effect.get("host") else ""
    return "; ".join(filter(None, (came, waits)))
