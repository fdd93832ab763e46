"""The log of outcomes of effects: a chain, no line of which is ever changed.

The fingerprint of a line stands for the payload, so that words can be erased and the chain still holds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from batos.image import roots
from batos.image.roots import Root

#: The key of the newest line's digest in the root's `effect_log`.
HEAD: Final = "head"


def append_line(
    root: Root, effect: Mapping[str, object], state: str, at: str, outcome: Mapping[str, object] | None
) -> None:
    """Add a line about an effect that came to an end, or to another one."""
    log = root[roots.EFFECT_LOG]
    line = {
        "effect": effect["effect"], "mission": effect["mission"], "grant": effect["grant"], "key": effect["key"],
        "fingerprint": effect["fingerprint"], "attempts": effect["attempts"], "state": state, "at": at,
        "outcome": None if outcome is None else _sha256(outcome), "prev": str(log.get(HEAD, "")),
    }  # fmt: skip
    number = int(log.get("lines", 0)) + 1
    log["lines"], log[HEAD] = number, digest_of_line(line)
    root[roots.EFFECT_LINES][number] = line


def digest_of_line(line: Mapping[str, object]) -> str:
    """Return the digest that the next line has as `prev`: SHA-256 over its canonical JSON."""
    return _sha256(line)


def _sha256(value: object) -> str:
    form = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(form.encode("utf-8", "surrogatepass")).hexdigest()


def lines_of_log(root: Root) -> Iterator[Mapping[str, Any]]:
    """Yield all lines, the oldest first."""
    yield from root[roots.EFFECT_LINES].values() if roots.EFFECT_LINES in root else ()


def head_of_log(root: Root) -> str:
    """Return the digest of the newest line; "" if there is none."""
    return str(root[roots.EFFECT_LOG].get(HEAD, "")) if roots.EFFECT_LOG in root else ""
