"""The page of the documentation that explains a finding of the doctor or the audit, by the finding's id."""

from __future__ import annotations

#: Where each finding has its page.
PAGES = "docs/errors.md"


def topic(id_: str) -> str:
    """Return the word by which `batos help` explains a finding: `image-opens`."""
    return page(id_).partition("#")[2]


def page(id_: str) -> str:
    """Return the address where a finding is explained: `docs/errors.md#image-opens`."""
    area, _, what = id_.partition(".")
    return f"{PAGES}#{area if area in ('persona', 'window') else f'{area}-{what}'}"
