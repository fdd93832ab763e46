"""Pairing of image and journal: both hold one random id, so that neither is used with a stranger."""

from __future__ import annotations

import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from ZODB.DB import DB

from batos import __version__
from batos.image import roots
from batos.image.readable import check_format
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.protocol.errors import ImageDamaged


@dataclass(frozen=True, slots=True)
class PairingSide:
    """The image's or the journal's part of the pairing: the id (None if there is none yet), and if it holds any
    mission.
    """

    where: str
    pair: str | None
    holds_missions: bool
    format: int = roots.FORMAT


def image_side(db: DB) -> PairingSide:
    """Read the image's id and if it was used."""
    with snapshot(db) as root:
        pair = root[roots.GENESIS].get(roots.PAIR) if roots.GENESIS in root else None
        return PairingSide(_place(db), pair, bool(root.get(roots.MISSIONS)))


def journal_side(db: DB) -> PairingSide:
    """Read the journal's id and if it was used. Raises NewFormat if a newer version has written it."""
    with snapshot(db) as root:
        check_format(root, "journal")
        number = int(root.get("format", roots.FIRST_FORMAT))
        return PairingSide(_place(db), root.get(roots.PAIR), bool(root.get(roots.MISSIONS)), number)


def _place(db: DB) -> str:
    # A client of PostgreSQL takes its whole address for its name, with the password.
    return getattr(db, "place", "") or str(db.storage.getName())


def agree_on_id(image: PairingSide, journal: PairingSide) -> str:
    """Return the id that both sides have or are to get.

    The journal gets its id before the image. So a journal with an id and no use may stand beside an image without one
    (the process died in between). An image with an id never stands beside a journal without one, unless both are
    unused.

    Raises: ImageDamaged: they do not belong together; the error says which file to bring back.
    """
    if image.pair == journal.pair:
        return image.pair or secrets.token_hex(16)
    if image.pair is None and journal.holds_missions:
        raise _no_pair(image, f"the journal {journal.where} has missions and the image {image.where} is another or new")
    if journal.pair is None and (image.holds_missions or journal.holds_missions):
        what = f"the image {image.where} has missions and the journal {journal.where} is another or new"
        raise _no_pair(journal, what, " If an import was cut off, remove both and import again.")
    if image.pair is not None and journal.pair is not None:
        raise _no_pair(journal, f"the image {image.where} and the journal {journal.where} are not of one home")
    return image.pair or journal.pair or ""


def _no_pair(missing: PairingSide, why: str, more: str = "") -> ImageDamaged:
    remedy = f"Bring back the {missing.where} that belongs to it, from the same backup; nothing was changed."
    return ImageDamaged(why, remedy=remedy + more)


def sign_journal(root: MutableMapping[str, Any], pair: str) -> None:
    """Give a journal its id, and the format that it has in this version: no older one opens it any more."""
    root.update({roots.PAIR: pair, "format": roots.FORMAT, "version": __version__})


def sign_image(root: Root, pair: str) -> None:
    """Make the record trees that an image lacks, and give it its id."""
    roots.prepare(root)
    root[roots.GENESIS][roots.PAIR] = pair
