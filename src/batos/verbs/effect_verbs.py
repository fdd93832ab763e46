"""The verbs of grants and effects: what missions may do in the world, and what they did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from batos.protocol.effect_documents import (
    AddedGrant,
    EffectDocument,
    EffectList,
    GrantDocument,
    GrantList,
    QueryList,
    RevokedGrant,
)
from batos.protocol.wire_messages import Asker, GrantTarget, Moment, Name, Place, StrictModel
from batos.terminal.console import local_time
from batos.terminal.layout import Column, listing, plain
from batos.verbs.approval_verbs import visible
from batos.verbs.wire_verb import Noun, WireVerb

GRANTS_NOUN: Final = Noun(
    "grants",
    """Let missions look up in the world or act on it, and take that back.

    Without a grant no mission reads or changes anything in the world. A grant to look up (search, fetch, folder, kiwix,
    searxng, wikipedia) is for every mission of its user. A grant to act (file, http) is reached by a mission only if
    its asker names it: --grant NAME.""",
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
    """List the grants: what missions may be allowed to look up and to do in the world."""

    user: Asker = Field(default=None, description="Only those of this user.")


def grants_text(told: GrantList) -> str:
    """Write a list of grants."""
    columns: Mapping[str, Column] = {
        "grant": "name", "answers": lambda each: ", ".join(each.get("selectors", [each["selector"]])),
        "target": "target", "sink": "sink", "of": "user",
        "since": lambda each: local_time(each["granted_at"]),
        "for": _for_text,
    }  # fmt: skip
    none = (
        "Nothing is granted: missions neither read nor change the world. `batos grants add folder DIR` lets them read "
        "a folder, `batos grants add file DIR` write in one."
    )
    return listing(told["grants"], columns, none)


def _for_text(each: GrantDocument) -> str:
    terms = each.get("terms", {})
    said = [
        *(f"{terms[name]} a {of}" for name, of in (("rate", "minute"), ("budget", "day")) if name in terms),
        *([f"until {local_time(terms['until'])}"] if "until" in terms else []),
        *(["guests too"] if terms.get("guests") else []),
        *(["schedules too"] if each["unattended"] else []),
    ]
    return ", ".join(said)


class GrantsAddArgs(StrictModel):
    """Let missions look up in a source, or let those that name the grant act on a folder or an address.

    To look up: memory (search memory), pages of a site or a feed (fetch URL, or fetch any), files of a folder (folder
    DIR, without hidden files and keys), a Kiwix server, a SearXNG of yours, or Wikipedia (wikipedia en). Or an HTTP API
    that a text describes (api URL): the mind makes a tool of the description at its first use.

    Or the tools of a server (MCP): mcp NAME URL, or mcp NAME -- COMMAND, which is a program that runs with your rights.
    Tools that you say only read are called at once; each call of another one asks before.

    To act: missions that name the grant append to files below a folder and write new ones there (file DIR), or post
    JSON to a program of the server's machine, or of another host by https, where each effect asks before (http URL). A
    program gets each effect with an Idempotency-Key, and does what comes under one key once: so nothing happens twice
    after a crash.
    """

    kind: Literal["file", "http", "search", "fetch", "folder", "kiwix", "searxng", "wikipedia", "api", "mcp"] = Field(
        description="`file` and `http` act: write into files, post to a program; `mcp` is a server; the others look up."
    )
    target: GrantTarget = Field(
        description="The whole path of a folder, an address, `any`, `memory`, or a language; mcp: the grant's name."
    )
    command: list[Annotated[str, Field(min_length=1, max_length=4_096)]] = Field(
        default=[], max_length=64, description="mcp: the server's address, or its program with what that is given."
    )
    env: list[Name] = Field(default=[], max_length=64, description="mcp: a variable that the program gets.")
    reads: list[Name] = Field(default=[], max_length=100, description="mcp: a tool that only reads.")
    dry_run: bool = Field(default=False, description="mcp: only list the tools, and grant nothing.")
    name: Name | None = Field(default=None, description="The grant's name; absent: made of the target's.")
    blind: bool = Field(default=False, description="The program does not know keys: each effect asks before.")
    unattended: bool = Field(default=False, description="Missions of schedules look up by it, or act without asking.")
    hosts: list[Name] = Field(default=[], max_length=64, description="fetch: a further host, `*.` for all below it.")
    paths: list[Name] = Field(default=[], max_length=64, description="fetch: only paths below this one.")
    ports: list[Annotated[int, Field(ge=1, le=65_535)]] = Field(
        default=[], max_length=16, description="fetch: a further port beside 80 and 443."
    )
    rate: int = Field(default=0, ge=0, le=10_000, description="Most calls a minute; 0: no bound.")
    budget: int = Field(default=0, ge=0, le=1_000_000, description="Most calls a day (UTC); 0: no bound.")
    until: Moment | None = Field(default=None, description="The end of the grant; absent: until it is revoked.")
    guests: bool = Field(default=False, description="Missions of guests may look up by it too.")
    description: Place | None = Field(
        default=None, description="api: the file in which it is described; absent: the codex declares the object."
    )
    secret_header: Name | None = Field(
        default=None, description="api, mcp: the header in which it wants the secret of HOME/secrets/NAME."
    )
    book: Name | None = Field(default=None, description="kiwix: the name of one book of its library.")
    user: Asker = Field(default=None, description="The user whose missions may use it; absent: the server's.")


def granted_text(told: AddedGrant) -> str:
    """Write what a grant allows, and how it is used."""
    grant = told["grant"]
    if grant["kind"] == "api":
        calls = "\n".join(f"batos send {grant['name']} {plain(each)}" for each in grant.get("calls", ()))
        return f"{grant['name']} asks {plain(grant['target'])}, for questions that need it and by messages:\n{calls}"
    if "selectors" in grant:
        return _look_up_text(grant)
    if grant["kind"] == "mcp":
        return _server_text(told)
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


_EXAMPLES: Final = {
    "search_": '"words to look for"', "fetch_": '"https://..."', "read_": '"a/file.md"', "list_": '""',
}  # fmt: skip


def _look_up_text(grant: GrantDocument) -> str:
    """Write how a grant of a look-up is used, with its terms, and what was asked by it."""
    selectors = grant.get("selectors", [])
    lines = [f"{grant['name']} looks up in {plain(grant['target'])}, for missions of {plain(grant['user'])}:"]
    lines += [f"batos send {grant['name']} {each} {_EXAMPLES[each]}" for each in selectors]
    lines += [f"{name}: {value}" for name, value in grant.get("terms", {}).items()]
    if "today" in grant:
        lines += ["", f"Calls today: {grant['today']}.", queries_text({"queries": grant.get("queries", [])})]
    return "\n".join(lines)


def _server_text(told: AddedGrant) -> str:
    """Write what is approved of a server, and the question about the rest."""
    grant = told["grant"]
    lines = [f"{grant['name']} serves tools for missions of {plain(grant['user'])}: {visible(grant['target'])}"]
    columns: Mapping[str, Column] = {
        "tool": "tool", "does": lambda each: "reads" if each["reads"] else "asks before", "shown as": "purpose",
        "not used": "withdrawn",
    }  # fmt: skip
    lines.append(listing(grant.get("tools", []), columns, "None of its tools is approved yet."))
    if "question" in told:
        lines += ["", *map(visible, told["question"].split("\n"))]
    if told.get("approval"):
        lines.append(f"batos approve {told['approval']} lets these tools be used.")
    return "\n".join(lines)


class GrantArgs(StrictModel):
    """Show one grant: what it reaches, its terms, its calls of today, and the newest things that were asked by it."""

    name: Name = Field(description="The grant's name.")
    user: Asker = Field(default=None, description="Only if it is this user's.")


class GrantsQueriesArgs(StrictModel):
    """List all that was asked of the world: each search and each address, when, by which grant and mission."""

    limit: int = Field(default=50, ge=1, le=10_000, description="Most lines in the list.")
    user: Asker = Field(default=None, description="Only those of this user's missions.")


def queries_text(told: QueryList) -> str:
    """Write a list of what was asked of the world."""
    columns: Mapping[str, Column] = {
        "at": lambda each: local_time(each["at"]), "grant": "grant", "asked": "kind", "what": "what",
        "mission": "mission",
    }  # fmt: skip
    return listing(told["queries"], columns, "Nothing was asked of the world.")


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
    "grants_add", GrantsAddArgs, "grants add KIND TARGET [COMMAND...]", granted_text, governs=True,
    examples=("batos grants add file ./notes", "batos grants add http http://127.0.0.1:8080/inbox --name inbox",
              "batos grants add wikipedia en --budget 200", "batos grants add fetch https://docs.python.org/3/",
              "batos grants add mcp tides --reads high_tide -- python3 tides.py",
              "batos grants add api http://127.0.0.1:9000 --name weather --description weather.md"),
)  # fmt: skip
GRANTS_SHOW: Final = WireVerb("grants_show", GrantArgs, "grants show NAME", granted_text, reads=True)
GRANTS_QUERIES: Final = WireVerb(
    "grants_queries", GrantsQueriesArgs, "grants queries", queries_text, reads=True
)  # fmt: skip
GRANTS_REVOKE: Final = WireVerb[GrantArgs, RevokedGrant](
    "grants_revoke", GrantArgs, "grants revoke NAME", "{revoked[name]} is revoked.", governs=True,
    about="Take a grant back: what was staged under it and is not begun fails.",
)  # fmt: skip
EFFECTS: Final = WireVerb("effects", EffectsArgs, "effects list [MISSION]", effects_text, reads=True)
EFFECTS_SETTLE: Final = WireVerb(
    "effects_settle", EffectsSettleArgs, "effects settle EFFECT OUTCOME", settled_text, governs=True
)
