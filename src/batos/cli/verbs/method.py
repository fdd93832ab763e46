"""The verbs about methods: list, show, history, make, rollback, redefine; and the tools among them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from batos.cli.completions import method_names, object_names
from batos.cli.declared import ask_once
from batos.cli.doors.choosing import open_door
from batos.cli.past_moments import as_of_option, tell_moment, with_moment
from batos.cli.render import method_texts as telling
from batos.cli.render.learning import after_lines
from batos.cli.shared_options import file_names, given_name
from batos.cli.verb_options import VerbCall, run, with_server
from batos.cli.wrong_usage import Subverbs
from batos.protocol.errors import BriefError
from batos.terminal.console import count_text
from batos.verbs.method_verbs import (
    METHOD_HISTORY,
    METHOD_LIST,
    METHOD_MAKE,
    METHOD_REDEFINE,
    METHOD_ROLLBACK,
    METHOD_SHOW,
    SOURCE_LIMIT,
    TOOLS,
)
from batos.verbs.wire_verb import Reply

_NAME = "OBJECT.SELECTOR"


@click.group(cls=Subverbs)
def method() -> None:
    """Show methods, roll one back to a former revision, redefine one. Every revision is kept."""


@method.command("list", short_help="List every slot that ever had a method.")
@click.argument("object", type=given_name, required=False, shell_complete=object_names)
@as_of_option
@with_server
def list_(called: VerbCall, object: str | None, as_of: str | None) -> int:
    """List every slot that ever had a method, or those of OBJECT: its active revision, and its score."""
    args = with_moment({"object": object} if object else {}, as_of)
    found = run(ask_once(open_door(called, reads=True), METHOD_LIST, args))
    tell_moment(called, found)
    waiting = found.get("waiting", 0)
    told = f"{count_text(waiting, 'method')} {'waits' if waiting == 1 else 'wait'} to be made: `batos method make`"
    if found["methods"] or called.console.as_json:
        code = _print_result(called, found, lambda told: telling.list_text(told["methods"]))
        if waiting:
            called.note(f"{told}.")
        return code
    called.console.say(
        f"There is no method yet; {told}."
        if waiting
        else "There is no method yet: missing methods are made after an answer (`batos method make`: at once)."
    )
    return 0


@method.command(short_help="Show all of a method.")
@click.argument("name", metavar=_NAME, type=given_name, shell_complete=method_names)
@click.option(
    "--revision",
    type=click.IntRange(min=1),
    help="The revision; default: the active one, or the last that was active.",
)
@click.option("--checks", is_flag=True, help="Only its checks, as a file for `batos method redefine --checks FILE`.")
@as_of_option
@with_server
def show(called: VerbCall, name: str, revision: int | None, checks: bool, as_of: str | None) -> int:
    """Show the method of a slot: source, verdict, checks, provenance and ledger."""
    args = with_moment(_args(name, revision=revision), as_of)
    found = run(ask_once(open_door(called, reads=True), METHOD_SHOW, args))
    tell_moment(called, found)
    if checks and not called.console.as_json:
        called.console.write(json.dumps(found["checks"], ensure_ascii=False, indent=2))
        return 0
    return _print_result(called, found, telling.method_text)


@method.command(short_help="Show every revision, and the reasons of its start and end.")
@click.argument("name", metavar=_NAME, type=given_name, shell_complete=method_names)
@with_server
def history(called: VerbCall, name: str) -> int:
    """Show every revision of a method, the reasons of its start and end, and every change of its slot."""
    return _print_result(
        called, run(ask_once(open_door(called, reads=True), METHOD_HISTORY, {"method": name})), telling.history_text
    )


@method.command(short_help="Make the methods now that are to be made after answers.")
@with_server
def make(called: VerbCall) -> int:
    """Make the methods that were missing in answers, one after the other; a new question goes first.

    A server and a chat make them by themselves while idle. Exit 0 also when no acceptable method was written:
    the intent is still interpreted.
    """

    def on_event(_event: str, keys: Mapping[str, Any]) -> None:
        called.note(f"Making {keys['receiver']}.{keys['selector']} ...")

    found = run(ask_once(open_door(called), METHOD_MAKE, {}, on_event))

    def text(told: Any) -> str:
        return "\n".join(after_lines(told)) or "There is nothing to make."

    return _print_result(called, found, text)


@method.command(short_help="Make a former revision active again.")
@click.argument("name", metavar=_NAME, type=given_name, shell_complete=method_names)
@click.option("--revision", type=click.IntRange(min=0), help="The revision; 0 is the intent. Default: the one before.")
@with_server
def rollback(called: VerbCall, name: str, revision: int | None) -> int:
    """Make a former revision active again, from the next mission on; every revision is kept.

    Without --revision: the one before the active one, or, if none is active, the last one.
    """
    args = _args(name, revision=revision, user=called.settings.asker)
    found = run(ask_once(open_door(called), METHOD_ROLLBACK, args))
    if called.console.as_json:
        called.console.document(found)
    elif not called.quiet:
        now = f"revision {found['active']} is active" if found["active"] else "the intent is interpreted"
        called.console.write(f"{found['method']}: {now} from the next mission on.")
    return 0


@method.command(short_help="Make a new revision, from a wish or from a source.")
@click.argument("name", metavar=_NAME, type=given_name, shell_complete=method_names)
@click.option("--wish", metavar="TEXT", help="The new intent; without --file a model writes the method.")
@click.option(
    "--file",
    "path",
    metavar="PATH",
    shell_complete=file_names,
    help="The source, written by you; `-` reads it from stdin.",
)
@click.option(
    "--checks",
    metavar="PATH",
    shell_complete=file_names,
    help="JSON: the checks of your source (default: the present ones).",
)
@with_server
def redefine(called: VerbCall, name: str, wish: str | None, path: str | None, checks: str | None) -> int:
    """Make a new revision of a method, from a wish or from a source, audited and checked like any other.

    The revision is active from the next mission on. The former one is kept: `batos method rollback` restores it.
    """
    if path is None and (wish is None or checks is not None):
        raise click.UsageError("Give the new intent (--wish), or the source (--file).")
    source = None if path is None else _text(path, "file")
    args = _args(name, wish=wish, source=source, checks=_checks(checks), user=called.settings.asker)
    found = run(ask_once(open_door(called), METHOD_REDEFINE, args))
    if called.console.as_json or not called.quiet:
        return _print_result(called, found, telling.method_text)
    return 0


@click.command()
@with_server
def tools(called: VerbCall) -> int:
    """List the tools: methods that can be called by name, each with its call."""
    found = run(ask_once(open_door(called, reads=True), TOOLS, {}))
    if found["tools"] or called.console.as_json:
        if found["tools"] and not called.quiet:
            called.console.say(
                "None of them reaches a network, a file or another program: they compute, ask and recall."
            )
        return _print_result(called, found, lambda told: telling.tools_text(told["tools"]))
    called.console.say("There are no tools yet: BRICK's Gadget Generation makes them.")
    return 0


def _print_result(called: VerbCall, found: Reply, text: Callable[[Reply], str]) -> int:
    """Tell the result, as a document or in words, and return 0."""
    if called.console.as_json:
        called.console.document(found)
    else:
        called.console.write(text(found))
    return 0


def _args(name: str, **more: Any) -> dict[str, Any]:
    """Return the arguments that are given, without those that are not."""
    return {"method": name, **{key: value for key, value in more.items() if value is not None}}


def _checks(path: str | None) -> Any:
    """Read a file of checks. Raises: BriefError: it is not a list of objects."""
    if path is None:
        return None
    try:
        found = json.loads(_text(path, "checks"))
    except ValueError as error:
        raise _unreadable(path, "checks", f"it is not JSON ({error})") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise _unreadable(path, "checks", "it is not a list of checks")
    return found


def _text(path: str, field: str) -> str:
    """Read a text file, `-` being stdin. Raises: BriefError: it cannot be read, is too long, or is no text."""
    try:
        if path == "-":
            # Python has none when the process was started with it closed, whatever its types say.
            stdin: TextIO | None = sys.stdin
            data = b"" if stdin is None else stdin.buffer.read(SOURCE_LIMIT + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(SOURCE_LIMIT + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise _unreadable(path, field, str(error.strerror)) from error
    except ValueError as error:
        raise _unreadable(path, field, "it is not UTF-8 text") from error
    if len(data) > SOURCE_LIMIT:
        raise _unreadable(path, field, f"it has more than {SOURCE_LIMIT} bytes")
    if not text.strip():
        raise _unreadable(path, field, "it is empty")
    return text


def _unreadable(path: str, field: str, why: str) -> BriefError:
    remedy = (
        "Name a file of one method's source." if field == "file" else "`batos help generation` shows what a check is."
    )
    return BriefError(f"{path!r} cannot be read: {why}", field=field, remedy=remedy)
