"""The verbs about methods: redefine and show, with the files of checks and sources, and approve."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from batos.cli.command_line import file_names
from batos.cli.declared import ask_for, group, take, tell
from batos.cli.verb_options import VerbCall
from batos.protocol.errors import BriefError, UsageError
from batos.verbs import method_verbs
from batos.verbs.approval_verbs import APPROVE
from batos.verbs.method_verbs import METHOD_NOUN, METHOD_REDEFINE, METHOD_SHOW, SOURCE_LIMIT

method = group(METHOD_NOUN, method_verbs)


@take(METHOD_SHOW)
@click.option("--checks", is_flag=True, help="Only its checks, as a file for `batos method redefine --checks FILE`.")
def show(called: VerbCall, given: Mapping[str, object], checks: bool) -> int:
    """Show a method, or its checks as they can be given back."""
    found = ask_for(called, METHOD_SHOW, given)
    if checks and not called.console.as_json:
        called.console.write(json.dumps(found["checks"], ensure_ascii=False, indent=2))
        return 0
    return tell(called, METHOD_SHOW, found)


@take(METHOD_REDEFINE, "source", "checks")
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
def redefine(called: VerbCall, given: dict[str, object], path: str | None, checks: str | None) -> int:
    """Redefine a method by a wish, or by a source from a file."""
    if path is None and ("wish" not in given or checks is not None):
        raise click.UsageError("Give the new intent (--wish), or the source (--file).")
    if path is not None:
        given["source"] = _text(path, "file")
    if checks is not None:
        given["checks"] = _checks(checks)
    return tell(called, METHOD_REDEFINE, ask_for(called, METHOD_REDEFINE, given))


method.add_command(show)
method.add_command(redefine)


def _checks(path: str) -> Any:
    """Read a file of checks. Raises: BriefError: it is not a list of objects."""
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


@take(APPROVE, "plan")
@click.option("--all", "every", is_flag=True, help="All that wait and match --matching.")
@click.option("--plan", "file", metavar="FILE", help="Of one plan: the file with its lines as you changed them.")
def approve(called: VerbCall, given: dict[str, object], every: bool, file: str | None) -> int:
    """Approve what is named, what a mission asks, or with --all what matches."""
    if file is not None:
        given["plan"] = _text(file, "plan")
    ways = sum(name in given for name in ("approvals", "matching", "all_of"))
    if every != ("matching" in given) or ways != 1:
        raise UsageError(
            "name approvals, or give both --all and --matching PATTERN, or --all-of MISSION",
            field="approvals",
            remedy="`batos approvals` lists them; --all --matching '*' approves everything that waits.",
        )
    return tell(called, APPROVE, ask_for(called, APPROVE, given))
