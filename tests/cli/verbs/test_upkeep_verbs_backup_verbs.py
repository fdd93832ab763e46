"""The verbs `backup` and `restore` as a person types them."""

from __future__ import annotations

from pathlib import Path

from tests.cli.processes import User


def test_a_home_is_backed_up_and_restored_elsewhere(user: User, tmp_path: Path) -> None:
    """Its backups are listed; a home with an image, a strange moment and an empty folder are refused."""
    folder, other = tmp_path / "backups", tmp_path / "restored"
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    assert user.run("backup", str(folder), "--list").out == "There is no backup.\n"
    made = user.run("backup", str(folder), "--json").document["data"]
    assert user.run("ask", "What holds a quay?", "--effort", "reflex").code == 0
    assert "The mind as of" in user.run("backup", str(folder)).out
    assert len(user.run("backup", str(folder), "--list", "--json").document["data"]["backups"]) == 2
    assert user.run("restore", str(folder)).code == 4
    assert user.run("restore", str(folder), "--home", str(other)).code == 0
    missions = user.run("missions", "--json", "--home", str(other)).document["data"]["missions"]
    assert [each["text"] for each in missions] == ["What holds a quay?", "What holds a pier?"]
    assert user.run("verify", "--home", str(other)).code == 0
    assert user.run("audit", "verify", "--home", str(other)).code == 0
    assert user.run("restore", str(folder), "--at", made["at"], "--home", str(tmp_path / "first")).code == 0
    assert user.run("restore", str(folder), "--at", "last", "--home", str(tmp_path / "x")).code == 2
    assert user.run("restore", str(tmp_path), "--home", str(tmp_path / "x")).code == 2
    assert user.run("backup", str(user.home / "here")).code == 2
    assert user.run("backup", str(folder), "--image", "memory://x").code in (2, 4)
    nothing = user.run("backup", str(tmp_path / "none"), "--home", str(tmp_path / "absent"))
    assert (nothing.code, "Copying" in nothing.err, "batos genesis" in nothing.err) == (2, False, True)


def test_settings_that_name_an_address_are_named_with_the_way_to_take_them_over(user: User, tmp_path: Path) -> None:
    """A person is told the command, a program the file's name; Ollama is asked where the home's settings say."""
    folder, other = tmp_path / "backups", tmp_path / "restored"
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    (user.home / "batos.toml").write_text('ollama_host = "http://192.0.2.1:11434"\n')
    assert user.run("backup", str(folder)).code == 0
    told = user.run("restore", str(folder), "--home", str(other))
    assert f"mv {other}/batos.toml.from-backup {other}/batos.toml" in " ".join(told.err.split())
    again = user.run("restore", str(folder), "--home", str(tmp_path / "again"), "--json")
    assert again.document["data"]["unused"] == ["batos.toml.from-backup"]
    assert not (other / "batos.toml").exists()
