"""The verbs about missions: ask, missions, show, resume, inspect."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

from batos.cognition.brief import TEXT_LIMIT, File, as_file, read_file
from batos.errors import BatosError, BriefError, NotFound
from batos.events import Events
from batos.front.console import table
from batos.front.options import Called, common, run
from batos.front.shown import mission_text, prompts_text
from batos.front.telling import Teller
from batos.uvm import UVM, Ready, open_uvm

_STDIN_NAME = "stdin.txt"


@click.command()
@click.argument("text")
@click.option(
    "--file", "files", multiple=True, metavar="PATH", help="A text file to answer from; - is stdin. Repeatable."
)
@click.option("--persona", type=click.Choice(["ROBIN", "BRICK", "BABS", "ALFRED"], case_sensitive=False))
@click.option("--effort", type=click.Choice(["reflex", "cycle"]), help="One call, or a persona over its facets.")
@click.option("--conversation", metavar="ID", help="Go on with a conversation; `last` is the newest, `new` begins one.")
@click.option("--ancestor", metavar="MISSION", help="Do not pay again for what this mission (or `last`) paid for.")
@click.option("--voices", is_flag=True, help="Show each facet's part beside the answer.")
@click.option("--stream/--no-stream", default=None, help="Show the answer as it grows (default: on a terminal).")
@common
def ask(called: Called, text: str, files: tuple[str, ...], voices: bool, stream: bool | None, **given: Any) -> int:
    """Ask, and wait for the answer. TEXT is the question; - reads it from stdin."""
    brief = _brief(text, files, given)
    attached = _files(files, called.settings.attachment_bytes)
    live = called.console.out.isatty() if stream is None else stream
    teller = Teller(called.console, quiet=called.quiet, stream=live, voices=voices)
    return run(_ask(called, brief, attached, teller))


def _brief(text: str, files: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    if text == "-" and "-" in files:
        raise BriefError("stdin cannot be both the question and a file", field="text")
    brief = {name: value for name, value in given.items() if value is not None}
    brief["text"] = _question(text)
    brief["origin"] = {"door": "cli", "client": "batos ask"}
    if "persona" in brief:
        brief["persona"] = brief["persona"].upper()
    return brief


def _files(paths: tuple[str, ...], limit: int) -> list[File]:
    # One byte more than the limit is read, so that what is too long is refused and never cut.
    return [
        as_file(_STDIN_NAME, _stdin(limit + 1, "attachments"), limit) if path == "-" else read_file(Path(path), limit)
        for path in paths
    ]


def _question(text: str) -> str:
    """The question as given, or all of stdin; BriefError where that is no text or far more than a question may be."""
    if text != "-":
        return text
    data = _stdin(4 * TEXT_LIMIT + 1, "text")
    try:
        return data.decode("utf-8", "strict" if len(data) <= 4 * TEXT_LIMIT else "ignore")
    except UnicodeDecodeError as error:
        raise BriefError(
            f"the question on stdin is not UTF-8 (byte {error.start})", field="text", remedy="Convert it to UTF-8."
        ) from error


def _stdin(most: int, field: str) -> bytes:
    # Python has none when the process was started with it closed, whatever its types say.
    source: TextIO | None = sys.stdin
    if source is None:
        raise BriefError("stdin is closed", field=field, remedy="Give it what is to be read, or leave the - out.")
    return source.buffer.read(most)


async def _ask(called: Called, brief: dict[str, Any], files: list[File], teller: Teller) -> int:
    async with open_uvm(called.settings, Events(teller.hear, log=True)) as uvm:
        ready = await uvm.ready()
        if "ancestor" in brief:
            brief["ancestor"] = _named(uvm, brief["ancestor"])
        mission = await uvm.submit(brief, files)
        return await _run(uvm, mission, teller, ready)


async def _run(uvm: UVM, mission: str, teller: Teller, ready: Ready | None = None) -> int:
    """Run and tell; a failed mission is told with its reason and its cost, by the exit code of what failed it."""
    try:
        done = await uvm.run(mission, ready)
    except BatosError as error:
        teller.failed(uvm.mission(mission), error)
        return error.exit_code
    except BaseException:
        teller.cancelled(uvm.mission(mission))
        raise
    teller.answer(done)
    return 0


@click.command()
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@common
def missions(called: Called, limit: int) -> int:
    """List the newest missions."""
    found = run(_read(called, lambda uvm: uvm.missions(limit)))
    if called.console.as_json:
        called.console.document({"missions": found})
    elif found:
        rows = [[line["id"], line["status"], line["accepted_at"], line["text"]] for line in found]
        called.console.write(table(rows, ("mission", "status", "accepted", "question")))
    else:
        called.console.say('There is no mission yet. Ask something: batos ask "..."')
    return 0


@click.command()
@click.argument("mission")
@click.option("--prompts", is_flag=True, help="Every call with the exact prompt that was sent.")
@click.option("--voices", is_flag=True, help="Each facet's part.")
@common
def show(called: Called, mission: str, prompts: bool, voices: bool) -> int:
    """Show a mission; `last` is the newest."""

    def read(uvm: UVM) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        name = _named(uvm, mission)
        return uvm.mission(name), uvm.prompts(name) if prompts else []

    found, calls = run(_read(called, read))
    if called.console.as_json:
        called.console.document({**found, "prompts": calls} if prompts else found)
        return 0
    called.console.write(mission_text(found, voices=voices))
    if prompts:
        called.console.write(prompts_text(calls))
    return 0


def _named(uvm: UVM, mission: str) -> str:
    if mission != "last":
        return mission
    newest = uvm.missions(1)
    if not newest:
        raise NotFound("there is no mission yet", field="mission", remedy='Ask something: batos ask "..."')
    return str(newest[0]["id"])


@click.command()
@click.argument("mission", required=False)
@common
def resume(called: Called, mission: str | None) -> int:
    """Run what an ended process left undone: one MISSION, or all that wait. What was paid for is not paid again."""
    return run(_resume(called, mission))


async def _resume(called: Called, only: str | None) -> int:
    teller = Teller(called.console, quiet=called.quiet, stream=False, voices=False)
    async with open_uvm(called.settings, Events(teller.hear, log=True)) as uvm:
        waiting = await uvm.recover()
        if only is not None and only not in waiting:
            found = uvm.mission(only)
            raise NotFound(f"{only} is {found['status']} and does not wait to be run", field="mission")
        if not waiting:
            called.console.say("Nothing waits.")
        chosen = [only] if only else waiting
        if called.console.as_json:
            ended = [await _ended(uvm, each) for each in chosen]
            called.console.document({"missions": ended})
            return 0 if all(each["status"] == "done" for each in ended) else 1
        return max([await _run(uvm, each, teller) for each in chosen], default=0)


async def _ended(uvm: UVM, mission: str) -> dict[str, Any]:
    """The mission after its run; what failed is in it."""
    try:
        return await uvm.run(mission)
    except BatosError:
        return uvm.mission(mission)


@click.command()
@click.argument("object", required=False)
@common
def inspect(called: Called, object: str | None) -> int:
    """Look at OBJECT: a root name, oid:0x2a, a mission, a conversation; OBJECT.SLOT for one slot.

    Without OBJECT: the names of the root.
    """
    import json

    found = run(_read(called, lambda uvm: uvm.inspect(object) if object else uvm.root_names()))
    if called.console.as_json:
        called.console.document(found)
    else:
        called.console.write(json.dumps(found, ensure_ascii=False, indent=2))
    return 0


async def _read(called: Called, what: Any) -> Any:
    async with open_uvm(called.settings, Events(log=True)) as uvm:
        return what(uvm)
