"""The homes that releases kept: small ones, made by scripts/keep_image.py with the release's own wheel."""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "images"
#: Each version that kept a home, and commits whose records were in another form.
NAMES = sorted(each.name for each in FOLDER.iterdir() if each.is_dir())
#: The commit of the first checkouts: its image has format 1, facts without a family, and sums without undone uses.
OLDEST = "0.1.0-973df7d2"


def unpack(name: str, home: Path) -> dict[str, Any]:
    """Put a kept home there, and return what its version said of it."""
    home.mkdir(mode=0o700)
    with lzma.open(FOLDER / name / "home.tar.xz") as file, tarfile.open(fileobj=file) as files:
        files.extractall(home, filter="data")
    told: dict[str, Any] = json.loads((FOLDER / name / "kept.json").read_text(encoding="utf-8"))
    return told
