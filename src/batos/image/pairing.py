"""Image and journal belong together: both hold one random id, and neither is used beside a stranger."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from ZODB.DB import DB

from batos.errors import ImageDamaged
from batos.image import roots
from batos.image.transactions import snapshot


@dataclass(frozen=True, slots=True)
class Side:
    """What one of the two databases knows: the id (None: never signed), and whether it has anything of missions."""

    where: str
    pair: str | None
    used: bool


def image_side(db: DB) -> Side:
    """The image's side."""
    with snapshot(db) as root:
        pair = root[roots.GENESIS].get(roots.PAIR) if roots.GENESIS in root else None
        return Side(_where(db), pair, bool(root.get(roots.MISSIONS)))


def journal_side(db: DB) -> Side:
    """The journal's side."""
    with snapshot(db) as root:
        return Side(_where(db), root.get(roots.PAIR), bool(root.get(roots.MISSIONS)))


def _where(db: DB) -> str:
    return str(db.storage.getName())


def agreed(image: Side, journal: Side) -> str:
    """The id that both have or are to have; raises ImageDamaged, naming what to bring back, if they are no pair.

    The journal is signed before the image. So a signed journal that is unused may stand beside an unsigned image (the
    process died between the two), a signed image never beside an unsigned journal, unless nothing was in either.
    """
    if image.pair == journal.pair:
        return image.pair or secrets.token_hex(16)
    if image.pair is None and journal.used:
        raise _no_pair(image, f"the journal {journal.where} has missions and the image {image.where} is another or new")
    if journal.pair is None and (image.used or journal.used):
        raise _no_pair(
            journal, f"the image {image.where} has missions and the journal {journal.where} is another or new"
        )
    if image.pair is not None and journal.pair is not None:
        raise _no_pair(journal, f"the image {image.where} and the journal {journal.where} are not of one home")
    return image.pair or journal.pair or ""


def _no_pair(missing: Side, why: str) -> ImageDamaged:
    return ImageDamaged(
        why, remedy=f"Bring back the {missing.where} that belongs to it, from the same backup; nothing was changed."
    )


def sign_journal(root: Any, pair: str) -> None:
    """Give a journal its id."""
    root[roots.PAIR] = pair


def sign_image(root: Any, pair: str) -> None:
    """Make the record trees that an image lacks, and give it its id."""
    roots.prepare(root)
    root[roots.GENESIS][roots.PAIR] = pair
