"""The verb `audit` with its verbs: check the chains of records, or write them down for somebody else to check."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import click

from batos.cli.command_line import Subverbs, examples, given_name
from batos.cli.typed_names import past_moment
from batos.cli.verb_options import VerbCall, common, run
from batos.protocol.errors import BriefError, UsageError
from batos.terminal.console import count_text
from batos.terminal.layout import plain

#: Faults that are told one by one.
_TOLD = 20


@click.group(cls=Subverbs)
def audit() -> None:
    """Check that no record of a call or an effect was changed or removed, or write the records down for others."""


@audit.command(
    short_help="Check the chains of records.",
    epilog=examples("batos audit verify", "batos audit verify --anchor 3f9a0c"),
)
@click.option("--anchor", "anchors", multiple=True, metavar="DIGEST", type=given_name,
              help="A digest that the chain had before: it must still be there. Repeatable.")  # fmt: skip
@common
def verify(called: VerbCall, anchors: tuple[str, ...]) -> int:
    """Check the chains of the journal's calls and of the outcomes of effects; exit 1 when something is wrong.

    Keep a `head` that this prints: given as --anchor later, it proves that nothing up to it was removed or changed.
    The verb works beside a running server.
    """
    told = run(asyncio.to_thread(_verify, called, anchors))
    called.answer(told, _verified_text)
    return 0 if told["ok"] else 1


def _verify(called: VerbCall, anchors: tuple[str, ...]) -> dict[str, object]:
    # Here alone: the help of the verb loads nothing of the database.
    from batos.history import record_chain
    from batos.image.transactions import snapshot

    with _open_image(called) as faces:
        with snapshot(faces.journal) as root:
            calls = record_chain.read_calls(root)
        with faces.root() as root:
            effects = record_chain.read_effects(root)
    faults = [*calls.find_faults(), *effects.find_faults()]
    faults += [f"no record has the digest {each}" for each in anchors if not (calls.has(each) or effects.has(each))]
    return {
        "ok": not faults, "calls": len(calls.links), "effects": len(effects.links), "head": calls.head,
        "effects_head": effects.head, "faults": faults,
    }  # fmt: skip


def _verified_text(told: Mapping[str, Any]) -> str:
    lines = [f"WRONG  {plain(each)}" for each in told["faults"][:_TOLD]]
    if len(told["faults"]) > _TOLD:
        lines.append(f"and {len(told['faults']) - _TOLD} more; --json lists all.")
    if told["faults"]:
        lines.append("Restore image, journal and blobs together from one backup, or export what there is as evidence.")
    state = "as they were written" if told["ok"] else "were looked at"
    counts = f"{count_text(told['calls'], 'call')} and {count_text(told['effects'], 'outcome')} of effects"
    heads = [f"head     {told['head'] or 'none'}", f"effects  {told['effects_head'] or 'none'}"]
    return "\n".join([*lines, f"{counts} {state}.", *heads])


@audit.command(short_help="Write the records down.", epilog=examples("batos audit export --since yesterday a.jsonl"))
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@click.option("--since", metavar="WHEN", type=past_moment, help="Only calls that ended then or later: a time, 2h ago.")
@click.option("--bodies", is_flag=True, help="With what was asked and answered, word for word.")
@common
def export(called: VerbCall, file: Path | None, since: str | None, bodies: bool) -> int:
    """Write each call and each outcome of an effect as a line of JSON, to FILE or stdout.

    The lines can be verified without BAT OS: see `batos help audit`. Words are in it only with --bodies.
    """
    if since is not None and not since[:1].isdigit():
        raise BriefError("--since takes a time", field="since", remedy="Give a time such as yesterday, or 2h ago.")
    if file is None and called.console.as_json:
        raise UsageError("without FILE stdout has the records", field="file", remedy="Name a FILE, or omit --json.")
    calls, effects = run(asyncio.to_thread(_export, called, file, since, bodies))
    if called.console.as_json:
        called.console.document({"file": str(file), "calls": calls, "effects": effects})
    else:
        called.note(f"{count_text(calls, 'call')} and {count_text(effects, 'outcome')} of effects.")
    return 0


def _export(called: VerbCall, file: Path | None, since: str | None, bodies: bool) -> tuple[int, int]:
    with _open_image(called) as faces, _open_output(file) as out:
        return _write_records(faces, out, since, bodies=bodies)


def _write_records(faces: Any, out: TextIO, since: str | None, *, bodies: bool) -> tuple[int, int]:
    from batos.history import record_chain
    from batos.image.transactions import snapshot

    moment = None if since is None else datetime.fromisoformat(since)
    with snapshot(faces.journal) as journal, faces.root() as root:
        calls, effects = record_chain.read_calls(journal), record_chain.read_effects(root)
        links = record_chain.links_since(journal, calls, moment)
        shown = effects.links_in_order()
        header = {
            "format": "batos-audit", "version": 1, "head": calls.head, "effects_head": effects.head,
            "from": links[0].prev if links else calls.head, "calls": len(links), "effects": len(shown),
        }  # fmt: skip
        records = chain(
            [header],
            record_chain.export_calls(journal, links, bodies=bodies),
            record_chain.export_effects(root, shown),
        )
        out.writelines(record_chain.as_line(record) + "\n" for record in records)
    return len(links), len(shown)


@contextmanager
def _open_image(called: VerbCall) -> Iterator[Any]:
    """Open image and journal for reading, also beside the process that holds them."""
    from batos.image.readable import check_is_there, open_read_only

    settings = called.settings
    check_is_there(settings.image_uri)
    with open_read_only(settings.image_uri, settings.journal) as faces:
        yield faces


@contextmanager
def _open_output(file: Path | None) -> Iterator[TextIO]:
    """Open the file that is written, which is not there yet; else stdout."""
    if file is None:
        yield sys.stdout
        return
    try:
        made = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}", field="file", remedy="Name a file that is not there yet."
        ) from error
    with os.fdopen(made, "w", encoding="utf-8") as out:
        yield out
