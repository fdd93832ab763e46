"""The verbs `export` and `import`: the whole mind as JSON lines, and back into an empty home."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from batos.cli.doors.choosing import image_alone
from batos.cli.shared_options import examples
from batos.cli.verb_options import VerbCall, common, run
from batos.protocol.errors import UsageError
from batos.terminal.console import count_text

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
#: The files of a home that an export has beside image and journal.
_BESIDE = ("codex", "batos.toml")


@click.command(epilog=examples("batos export ./mind"))
@_FOLDER
@common
def export(called: VerbCall, folder: Path) -> int:
    """Write the whole mind as it is now to DIR: image and journal as lines of JSON, blobs, codex and settings.

    The verb works beside a running server. `batos help export` explains the lines. Past states are not in it: those are
    in a backup.
    """
    counts = run(asyncio.to_thread(_export, called, folder))
    called.answer(counts, lambda told: f"{_counts_text(told)} are in {folder}.")
    return 0


def _export(called: VerbCall, folder: Path) -> dict[str, int]:
    from batos.care import mind_export
    from batos.image.views.read_only import check_is_there, open_read_only

    settings = called.settings
    check_is_there(settings.image_uri)
    with open_read_only(settings.image_uri, settings.journal) as pair:
        counts = mind_export.export_mind(pair, folder)
    for name in _BESIDE:
        _copy(settings.home / name, folder / name)
    return counts


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
    from batos.care import mind_export, plain_folders
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
    left_out = [] if plain_folders.has_harmless_settings(folder / "batos.toml") else ["batos.toml"]
    for name in _BESIDE:
        if name not in left_out:
            await asyncio.to_thread(_copy, folder / name, settings.home / name)
    return {**counts, **disarmed, "left_out": left_out}


def _counts_text(told: Mapping[str, Any]) -> str:
    objects = f"{count_text(told['image'], 'object')} of the image, {told['journal']:,} of the journal"
    return f"{objects}, {count_text(told['blobs'], 'blob')}"
