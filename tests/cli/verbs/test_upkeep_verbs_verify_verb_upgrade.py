"""The verb `upgrade`, and an older home under the other verbs, as a person types them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.care.kept_homes import OLDEST, unpack
from tests.cli.processes import User

from batos.care.upgrading import backup_folder
from batos.cli.verbs.upkeep_verbs import upgraded_text
from batos.image.roots import FORMAT


@pytest.fixture
def older(user: User) -> User:
    """A person whose home an older version wrote."""
    shutil.rmtree(user.home, ignore_errors=True)
    unpack(OLDEST, user.home)
    return user


def test_an_upgrade_is_told_before_and_after(older: User, tmp_path: Path) -> None:
    """With a folder of the person's own; a second one has nothing to do."""
    folder = tmp_path / "before"
    planned = older.run("upgrade", "--dry-run", "--backup", str(folder))
    assert (planned.code, f"Format 1 would become {FORMAT}:" in planned.out, str(folder) in planned.out) == (
        0,
        True,
        True,
    )
    assert not folder.exists()
    assert older.run("upgrade", "--backup", str(folder), "--no-backup").code == 2
    done = older.run("upgrade", "--backup", str(folder), "--json").document["data"]
    assert (done["format"], done["known"], done["backup"]) == (1, FORMAT, str(folder))
    assert done["upgrades"][0]["to"] == FORMAT
    assert (folder / "backups.jsonl").exists()
    assert (
        older.run("upgrade").out == f"The image has format {FORMAT}, which is this version's: nothing is to be done.\n"
    )
    assert older.run("upgrade", "--home", str(tmp_path / "absent")).code == 2


def test_verbs_that_read_change_nothing_and_those_that_work_upgrade(older: User) -> None:
    """The backup is then in the home."""
    assert "How deep is the harbour?" in older.run("missions").out
    assert older.run("verify").code == 0
    assert not backup_folder(older.home).exists()
    told = older.run("remember", "The pier of Orm was mended.")
    assert told.code == 0, told.err
    assert f"format 1 becomes {FORMAT}" in told.err
    assert (backup_folder(older.home) / "backups.jsonl").exists()
    assert older.run("verify").out.startswith("The image is sound")


def test_an_upgrade_without_a_backup_names_none() -> None:
    """Nothing is promised then."""
    told = {"format": 1, "known": 4, "dry_run": False, "backup": "", "steps": [{"format": 4, "what": "do it"}]}
    assert upgraded_text(told) == "Format 1 became 4:\n    4  do it"
