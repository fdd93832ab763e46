"""The home: a checkout's only for the package that runs from it, and none that another user may have written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from batos import config
from batos.config import CONFIG_FILE
from batos.home_folder import check_own, checkout_folder
from batos.protocol.errors import ConfigError

DEEP = "a = " + "[" * 50_000


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder that says it is a checkout of this project."""
    folder = tmp_path / "project"
    (folder / "deep").mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "batos"\n', encoding="utf-8")
    return folder


def test_the_package_of_a_checkout_has_its_home_there(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anywhere in the checkout that the package runs from, the home is .batos at its top; a flag names another."""
    monkeypatch.chdir(checkout / "deep")
    loaded = config.load({}, package=checkout / "src" / "batos")
    assert loaded.settings.home == checkout / ".batos"
    assert loaded.sources["home"] == "default (in a checkout)"
    assert config.load({}, {"home": "here"}).settings.home == checkout / "deep" / "here"


def test_a_package_from_elsewhere_takes_no_home_of_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may put a pyproject.toml of ours and a home with settings above a folder of another user's."""
    (checkout / ".batos").mkdir()
    (checkout / ".batos" / CONFIG_FILE).write_text('ollama_host = "http://192.0.2.1"\n', encoding="utf-8")
    monkeypatch.chdir(checkout / "deep")
    settings = config.load({"XDG_DATA_HOME": str(checkout.parent / "data")}).settings
    assert settings.home == checkout.parent / "data" / "batos"
    assert settings.ollama_host == "http://127.0.0.1:11434"


def test_adapters_below_a_strangers_checkout_are_those_of_the_home(checkout: Path) -> None:
    """A home that is named, below a folder that only says it is a checkout, has its adapters in itself."""
    settings = config.load({"BATOS_HOME": str(checkout / "deep")}).settings
    assert settings.place == checkout / "deep"


def test_the_home_outside_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the home is where data of the user's belongs."""
    monkeypatch.chdir(tmp_path)
    assert config.load({"XDG_DATA_HOME": str(tmp_path / "data")}).settings.home == tmp_path / "data" / "batos"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.load({"XDG_DATA_HOME": ""}).settings.home == tmp_path / ".local" / "share" / "batos"


def test_a_folder_that_is_gone_is_no_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell may stand in a folder that was removed; the home is then found without it."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert config.load({"XDG_DATA_HOME": str(tmp_path)}).settings.home == tmp_path / "batos"


@pytest.mark.parametrize(
    "text",
    [
        '[project]\nname = "another"\n', "", "[project]\nname = 3\n", "not TOML at all", "[tool.x]\n", DEEP,
        f"a = {'9' * 5_000}", "project = 3", "[[project]]",
    ],
)  # fmt: skip
def test_other_projects_are_no_checkout(tmp_path: Path, text: str) -> None:
    """Only a pyproject.toml that names this project makes a checkout, and a broken one is no error."""
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert checkout_folder(tmp_path, tmp_path / "batos") is None


def test_a_home_of_another_user_is_refused(tmp_path: Path) -> None:
    """The error names both users, and the remedy another home; root's is nobody else's."""
    check_own(tmp_path, {}, os.geteuid())
    if os.geteuid() == 0:
        check_own(tmp_path, {}, 4321)
        os.chown(tmp_path, 1234, -1)
    owner = tmp_path.stat().st_uid
    with pytest.raises(ConfigError, match=f"belongs to the user {owner}, not to 4321") as raised:
        check_own(tmp_path, {}, 4321)
    assert raised.value.field == "home"
    assert "BATOS_HOME" in raised.value.remedy


def test_a_home_without_owners_is_trusted_by_a_person(tmp_path: Path) -> None:
    """Some file systems give all files to one user, and rights to all; the remedy names the variable."""
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError) as raised:
        check_own(tmp_path, {}, 4321)
    assert "BATOS_TRUST_HOME=1" in raised.value.remedy
    check_own(tmp_path, {"BATOS_TRUST_HOME": "1"}, 4321)
    told = config.load({"BATOS_HOME": str(tmp_path), "BATOS_TRUST_HOME": "1"})
    assert (told.settings.home, told.unread) == (tmp_path, ())


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_home_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    """Its settings are not read; the remedy takes the right, and then they are."""
    home = tmp_path / "home"
    home.mkdir()
    (home / CONFIG_FILE).write_text("nonsense", encoding="utf-8")
    home.chmod(mode)
    with pytest.raises(ConfigError, match="others may write") as raised:
        config.load({"BATOS_HOME": str(home)})
    assert f"chmod go-w {home}" in raised.value.remedy
    home.chmod(mode & ~0o022)
    check_own(home, {})


def test_a_home_that_is_not_there_yet_is_nobodys(tmp_path: Path) -> None:
    """A home that is still to be made is not refused, nor is a name that no folder can have."""
    check_own(tmp_path / "home", {})
    check_own(Path("\0"), {})
