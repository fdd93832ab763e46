"""The verbs `export` and `import` as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.processes import User


def test_a_mind_moves_to_another_home(user: User, tmp_path: Path) -> None:
    """With its missions, memories and codex; over another mind nothing is imported, and no address is taken over."""
    folder, other = tmp_path / "mind", tmp_path / "other"
    assert user.run("ask", "My cat is called Miso. What holds a pier?", "--effort", "reflex").code == 0
    told = user.run("export", str(folder), "--json").document["data"]
    assert (told["image"] > 10, told["journal"] > 2) == (True, True)
    header, *lines = (json.loads(line) for line in (folder / "mind.jsonl").read_text().splitlines())
    assert header == {"format": "batos-image", "version": 1}
    assert len(lines) == told["image"] + told["journal"]
    assert user.run("export", str(folder)).code == 2
    assert user.run("import", str(folder)).code == 4
    (folder / "batos.toml").write_text('ollama_host = "http://192.0.2.1:11434"\n')
    done = user.run("import", str(folder), "--home", str(other))
    assert "was left out" in done.err
    assert not (other / "batos.toml").exists()
    assert (done.code, "objects of the image" in done.out) == (0, True), done.err
    assert "Miso" in user.run("recall", "cat Miso", "--home", str(other)).out
    assert user.run("verify", "--home", str(other)).code == 0
    assert user.run("audit", "verify", "--home", str(other)).code == 0
    assert user.run("ask", "What is a sluice?", "--effort", "reflex", "--home", str(other)).code == 0
    assert user.run("import", str(tmp_path), "--home", str(tmp_path / "x")).code == 2
    assert user.run("export", str(tmp_path / "y"), "--home", str(tmp_path / "none")).code == 2


def test_a_refused_import_leaves_the_home_as_it_was(user: User, tmp_path: Path) -> None:
    """No database is left, so that a backup can be restored there, or another export be imported."""
    folder, backups, other = tmp_path / "mind", tmp_path / "backups", tmp_path / "other"
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    assert user.run("backup", str(backups)).code == 0
    assert user.run("export", str(folder)).code == 0
    lines = folder / "mind.jsonl"
    whole = lines.read_text()
    lines.write_text(whole[:-20])
    refused = user.run("import", str(folder), "--home", str(other))
    assert (refused.code, "is damaged" in refused.err) == (2, True)
    assert not [*other.glob("*.fs*"), *other.glob("blobs")]
    assert user.run("restore", str(backups), "--home", str(other)).code == 0
    lines.write_text(whole)
    again = user.run("import", str(folder), "--home", str(other))
    assert (again.code, "already" in again.err) == (4, True)
    assert user.run("verify", "--home", str(other)).code == 0


def test_good_answers_are_exported_as_chat_lines(user: User, tmp_path: Path) -> None:
    """Of a persona and a time, with the number of those that were left out; the options belong together."""
    good, bad = (f"Should we move to {town}?" for town in ("Ulm", "Orm"))
    for text in (good, bad):
        assert user.run("ask", text, "--effort", "reflex", "--persona", "ROBIN").code == 0
    assert user.run("rate", "bad", "--why", "Nobody lives there.").code == 0
    told = user.run("export", "--training", str(tmp_path / "sets"), "--json").document["data"]
    lines = [json.loads(line) for line in (tmp_path / "sets" / "robin.jsonl").read_text().splitlines()]
    assert (told["lines"], len(lines)) == ({"ROBIN": 1}, 1)
    assert good in lines[0]["messages"][-2]["content"]
    assert told["left_out"]["a person did not take the answer"] == 1
    shown = user.run("export", "--training", str(tmp_path / "none"), "--persona", "babs")
    assert (shown.code, "No answer may be learnt from." in shown.out) == (0, True)
    assert user.run("export", str(tmp_path / "mind"), "--persona", "BABS").code == 2
