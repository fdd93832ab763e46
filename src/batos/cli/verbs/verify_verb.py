"""The verbs about faults of the image: verify, repair."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from batos.cli.doors.choosing import image_alone
from batos.cli.render.care_texts import repaired_text, verified_text
from batos.cli.verb_options import VerbCall, common, run


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


def _verify(called: VerbCall) -> list[dict[str, Any]]:
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


async def _repair(called: VerbCall) -> dict[str, Any]:
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
