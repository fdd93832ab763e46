"""The verbs of a home's upkeep: backup, restore, export, import, verify, repair and upgrade."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import click

from batos.cli.command_line import examples, given_moment, given_name
from batos.cli.doors.choosing import image_alone
from batos.cli.typed_names import past_moment
from batos.cli.verb_options import VerbCall, common, run
from batos.image.ids import utc_now
from batos.protocol.errors import BriefError, Refused, UsageError
from batos.protocol.motion_documents import TrainingReport
from batos.terminal.console import count_text, local_time, size
from batos.terminal.layout import plain, table

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
#: The files of a home that an export has beside image and journal.
_BESIDE = ("codex", "batos.toml")


@click.command(epilog=examples("batos export ./mind", "batos export --training ./sets --persona BABS"))
@_FOLDER
@click.option("--training", is_flag=True, help="Write chat lines for each persona instead, to train adapters with.")
@click.option("--persona", metavar="NAME", type=given_name, help="With --training: only this persona's lines.")
@click.option("--since", metavar="TIME", type=given_moment, help="With --training: only of questions since then.")
@common
def export(called: VerbCall, folder: Path, training: bool, persona: str | None, since: str | None) -> int:
    """Write the whole mind as it is now to DIR: image and journal as lines of JSON, blobs, codex and settings.

    The verb works beside a running server. `batos help export` explains the lines. Past states are not in it: those are
    in a backup.

    With --training, DIR gets the calls behind your answers that passed the gate, rest on no foreign text, and were not
    undone, retracted or rated bad.
    """
    if training:
        return _export_training(called, folder, persona, since)
    if persona is not None or since is not None:
        raise UsageError("--persona and --since choose training lines", field="training", remedy="Add --training.")
    counts = run(asyncio.to_thread(_export, called, folder))
    called.answer(counts, lambda told: f"{_counts_text(told)} are in {folder}.")
    return 0


def _export(called: VerbCall, folder: Path) -> dict[str, int]:
    from batos.care import mind_export
    from batos.image.readable import check_is_there, open_read_only

    settings = called.settings
    check_is_there(settings.image_uri)
    with open_read_only(settings.image_uri, settings.journal) as pair:
        counts = mind_export.export_mind(pair, folder)
    for name in _BESIDE:
        _copy(settings.home / name, folder / name)
    return counts


def _export_training(called: VerbCall, folder: Path, persona: str | None, since: str | None) -> int:
    from batos.care.training_sets import TrainingWish, write_sets
    from batos.server.dispatch.looking import open_looking

    def write() -> TrainingReport:
        with open_looking(called.settings) as looking:
            wish = TrainingWish(called.settings.asker, persona and persona.upper(), since or "")
            return write_sets(looking.readings, folder, wish)

    called.answer(run(asyncio.to_thread(write)), lambda told: _training_text(told, folder))
    return 0


def _training_text(told: TrainingReport, folder: Path) -> str:
    """Write what training sets have, what was left out, and what no erasure reaches."""
    lines = [
        f"{count_text(count, 'line')} and {count_text(told['preferences'].get(persona, 0), 'preference')} of {persona}"
        for persona, count in told["lines"].items()
    ]
    lines += [f"{count_text(count, 'mission')} left out: {why}" for why, count in sorted(told["left_out"].items())]
    if not told["lines"]:
        return "\n".join([*lines, "No answer may be learnt from."])
    kept = f"They are copies in {folder}, which a later `batos forget --erase` does not reach."
    return "\n".join([*lines, f"{kept} Each line names its mission."])


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file() and not target.exists():
        shutil.copyfile(source, target)


@click.command("import", epilog=examples("batos import ./mind --home ./another"))
@_FOLDER
@common
def import_(called: VerbCall, folder: Path) -> int:
    """Make the mind that DIR has in this home, which has none yet: all of it, or nothing.

    A line that is damaged is named, and then nothing is written. Grants are taken back, and settings that name
    addresses are left out: the mind may be a stranger's.
    """
    with image_alone(called):
        told = run(_import(called, folder))
    if told["left_out"]:
        called.note(f"{folder / 'batos.toml'} names addresses, or is none, and was left out: read it, then copy it.")
    note_disarmed(called, told)
    called.answer(told, lambda told: f"{_counts_text(told)} are in {called.settings.home}.")
    return 0


def note_disarmed(called: VerbCall, told: Mapping[str, Any]) -> None:
    """Say which grants a mind lost on its way back, and which effects wait for a person's answer."""
    if told["grants"]:
        called.note(f"Grants that were taken back: {', '.join(told['grants'])}. `batos grants add` gives them again.")
    if told["effects"]:
        called.note(
            f"{count_text(len(told['effects']), 'effect')} may have happened since: `batos effects` lists them."
        )


