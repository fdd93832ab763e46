"""The verbs that repair an image or bring it into the present form: verify, repair, upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from batos.cli.doors.choosing import image_alone
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, common, run
from batos.protocol.errors import UsageError
from batos.terminal.console import count_text
from batos.terminal.layout import plain

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
    from batos.image.views.read_only import check_is_there, open_read_only

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
    from batos.image.views.read_only import check_is_there

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
    from batos.image.evolution.evolving import Upgrading
    from batos.image.image import LivingImage, Opening
    from batos.image.views.read_only import check_is_there

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
