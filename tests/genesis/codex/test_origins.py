"""Every value of a codex is laid out with the place that it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.genesis.conftest import Edit

from batos.genesis.codex import codex as codices
from batos.genesis.codex import origins
from batos.genesis.codex.codex import Codex
from batos.genesis.codex.origins import CodexRow, plain


def laid(folder: Path, profile: str = "default") -> dict[str, CodexRow]:
    """The rows of a codex by full name."""
    found, absent = codices.standing(folder)
    shipped = codices.parse(codices.read_shipped()).codex
    assert shipped is not None
    return {row.entry.name: row for rows in origins.rows(found, shipped, profile, absent).values() for row in rows}


def test_every_source_is_the_line_of_its_key(folder: Path) -> None:
    """A source names a file and a line on which that key stands; what stands nowhere is a default."""
    rows = laid(folder)
    for row in rows.values():
        if row.source == "default":
            assert row.entry.key.endswith(("options.think", ".may_learn", "form", "cycle_from"))
            continue
        file, _, number = row.source.rpartition("(")[2].rstrip(")").partition(":")
        written = (folder / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]
        last = row.entry.key.rpartition(".")[2]
        assert written.lstrip("[").startswith((last, "default_model", "model", "api"))
    assert not any(row.edited for row in rows.values())


def test_all_of_a_persona_is_laid_out(folder: Path, codex: Codex) -> None:
    """Identity, model, options, phrases, templates and every declaration, with the values that are in force."""
    rows = laid(folder)
    robin = codex.personas["ROBIN"]
    assert rows["ROBIN.core_method"].entry.value == robin.core_method
    assert {name.rpartition(".")[2] for name in rows if name.startswith("ROBIN.options.")} == set(
        codex.options_for("ROBIN")
    )
    for intent in (*robin.pillars, *robin.protocols):
        assert rows[f"ROBIN.{intent.slot}.intent"].entry.value == intent.intent
    assert rows["ROBIN.sages_koan_protocol_.when"].source.startswith("robin.toml:")
    assert "ROBIN.sage_facet_.when" not in rows


def test_what_a_profile_replaces(folder: Path, edit: Edit) -> None:
    """In a profile its model and options stand, and say that they are the profile's; a persona's own model stays."""
    line = edit("mind.toml", 'model = "llama3.2:3b', 'options = { num_ctx = 2048 }\nmodel = "llama3.2:3b')
    own = edit("brick.toml", "# BRICK:", 'model = "qwen3:0.6b"\n# BRICK:')
    rows = laid(folder, "small")
    assert rows["ROBIN.options.num_ctx"].source == f"the profile small (mind.toml:{line})"
    assert rows["ROBIN.model"].source == f"the profile small (mind.toml:{line + 1})"
    assert rows["BRICK.model"].source == f"brick.toml:{own}"
    assert rows["mind.profiles.small.coder"].source == f"its model (mind.toml:{line + 1})"
    assert rows["mind.profiles.small.embedder"].source.startswith("embedder (mind.toml:")
    assert rows["mind.coder"].source.startswith("default_model (mind.toml:")
    assert laid(folder)["ROBIN.options.num_ctx"].source.startswith("robin.toml:")


def test_what_was_edited_is_told(folder: Path, edit: Edit) -> None:
    """A value that is not the shipped one says so, and a comment is no edit."""
    edit("robin.toml", "temperature = 0.8", "temperature = 0.7 # calmer")
    edit("babs.toml", "# BABS:", "# Babs:")
    assert [name for name, row in laid(folder).items() if row.edited] == ["ROBIN.options.temperature"]


def test_a_file_that_is_not_there_stands_as_it_ships(folder: Path, tmp_path: Path) -> None:
    """What genesis would copy is laid out as shipped, and nothing is copied by looking."""
    (folder / "robin.toml").unlink()
    assert laid(folder)["ROBIN.triggers"].source.startswith("shipped robin.toml:")
    assert not (folder / "robin.toml").exists()
    assert all("shipped" in row.source or row.source == "default" for row in laid(tmp_path / "no").values())


@pytest.mark.parametrize("value", [(1, ("a",)), {"a": (1,)}, "x", True])
def test_values_are_plain(value: object) -> None:
    """Tuples become lists, however deep; all else stays."""
    assert "(" not in repr(plain(value))