async def _import(called: VerbCall, folder: Path) -> dict[str, object]:
    from batos.care import foreign_minds, mind_export
    from batos.image.image import LivingImage, Opening
    from batos.image.storage import journal_uri, removing_new_files

    settings = called.settings
    if not (folder / mind_export.LINES).is_file():
        raise UsageError(f"{folder} has no {mind_export.LINES}", field="folder", remedy="Name the folder of an export.")
    with removing_new_files(settings.image_uri, journal_uri(settings.image_uri, settings.journal)):
        image = await asyncio.to_thread(LivingImage, Opening(settings.image_uri, settings.journal))
        try:
            counts, disarmed = await mind_export.import_mind(image, folder)
        finally:
            await asyncio.to_thread(image.close)
    left_out = [] if foreign_minds.has_harmless_settings(folder / "batos.toml") else ["batos.toml"]
    for name in _BESIDE:
        if name not in left_out:
            await asyncio.to_thread(_copy, folder / name, settings.home / name)
    return {**counts, **disarmed, "left_out": left_out}


def _counts_text(told: Mapping[str, Any]) -> str:
    objects = f"{count_text(told['image'], 'object')} of the image, {told['journal']:,} of the journal"
    return f"{objects}, {count_text(told['blobs'], 'blob')}"


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
    from batos.image.readable import check_is_there

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


#: Faults that are told one by one.
_TOLD: Final = 50


@click.command()
@common
def verify(called: VerbCall) -> int:
    """Read every record of the image and name each fault in it; exit 1 when there is one.

    Faults are references to objects that are lost, entries of lists and indexes without their objects, objects that
    these lack, wrong links, records that nothing ever referred to, answers that were never published, wrong counts, and
    objects of a wrong kind. The verb changes nothing, and works beside a running server. `batos repair` mends what can
    be mended.
    """
    found = run(asyncio.to_thread(_verify, called))
    called.answer({"ok": not found, "faults": found}, verified_text)
    return 1 if found else 0


def _verify(called: VerbCall) -> list[dict[str, object]]:
    # Here alone: the help of the verb loads nothing of the database.
    from batos.care import verification
    from batos.image.readable import check_is_there, open_read_only

    settings = called.settings
    check_is_there(settings.image_uri)
    with open_read_only(settings.image_uri, settings.journal) as faces:
        return [each.as_dict() for each in verification.find_faults(faces.image)]


@click.command()
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@common
def repair(called: VerbCall, dry_run: bool) -> int:
    """Repair the faults that `batos verify` names, each as it says there; exit 1 when some are left.

    The home's server closes the image meanwhile. Make a backup before; earlier moments stay as they were.
    """
    if dry_run:
        found = run(asyncio.to_thread(_verify, called))
        told = {"dry_run": True, "mended": found, "left": [each for each in found if not each["can_repair"]]}
    else:
        with image_alone(called):
            told = run(_repair(called))
    called.answer(told, repaired_text)
    return 1 if told["left"] else 0


async def _repair(called: VerbCall) -> dict[str, object]:
    from batos.care import verification
    from batos.image.image import LivingImage, Opening
    from batos.image.readable import check_is_there

    settings = called.settings
    check_is_there(settings.image_uri)
    image = await asyncio.to_thread(LivingImage, Opening(settings.image_uri, settings.journal))
    try:
        await image.prepare()
        mended, left = await verification.repair(image)
    finally:
        await asyncio.to_thread(image.close)
    return {"dry_run": False, "mended": [each.as_dict() for each in mended], "left": [each.as_dict() for each in left]}


