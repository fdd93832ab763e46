"""The verbs of grants; a server of tools is shown and asked about before it runs, and before its tools are used."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from batos.cli.declared import ask_for, granted_target, group, take, tell
from batos.cli.verb_options import VerbCall
from batos.verbs import effect_verbs
from batos.verbs.approval_verbs import APPROVE, visible
from batos.verbs.effect_verbs import GRANTS_ADD, GRANTS_NOUN, GRANTS_SHOW, granted_text

grants = group(GRANTS_NOUN, effect_verbs)


@take(GRANTS_ADD, "target", "command", "dry_run")
@click.argument("target", metavar="TARGET")
@click.argument("command", metavar="[COMMAND]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="mcp: only list the tools, and grant nothing.")
@click.option("--yes", is_flag=True, help="mcp: run it, and let all tools that it lists now be used, without asking.")
def add(
    called: VerbCall, given: dict[str, object], target: str, command: tuple[str, ...], *, dry_run: bool, yes: bool
) -> int:
    """Grant something; a server asks twice."""
    given["target"] = target if given["kind"] == "mcp" else granted_target(target)
    if command:
        given["command"] = [_whole(each) for each in command]
    if dry_run:
        given["dry_run"] = True
    if given["kind"] != "mcp":
        if yes:
            raise click.UsageError("--yes is for mcp.")
        return tell(called, GRANTS_ADD, ask_for(called, GRANTS_ADD, given))
    given["reads"] = [one for each in _list_words(given.get("reads")) for one in each.split(",") if one]
    return _add_server(called, given, is_sure=yes)


def _add_server(called: VerbCall, given: dict[str, object], *, is_sure: bool) -> int:
    command = _list_words(given.get("command"))
    if not command:
        raise click.UsageError("Give the server: mcp NAME URL, or mcp NAME -- COMMAND.")
    is_program = len(command) > 1 or "://" not in command[0]
    said = "This program runs with your rights: it may do whatever you may.\n" if is_program else ""
    called.console.say(f"{said}{visible(shlex.join(command) if is_program else command[0])}")
    if not is_sure and not _confirms(called, "Run it, and list its tools?" if is_program else "Ask it for its tools?"):
        return 4
    shown = ""
    if not is_sure:
        planned = ask_for(called, GRANTS_ADD, {**given, "dry_run": True})
        if given.get("dry_run"):
            return tell(called, GRANTS_ADD, planned)
        called.console.say(granted_text(planned))
        if not given["reads"]:
            told = click.prompt("Tools that only read (names with commas, empty for none)", default="", err=True)
            given["reads"] = [each.strip() for each in told.split(",") if each.strip()]
        if not _confirms(called, "Grant it, and let these tools be used?"):
            return 4
        shown = planned.get("question", "")
    found = ask_for(called, GRANTS_ADD, given)
    asked, user = found.get("approval"), called.settings.asker
    if asked is None or not (is_sure or _tools(found.get("question", "")) == _tools(shown)):
        return tell(called, GRANTS_ADD, found)
    ask_for(called, APPROVE, {"approvals": [asked], "user": user})
    return tell(called, GRANTS_SHOW, ask_for(called, GRANTS_SHOW, {"name": found["grant"]["name"], "user": user}))


def _tools(question: str) -> list[str]:
    """Return the lines of a question that its server wrote: whether a tool only reads is the person's word."""
    return [each for each in question.split("\n") if not each.startswith("tool     ")]


def _list_words(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _whole(word: str) -> str:
    """Return a word of a command; the path of a file from here becomes one from the root, since it runs elsewhere."""
    return str(Path(word).absolute()) if not word.startswith("-") and Path(word).is_file() else word


def _confirms(called: VerbCall, question: str) -> bool:
    """Ask a person. Raises: click.UsageError: there is nobody to ask."""
    if called.console.as_json or not sys.stdin.isatty() or not sys.stderr.isatty():
        raise click.UsageError("A server is asked about before it runs: give --yes, as nobody can answer here.")
    if click.confirm(question, err=True):
        return True
    called.console.say("Nothing was granted.")
    return False


grants.add_command(add)
