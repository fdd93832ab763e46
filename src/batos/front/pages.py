"""What the doctor and the audit can find, by id, and where each finding is explained."""

from __future__ import annotations

from collections.abc import Mapping

#: Where each finding has its page.
PAGES = "docs/operating.md"

#: Every finding, by area: `<area>.<what>`; those of a persona or a window are named for the persona.
FINDINGS: Mapping[str, tuple[str, ...]] = {
    "ollama": ("answers", "version", "environment"),
    "models": (
        "listed", "pull", "upload", "create", "made", "stale", "recorded", "digests", "trained", "window", "files",
    ),
    "vram": ("budget", "spill"),
    "codex": ("files", "digest"),
    "persona": ("<name>",),
    "window": ("<name>",),
    "adapters": ("files", "choice", "doubt", "reload"),
    "image": ("opens", "held", "reads", "pair", "index", "tail", "cut", "root", "states"),
    "missions": ("waiting",),
    "home": ("private", "files", "writable", "server"),
    "disk": ("home", "store"),
    "clock": ("sane",),
}  # fmt: skip


def page(id_: str) -> str:
    """Where a finding is explained: `docs/operating.md#image-opens`."""
    area, _, what = id_.partition(".")
    return f"{PAGES}#{area if area in ('persona', 'window') else f'{area}-{what}'}"
