"""What differs between two codices, and what comes of it."""

from __future__ import annotations

from pathlib import Path

from tests.genesis.conftest import Edit

from batos.genesis.codex import codex as codices
from batos.genesis.codex import origins
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.origins import Change, CodexDifferences, owners, unified_diff


def compared(codex: Codex, folder: Path, was: str = "default", now: str = "default") -> CodexDifferences:
    """The shipped codex against what the folder has become."""
    return origins.summary_of_differences(codex, codices.load(folder), was, now)


def test_nothing_differs(codex: Codex, folder: Path, edit: Edit) -> None:
    """A comment changes no key, and nothing comes of it."""
    edit("robin.toml", "[options]", "# a remark\n[options]")
    assert compared(codex, folder) == CodexDifferences()


def test_each_kind_of_change(codex: Codex, folder: Path, edit: Edit) -> None:
    """Keys that come, change and go are told with both values."""
    edit("robin.toml", "temperature = 0.8", "temperature = 0.5\nseed = 7")
    edit("brick.toml", "top_p = 0.9\n", "")
    found = compared(codex, folder).changes
    assert Change("ROBIN", "options.temperature", "changed", 0.8, 0.5) in found
    assert Change("ROBIN", "options.seed", "added", after=7) in found
    assert Change("BRICK", "options.top_p", "removed", before=0.9) in found
    assert list(owners(found)) == ["ROBIN", "BRICK"]


def test_what_comes_of_it(codex: Codex, folder: Path, edit: Edit) -> None:
    """Identity and options make a model anew, an intent only its slot, triggers neither; new names may be pulled."""
    edit("robin.toml", "temperature = 0.8", "temperature = 0.5")
    edit("brick.toml", "# BRICK:", 'model = "qwen3:0.6b"\n# BRICK:')
    edit("alfred.toml", 'slot = "cognitive_efficiency_audit_protocol_"', 'slot = "thrift_protocol_"')
    edit("alfred.toml", '"cognitive_efficiency_audit_protocol_(', '"thrift_protocol_(')
    edit("babs.toml", "how deep is lake baikal", "how deep is lake garda")
    found = compared(codex, folder)
    assert found.models == ("ROBIN", "BRICK")
    assert found.pulls == ("qwen3:0.6b",)
    assert found.slots == ("ALFRED.thrift_protocol_",)
    assert found.gone == ("ALFRED.cognitive_efficiency_audit_protocol_",)
    assert ("BABS", "exemplars") in {(each.owner, each.key) for each in found.changes}


def test_ours_alone_makes_no_model(codex: Codex, folder: Path, edit: Edit) -> None:
    """`mode` and `think` travel with calls and are in no model."""
    edit("robin.toml", 'mode = "direct"', 'mode = "two_phase"')
    found = compared(codex, folder)
    assert [each.key for each in found.changes] == ["options.mode"]
    assert found.models == ()


def test_another_profile(codex: Codex, folder: Path) -> None:
    """With another profile every persona's model is made anew, on a base that may have to be pulled."""
    found = compared(codex, folder, "default", "small")
    assert found.models == ("ROBIN", "BRICK", "BABS", "ALFRED")
    assert found.pulls == ("llama3.2:3b-instruct-q4_K_M",)
    assert found.as_dict()["profile"] == {"before": "default", "after": "small"}


def test_texts_are_compared_line_by_line() -> None:
    """A unified diff of every file that differs, also of one that is on one side only."""
    lines = list(unified_diff({"a": "x\ny\n", "b": "1\n"}, {"a": "x\nz\n", "c": "2\n"}, "image", "codex"))
    assert lines[:2] == ["--- image/a", "+++ codex/a"]
    assert {"-y", "+z", "-1", "+2", "--- image/b", "+++ codex/c"} <= set(lines)
    assert list(unified_diff({"a": "x"}, {"a": "x\n"}, "image", "codex")) == []
