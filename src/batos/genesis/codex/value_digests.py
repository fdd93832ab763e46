"""The digest by which a declared value is recognised when it changes."""

from __future__ import annotations

import hashlib
import json


def digest_of(value: object) -> str:
    """Return the sha256 (hex) of a plain value's canonical JSON."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
