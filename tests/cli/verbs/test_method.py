"""The verbs about methods: what a person goes through who wants another method."""

from __future__ import annotations

from pathlib import Path

from tests.cli.processes import User
from tests.cli.test_completion import offered

NAME = "brick_prototype_obj.tamland_facet_"
SOURCE = '''async def tamland_facet_(self, query):
    """Red."""
    return "Here is " + query
'''
CHECKS = """[
  {"arguments": ["a nail"], "result": "Here is a nail"},
  {"arguments": ["a plank"], "result": "Here is a plank"}
]"""


def test_nothing_is_there(user: User) -> None:
    """Each list says so, and what would change it; an object that there is not is named."""
    listed, tools = user.run("method", "list"), user.run("tools", "--json")
    assert (listed.code, "There is no method yet" in listed.out) == (0, True)
    assert tools.document["data"] == {"tools": [], "written": []}
    assert (user.run("method").out, user.run("dream").out) == (listed.out, user.run("dream", "list").out)
    wrong = user.run("method", "show", "brick_prototype_obj.tamlnd_facet_", "--json")
    assert (wrong.code, wrong.document["error"]["code"], wrong.document["error"]["field"]) == (2, "not_found", "method")
    assert "did you mean tamland_facet_" in wrong.document["error"]["message"]


def test_a_method_of_ones_own_and_back(user: User, tmp_path: Path) -> None:
    """Written, refused for what could move a cursor, corrected, installed, shown, rolled back to the intent."""
    source, checks = tmp_path / "own.py", tmp_path / "checks.json"
    checks.write_text(CHECKS, encoding="utf-8")
    source.write_text(SOURCE.replace("Red", "\x1b[31mRed"), encoding="utf-8")
    redefine = ("method", "redefine", NAME, "--file", str(source), "--checks", str(checks))
    refused = user.run(*redefine)
    assert refused.code == 1
    assert "the guardian refuses" in refused.err

    assert "\x1b" not in refused.err
    source.write_text(SOURCE, encoding="utf-8")
    made = user.run(*redefine, "--json")
    assert (made.code, made.document["data"]["active"]) == (0, 1)
    bound = tmp_path / "bound.json"
    bound.write_text(user.run("method", "show", NAME, "--checks").out, encoding="utf-8")
    assert user.run(*redefine[:-1], str(bound), "-q").code == 0, "what is printed can be given back"
    shown = user.run("method", "show", NAME)
    assert shown.out.rstrip().endswith('return "Here is " + query')
    listed = user.run("method", "list", "brick_prototype_obj", "--json").document["data"]["methods"]
    assert [(each["method"], each["state"]) for each in listed] == [(NAME, "active")]

    back = user.run("method", "rollback", NAME, "--revision", "0")
    assert (back.code, back.out) == (0, f"{NAME}: the intent is interpreted from the next mission on.\n")
    assert user.run("method", "rollback", NAME, "--revision", "9").code == 2
    history = user.run("method", "history", NAME)
    assert [line.split()[3] for line in history.out.splitlines()[-2:]] == ["installed", "restored"]


def test_what_is_said_wrong(user: User, tmp_path: Path) -> None:
    """Usage and unreadable files exit with 2 and name what to give."""
    neither = user.run("method", "redefine", NAME)
    assert (neither.code, "--wish" in neither.err) == (2, True)
    for path, why in (("absent.py", "No such file"), ("empty.py", "it is empty"), ("bytes.py", "not UTF-8")):
        (tmp_path / "empty.py").write_text("\n", encoding="utf-8")
        (tmp_path / "bytes.py").write_bytes(b"\xff")
        wrong = user.run("method", "redefine", NAME, "--file", str(tmp_path / path), "--json")
        assert (wrong.code, wrong.document["error"]["field"]) == (2, "file")
        assert why in wrong.document["error"]["message"]
    (tmp_path / "own.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "checks.json").write_text("{}", encoding="utf-8")
    files = ("--file", str(tmp_path / "own.py"), "--checks", str(tmp_path / "checks.json"))
    wrong = user.run("method", "redefine", NAME, *files, "--json")
    assert wrong.document["error"]["field"] == "checks"


def test_what_a_shell_is_offered() -> None:
    """The verbs of the group, and its options; without a server no names."""
    assert offered("method", "") == ["history", "list", "make", "redefine", "reparent", "rollback", "show"]
    assert offered("method", "rollback", "--rev") == ["--revision"]
    assert offered("method", "show", "") == []