@click.command(epilog=examples("batos upgrade --dry-run", "batos upgrade --backup /mnt/disk/before"))
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option("--backup", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
              help="The folder of the backup (default: one in the home).")  # fmt: skip
@click.option("--no-backup", is_flag=True, help="Make none: you have one.")
@common
def upgrade(called: VerbCall, dry_run: bool, folder: Path | None, no_backup: bool) -> int:
    """Bring an image of an older version into the form of this version, behind a backup.

    Every verb that opens the image for work does so by itself. This one tells what it will do, lets you choose the
    folder, and is needed for an image on a server, which only its own tools can back up.

    An upgrade that was cut off goes on where it was. `batos restore` of the backup undoes an upgrade.
    """
    if folder is not None and no_backup:
        raise UsageError("--backup and --no-backup exclude each other", field="backup", remedy="Leave one out.")
    with image_alone(called):
        told = run(_upgrade(called, folder, dry_run=dry_run, no_backup=no_backup))
    called.answer(told | {"dry_run": dry_run}, upgraded_text)
    return 0


async def _upgrade(called: VerbCall, folder: Path | None, *, dry_run: bool, no_backup: bool) -> dict[str, object]:
    # Here alone: the help of the verb loads nothing of the database.
    from batos.care.upgrading import home_upgrading, plan_upgrade
    from batos.image.evolving import Upgrading
    from batos.image.image import LivingImage, Opening
    from batos.image.readable import check_is_there

    settings = called.settings
    check_is_there(settings.image_uri)
    told = await asyncio.to_thread(plan_upgrade, settings, folder)
    told["backup"] = "" if no_backup else told["backup"]
    if dry_run or not told["steps"]:
        return told
    chosen = Upgrading(tell=called.note) if no_backup else home_upgrading(settings, folder, called.note)
    image = await asyncio.to_thread(LivingImage, Opening(settings.image_uri, settings.journal, upgrading=chosen))
    try:
        await image.prepare()
    finally:
        await asyncio.to_thread(image.close)
    after = await asyncio.to_thread(plan_upgrade, settings, folder)
    return {**told, "upgrades": after["upgrades"]}


def verified_text(told: Mapping[str, Any]) -> str:
    """List the faults of an image, with what a repair would do."""
    faults = told["faults"]
    if not faults:
        return "The image is sound: every record can be read, and all lists and indexes agree."
    able = sum(each["can_repair"] for each in faults)
    tail = f"{count_text(len(faults), 'fault')}. `batos repair` mends {able}; make a backup first."
    return "\n".join([*_fault_lines(faults), tail])


def _fault_lines(faults: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for each in faults[:_TOLD]:
        yield f"{each['kind']}: {plain(each['where'])}: {plain(each['what'])}"
        yield f"    repair: {each['repair']}"
    if len(faults) > _TOLD:
        yield f"and {len(faults) - _TOLD} more; --json lists all."


def upgraded_text(told: Mapping[str, Any]) -> str:
    """List the steps of an upgrade that were made, or would be, and how it is undone."""
    if not told["steps"]:
        return f"The image has format {told['format']}, which is this version's: nothing is to be done."
    verb = "would become" if told["dry_run"] else "became"
    lines = [f"Format {told['format']} {verb} {told['known']}:"]
    lines += [f"    {each['format']}  {each['what']}" for each in told["steps"]]
    if told["backup"]:
        place = "The backup before it would be" if told["dry_run"] else "The backup before it is"
        lines += [f"{place} in {told['backup']}; `batos restore` undoes the upgrade with it."]
    return "\n".join(lines)


def repaired_text(told: Mapping[str, Any]) -> str:
    """List what was mended, or would be, and what is left."""
    if not told["mended"] and not told["left"]:
        return "Nothing is to be repaired."
    if told["dry_run"]:
        return "\n".join([*_fault_lines(told["mended"]), "Nothing is changed."])
    lines = [*_fault_lines(told["mended"]), f"{count_text(len(told['mended']), 'fault')} mended."]
    if told["left"]:
        lines += [*_fault_lines(told["left"]), f"{count_text(len(told['left']), 'fault')} left."]
    return "\n".join(lines)
