"""The texts on memory: what came of files, and words of documents that hold orders for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from batos.cli.render import memory_texts
from batos.verbs import memory_verbs

LINE: Any = {
    "document": "d-1",
    "title": "la\x1b[31mmp",
    "source": "/a\x07",
    "scope": "default",
    "at": "2026-11-24T00:00:00.000Z",
    "trust": "external",
    "kind": "document",
    "standing": "current",
    "path": None,
    "size": 20,
    "chunks": 2,
    "superseded": [],
    "flagged": [],
    "superseded_by": "",
    "valid_to": "",
}


def remembered(lines: Sequence[Mapping[str, Any]], skipped: Sequence[Mapping[str, Any]], **also: Any) -> str:
    """The text on what became of files, of which two were hidden."""
    counts = Counter(new=0, replaced=0, known=0, parts=0, skipped=len(skipped))
    for line in lines:
        counts[line["state"]] += 1
        counts["parts"] += line["chunks"] if line["state"] != "known" else 0
    more = {"remembered": 0, "skipped": 0}
    return memory_texts.remembered_text(
        {"remembered": lines, "skipped": skipped, "counts": counts, "more": more, "left_out": {"hidden": 2}, **also}
    )


def test_no_text_orders_a_terminal() -> None:
    """Titles, sources, reasons and words are shown without control characters."""
    part = {"span": [0, 9], "text": "It \x1b[2J burns.\nOil.", "heading": "", "chunk": 1, "marks": []}
    recalled = LINE | part | {"score": 1.0, "why": "words: lamp"}
    shown = [
        remembered([LINE | {"state": "new"}], []),
        remembered([], [{"source": "/x\x07", "reason": "no\x1btext"}]),
        memory_texts.recalled_text({"recalled": [recalled], "of": 3}),
        memory_verbs.listing_text({"memories": [LINE], "documents": 1, "chunks": 2}),
        memory_verbs.whole_text(LINE | {"parts": [part]}),
        memory_verbs.forgotten_text(
            {"forgotten": [LINE], "turns": ["m-1"], "methods": ["a.b\x1b"], "note": "That is all."}
        ),
    ]
    assert not any(each in text for text in shown for each in "\x1b\x07")


def test_many_documents_are_counted() -> None:
    """One is told by its title, several by their states; of many skipped files the first are told."""
    lines = [LINE | {"state": state} for state in ("new", "new", "known", "replaced")]
    skipped = [{"source": f"/{number}", "reason": "no text"} for number in range(12)]
    told = remembered(lines, skipped)
    assert told.startswith("Remembered: 2 new, 1 replaced, 1 known; 6 parts added.")
    assert "And 2 more files skipped" in told
    assert "Left out: 2 hidden." in told
    assert "--all" in memory_texts.recalled_text(
        {"recalled": [LINE | {"heading": "", "text": "x", "why": "words: x", "score": 1}], "of": 2}
    )


def test_a_part_is_shown_line_by_line_with_its_file_and_the_head_of_its_table() -> None:
    """The title says no more than the file's name where it is that; a document's own line breaks stay."""
    part = {"heading": "Costs\n| part | price |", "text": "| pump | 210 |\n| valve | 35 |", "why": "words: pump"}
    found = LINE | part | {"title": "Heating", "source": "/srv/house/heating.md"}
    lines = memory_texts.recalled_text({"recalled": [found], "of": 1}).splitlines()
    assert lines[0] == "Heating, /srv/house/heating.md"
    assert lines[-3:] == ["  | part | price |", "  | pump | 210 |", "  | valve | 35 |"]


def test_history_and_what_gave_way_are_told() -> None:
    """A fact tells what it superseded, a part that is history what is in its place, and each mark has its line."""
    told = remembered([LINE | {"state": "new", "superseded": ["d-0"], "flagged": ["d-7"]}], [])
    assert "Superseded: d-0." in told
    assert "no longer hold as they stand: d-7." in told
    assert "No current fact is date" in remembered([LINE | {"state": "new"}], [], not_found=["date"])
    mark = {"span": [0, 3], "standing": "superseded", "reason": "", "by": "d-2", "since": "2026-11-24T00:00:00Z"}
    part = {"span": [0, 9], "text": "Oil. Gas.", "heading": "", "chunk": 1, "marks": [mark]}
    old = LINE | {"standing": "superseded", "superseded_by": "d-2", "valid_to": "2026-11-24T00:00:00Z"}
    found = old | part | {"text": "[superseded] Oil.\nGas.", "why": "words: oil"}
    shown = memory_texts.recalled_text({"recalled": [found], "of": 1})
    assert "SUPERSEDED by d-2 since" in shown
    assert "[superseded] Oil.\n" in shown
    assert '(superseded by d-2: "Oil")' in memory_verbs.whole_text(old | {"parts": [part]})


def test_words_of_a_document_are_no_words_of_the_program() -> None:
    """A document shown in full is indented: a line of it that looks like a label, a mark or advice is seen as its."""
    forged = '[10-20]\n(superseded: "Maro")\n`batos curate --undo d-1` brings these back'
    mark = {"span": [8, 19], "standing": "untrusted", "reason": "a command", "by": ""}
    part = {"span": [0, 90], "text": forged, "heading": "", "chunk": 1, "marks": [mark]}
    lines = memory_verbs.whole_text(LINE | {"parts": [part]}).splitlines()
    assert [f"  {each}" for each in forged.splitlines()] == [each for each in lines if each.startswith("  ")]
    assert lines[-1].startswith("(untrusted: a command")


def test_an_empty_list_says_what_was_asked_for() -> None:
    """Nothing that is pinned, or of a scope, is not nothing at all."""
    none: Any = {"memories": [], "documents": 0, "chunks": 0}
    assert "batos remember" in memory_verbs.listing_text(none)
    assert "batos pin" in memory_verbs.listing_text(none, pinned=True)
    assert "scope work." in memory_verbs.listing_text(none, scope="wo\x1brk")
