"""The verbs `backup` and `restore`: copy a home, also beside its server, and bring it back."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from batos.cli.doors.choosing import image_alone
from batos.cli.past_moments import past_moment
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, common, run
from batos.cli.verbs.export_verbs import note_disarmed
from batos.image.ids import utc_now
from batos.protocol.errors import BriefError, Refused
from batos.terminal.console import size
from batos.terminal.layout import table
from batos.terminal.short_names import local_time

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))


@click.command(epilog=examples("batos backup /mnt/disk/mind", "batos backup /mnt/disk/mind --list"))
@_FOLDER
@click.option("--full", is_flag=True, help="Copy all; else what was committed since the last backup there.")
@click.option("--list", "lists", is_flag=True, help="Only list the backups of DIR.")
@common
def backup(called: VerbCall, folder: Path, full: bool, lists: bool) -> int:
    """Copy image, journal, blobs, codex and settings of the home to DIR, also while its server runs.

    Keys and tokens are left out. A backup holds all questions and answers: guard DIR as you guard the home.
    """
    from batos.care import backups
    from batos.image.views.read_only import check_is_there

    if lists:
        found = [each.as_dict() | {"moment": backups.moment_text(each)} for each in backups.list_backups(folder)]
        called.answer({"backups": found}, _list_text)
        return 0
    _check_files(called)
    check_is_there(called.settings.image_uri)
    called.note("Copying. Ctrl-C leaves the backups that are there whole.")
    made = run(asyncio.to_thread(_make, called, folder, full))
    called.answer(made, lambda told: f"The mind as of {local_time(told['moment'])} is in {folder}.")
    return 0


def _make(called: VerbCall, folder: Path, full: bool) -> dict[str, Any]:
    from batos.care import backups

    made = backups.make_backup(called.settings.home, folder, full=full, clock=utc_now)
    return made.as_dict() | {"moment": backups.moment_text(made)}


def _check_files(called: VerbCall) -> None:
    """Raise Refused if the databases are not the files of the home: then their own server makes backups."""
    settings = called.settings
    if settings.image or settings.journal:
        what = "image and journal are not the files of the home"
        raise Refused(what, field="image", remedy="Back them up by the tools of their storage, and copy the home.")


def _list_text(told: Mapping[str, Any]) -> str:
    rows = [[local_time(each["at"]), local_time(each["moment"]), size(each["bytes"])] for each in told["backups"]]
    return table(rows, ("made", "the mind as of", "new blobs")) if rows else "There is no backup."


@click.command(epilog=examples("batos restore /mnt/disk/mind --home ./restored", "batos restore DIR --at yesterday"))
@_FOLDER
@click.option("--at", metavar="WHEN", type=past_moment, help="The newest backup until then; else the newest of all.")
@common
def restore(called: VerbCall, folder: Path, at: str | None) -> int:
    """Bring the mind in DIR back into the home, which has no image yet: all of it, or nothing.

    Then `batos verify` and `batos audit verify` check it. Keys and tokens are made anew. Grants are taken back:
    what the mind was about to do may have happened since. Nothing of the home is removed: files and folders that
    are in the way get the ending .before-restore. Settings that name addresses get the ending .from-backup and are
    not used: the mind may be a stranger's.
    """
    from batos.care import backups

    if at is not None and not at[:1].isdigit():
        raise BriefError("--at takes a time", field="at", remedy="Give a time such as yesterday, or 2h ago.")
    _check_files(called)
    chosen = backups.find_backup(folder, None if at is None else datetime.fromisoformat(at))
    with image_alone(called):
        report = run(asyncio.to_thread(backups.restore_backup, folder, called.settings.home, chosen))
    told = chosen.as_dict() | {"moment": backups.moment_text(chosen), "home": str(called.settings.home)} | report
    note_disarmed(called, told)
    if report["aside"]:
        called.note(f"Files and folders that were in the way are kept in the home as {', '.join(report['aside'])}.")
    for each in report["unused"]:
        _note_unused(called, called.settings.home / each)
    called.answer(told, lambda told: f"The mind as of {local_time(str(told['moment']))} is in {told['home']}.")
    called.note(f"`batos verify --home {told['home']}` and `batos audit verify --home {told['home']}` check it.")
    return 0


def _note_unused(called: VerbCall, path: Path) -> None:
    """Say that settings of the backup are not used, and how their owner takes them over."""
    settings = path.with_suffix("")
    called.note(
        f"The settings of the backup name addresses, or are none: they are not used, and are kept as {path}. "
        f"Read them. If they are yours: mv {shlex.quote(str(path))} {shlex.quote(str(settings))}"
    )
