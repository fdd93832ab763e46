"""The verb `upgrade`: bring an image of an older version into the form of this one, behind a backup."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from batos.cli.doors.choosing import image_alone
from batos.cli.render.care_texts import upgraded_text
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, common, run
from batos.protocol.errors import UsageError


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


async def _upgrade(called: VerbCall, folder: Path | None, *, dry_run: bool, no_backup: bool) -> dict[str, Any]:
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
