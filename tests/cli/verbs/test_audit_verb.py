"""The verb `audit` as a person types it, and its export as a stranger checks it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.processes import User

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"


def checked(file: Path) -> str:
    """What the program of the page says of a file."""
    source = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    told = subprocess.run([sys.executable, "-I", "-c", source, file], capture_output=True, text=True, check=False)
    return told.stdout + told.stderr


def test_records_are_verified_and_exported(user: User, tmp_path: Path) -> None:
    """By the verb, and by the program of the page; what is changed in the file is found; anchors hold or do not."""
    (tmp_path / "notes").mkdir()
    user.run("grants", "add", "file", str(tmp_path / "notes"))
    user.run("ask", "What holds a pier?", "--effort", "reflex")
    user.run("send", "notes", "append_", "log.txt", "A line.", "--grant", "notes")
    told = user.run("audit", "verify", "--json").document["data"]
    assert (told["ok"], told["calls"] >= 1, told["effects"], told["faults"]) == (True, True, 1, [])
    assert user.run("audit", "verify", "--anchor", told["head"][:12]).code == 0
    assert user.run("undo").code == 0
    user.run("ask", "What holds a quay?", "--effort", "reflex")
    assert user.run("audit", "verify", "--anchor", told["head"], "--anchor", told["effects_head"]).code == 0
    unknown = user.run("audit", "verify", "--anchor", "0" * 64)
    assert (unknown.code, "no record has the digest" in unknown.out) == (1, True)
    for options in ((), ("--bodies",)):
        file = tmp_path / f"audit{len(options)}.jsonl"
        assert user.run("audit", "export", str(file), *options).code == 0
        assert "records are sound" in checked(file)
        assert ("What holds a pier?" in file.read_text()) is bool(options)
    lines = file.read_text().splitlines()
    for number, broken in (
        (1, lines[1].replace('"state":"done"', '"state":"cut"')),
        (1, lines[1].replace("What holds a pier?", "What holds a fire?")),
        (2, None),
    ):
        changed = [line for at, line in enumerate(lines) if at != number or broken is not None]
        if broken is not None:
            assert broken != lines[number]
            changed[number] = broken
        (tmp_path / "changed.jsonl").write_text("\n".join(changed))
        assert "sound" not in checked(tmp_path / "changed.jsonl")
    assert user.run("audit", "export", str(file)).code == 2
    counted = user.run("audit", "export", str(tmp_path / "other.jsonl"), "--json").document["data"]
    assert (counted["calls"], counted["effects"]) == (len(lines) - 2, 1)
    assert user.run("audit", "export", "--json").document["error"]["field"] == "file"
    assert user.run("audit", "export", "--since", "last").code == 2
    later = [json.loads(line) for line in user.run("audit", "export", "--since", "2h ago").out.splitlines()]
    assert (later[0]["format"], later[0]["calls"]) == ("batos-audit", len(lines) - 2)
    none = user.run("audit", "export", "--since", "2099-01-01").out.splitlines()
    assert json.loads(none[0])["calls"] == 0


def test_without_an_image_there_is_nothing_to_verify(user: User) -> None:
    """The remedy says where to look."""
    other = user.run("audit", "verify", "--home", str(user.home / "other"))
    assert (other.code, "batos genesis" in other.err) == (2, True)
