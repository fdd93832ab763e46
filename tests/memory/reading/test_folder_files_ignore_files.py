"""Rules of files to be left out, as git has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from batos.memory.reading.folder_files import IgnoreFiles


def test_rules_hold_in_the_folders_below(tmp_path: Path) -> None:
    """The innermost decides; patterns with a slash are anchored; a folder is told by its slash."""
    deep = tmp_path / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("*.log\n/src/gen.py\nbuild/\n", encoding="utf-8")
    (deep / ".gitignore").write_text("!keep.log\n", encoding="utf-8")
    ignored = IgnoreFiles()
    top, src, inner = (ignored.rules_in(each) for each in (tmp_path, tmp_path / "src", deep))
    assert top.ignores("a.log")
    assert not top.ignores("a.txt")
    assert (top.ignores("build/"), top.ignores("build")) == (True, False)
    assert (src.ignores("gen.py"), inner.ignores("gen.py")) == (True, False)
    assert (inner.ignores("keep.log"), inner.ignores("other.log")) == (False, True)


def test_own_rules_go_before_those_of_git(tmp_path: Path) -> None:
    """`.batosignore` leaves out what git keeps, and takes what git leaves out."""
    (tmp_path / ".gitignore").write_text("*.pdf\n", encoding="utf-8")
    (tmp_path / ".batosignore").write_text("!paper.pdf\nsecret.txt\n", encoding="utf-8")
    rules = IgnoreFiles().rules_in(tmp_path)
    assert [rules.ignores(name) for name in ("paper.pdf", "other.pdf", "secret.txt")] == [False, True, True]


def test_rules_that_cannot_be_read_ignore_nothing(tmp_path: Path) -> None:
    """A folder of that name, bytes that are no text, and a pattern that is none."""
    (tmp_path / ".gitignore").mkdir()
    (tmp_path / ".batosignore").write_bytes(b"\xff\xfe\n!\n[\n")
    assert not IgnoreFiles().rules_in(tmp_path).ignores("a.txt")


@pytest.mark.parametrize(("slow", "name"), [("*a" * 8 + "*b", "a" * 250), ("**/a/" * 3 + "b", "a/" * 2_000 + "c")])
def test_rules_with_too_many_stars_are_told_and_ignore_nothing(tmp_path: Path, slow: str, name: str) -> None:
    """Such a rule would take years for a long name, and this test with it; the others hold, and comments are none."""
    told: list[tuple[str, str]] = []
    (tmp_path / ".gitignore").write_text(f"# **** built ****\n{slow}\n*.*.l*g\n/**/**/**/**/tmp/**\n", encoding="utf-8")
    rules = IgnoreFiles(lambda path, reason: told.append((path.name, reason))).rules_in(tmp_path)
    assert not rules.ignores(name)
    assert [rules.ignores(each) for each in ("a.b.log", "x/y/tmp/z")] == [True, True]
    assert told == [(".gitignore", "1 of its rules have too many `*`: they ignore nothing")]


def test_very_many_rules_with_several_stars_are_told(tmp_path: Path) -> None:
    """The first of them hold, and all that have one star. The rest would take hours, and this test with them."""
    told: list[str] = []
    many = "".join(f"*a*a*a{number}\n" for number in range(1_000))
    (tmp_path / ".gitignore").write_text(f"*.b*g\n{many}*.log\n", encoding="utf-8")
    rules = IgnoreFiles(lambda path, reason: told.append(reason)).rules_in(tmp_path)
    assert [rules.ignores(each) for each in ("a.bag", "aaa1", "aaa999", "x.log", "a" * 255)] == [
        True, True, False, True, False
    ]  # fmt: skip
    assert told == ["937 of its rules have too many `*`: they ignore nothing"]
