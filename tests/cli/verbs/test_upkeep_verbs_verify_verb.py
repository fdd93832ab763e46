"""The verbs `verify` and `repair` as a person types them."""

from __future__ import annotations

from tests.care.test_verification import planted
from tests.cli.processes import User

from batos.cli.verbs.upkeep_verbs import repaired_text, verified_text

FAULT = {"kind": "orphan record", "where": "oid:0x2a", "what": "nothing ever referred to it", "can_repair": True}


def test_a_fault_is_named_and_repaired(user: User) -> None:
    """First only looked at; without an image there is nothing to verify."""
    assert user.run("remember", "The pier of Orm was mended.", "--title", "0.md").code == 0
    assert user.run("verify").out.startswith("The image is sound")
    planted(lambda root: root["tally"].update(done=7))(user.home)
    told = user.run("verify")
    assert (told.code, "wrong count: tally" in told.out) == (1, True), told.out
    planned = user.run("repair", "--dry-run", "--json").document["data"]
    assert [each["kind"] for each in planned["mended"]] == ["wrong count"]
    assert user.run("verify").code == 1
    done = user.run("repair")
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 fault mended.")
    assert user.run("repair").out == "Nothing is to be repaired.\n"
    assert user.run("verify", "--json").document["data"] == {"ok": True, "faults": []}
    absent = str(user.home / "absent")
    nowhere = user.run("verify", "--home", absent)
    assert (nowhere.code, user.run("repair", "--home", absent).code) == (2, 2)
    assert "batos genesis" in nowhere.err


def test_many_faults_are_counted() -> None:
    """And what is left is told with what helps."""
    fault = {**FAULT, "repair": "delete the record"}
    told = verified_text({"faults": [fault] * 60})
    assert ("and 10 more" in told, "60 faults. `batos repair` mends 60" in told) == (True, True)
    left = {**fault, "can_repair": False, "repair": "Only a backup brings it back: `batos restore`."}
    done = repaired_text({"dry_run": False, "mended": [fault], "left": [left]})
    assert ("1 fault mended." in done, "Only a backup" in done, done.endswith("1 fault left.")) == (True, True, True)
