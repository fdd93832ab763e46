"""The corpus of hostile and benign methods: every one that must be refused is, every benign one is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from batos.guardian.audit import audit


def samples(corpus: Path, kind: str) -> list[Path]:
    folder = corpus / "guardian" / kind
    if not folder.is_dir():
        pytest.skip(f"no samples at {folder}: set BATOS_CORPUS to a corpus that has them")
    return sorted(folder.glob("*.py"))


def test_what_must_be_refused_is_refused(corpus: Path) -> None:
    """No sample that expects `reject` is accepted by the audit alone."""
    must = [path for path in samples(corpus, "hostile") if b"expect: reject" in path.read_bytes().split(b"\n")[0]]
    assert must
    assert [path.name for path in must if audit(path.read_bytes()).accepted] == []


def test_what_is_benign_is_accepted(corpus: Path) -> None:
    """Every benign sample is accepted, and its slots can be listed."""
    refused = {
        path.name: [str(fault) for fault in verdict.faults]
        for path in samples(corpus, "benign")
        if not (verdict := audit(path.read_bytes())).accepted or not verdict.listable
    }
    assert refused == {}
