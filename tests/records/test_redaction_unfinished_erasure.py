"""The note of an erasure: what a version writes is read, and what none writes counts for none."""

from __future__ import annotations

from typing import Any

import pytest
from persistent.mapping import PersistentMapping

from batos.records import redaction
from batos.records.redaction import Lines

LINES = Lines(("a secret",), ("m-1",))
BEGUN: dict[str, Any] = {"at": "now", "by": "you", "stage": "begun"}
WORDS: dict[str, Any] = {"request": {"by": "you"}, "lines": tuple(LINES)}


def test_a_note_is_read_at_each_stage() -> None:
    """What was asked for until the records are erased, the lines until they are out, and nothing at the end."""
    root: Any = {}
    assert redaction.read_erasure(root) is None
    redaction.begin_erasure(root, {"by": "you"}, LINES, "now")
    begun = redaction.read_erasure(root)
    assert begun is not None
    assert (redaction.request_of(begun), redaction.lines_of(begun)) == ({"by": "you"}, LINES)
    redaction.note_lines(root, LINES)
    erased = redaction.read_erasure(root)
    assert erased is not None
    assert (redaction.request_of(erased), redaction.lines_of(erased)) == (None, LINES)
    redaction.note_history(root)
    assert redaction.describe_erasure(root) == {"at": "now", "by": "you", "stage": "history"}
    redaction.end_erasure(root)
    assert redaction.read_erasure(root) is None


@pytest.mark.parametrize(
    "note",
    [
        {"at": "now"},
        {**BEGUN, "stage": "another"},
        BEGUN,
        {**BEGUN, "words": PersistentMapping(WORDS, request=None)},
        {**BEGUN, "words": PersistentMapping(WORDS, lines=("one",))},
        {**BEGUN, "words": PersistentMapping(WORDS, lines=3)},
        {**BEGUN, "words": "none"},
        {**BEGUN, "stage": "lines", "words": PersistentMapping()},
        {**BEGUN, "stage": ["lines"]},
    ],
)
def test_a_malformed_note_counts_for_none(note: dict[str, Any]) -> None:
    """A stranger's backup may have anything there, and the process that opens it works all the same."""
    root: Any = {"erasure": PersistentMapping(note)}
    assert (redaction.read_erasure(root), redaction.describe_erasure(root)) == (None, None)
