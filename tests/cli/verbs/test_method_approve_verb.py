"""A person decides about methods: told what waits, shown it whole, yes and no, and what comes of it."""

from __future__ import annotations

from tests.cli.processes import User

ASK = ("--persona", "BRICK", "--effort", "cycle", "--install", "ask", "--interpret", "never", "How do I build a shed?")


def test_a_mission_waits_for_its_user(user: User) -> None:
    """Told what is awaited and how to answer, exit 7; shown and approved; then it goes on and is answered."""
    asked = user.run("ask", *ASK)
    assert (asked.code, asked.out) == (7, "")
    assert "waits for your approval: a-" in asked.err
    listed = user.run("approvals", "--json").document["data"]
    names = [each["id"] for each in listed["approvals"]]
    assert (len(names), listed["waiting"]) == (3, 3)
    assert any(f"batos approve {name}" in asked.err for name in names)
    (mission,) = {*listed["approvals"][0]["missions"]}
    waited = user.run("wait", mission, "--json")
    assert (waited.code, sorted(waited.document["error"]["approvals"])) == (7, sorted(names))

    shown = user.run("approvals", names[0])
    assert shown.code == 0
    for told in (
        "async def tamland_facet_(self, query):",
        "guardian accepts it",
        "2 checks",
        "broken variants",
        mission,
    ):
        assert told in shown.out

    assert user.run("approve", "a-none", names[0]).code == 2
    first = user.run("approve", names[0])
    assert first.code == 0
    assert "brick_prototype_obj.tamland_facet_" in first.out
    again = user.run("approve", names[0], "--json")
    assert (again.code, again.document["error"]["code"]) == (4, "refused")
    assert "is installed as revision 1" in again.document["error"]["message"]
    assert "batos method rollback" in again.document["error"]["remedy"]
    rest = user.run("approve", "--all", "--matching", "BRICK.*_facet_", "--json").document["data"]
    assert [each["id"] for each in rest["approved"]] == names[1:]
    assert (rest["refused"], rest["woken"]) == ([], [mission])

    ended = user.run("resume", mission)
    assert ended.code == 0, ended.err
    assert "not a model" in ended.out
    made = user.run("show", mission, "--json").document["data"]["provenance"]["methods"]
    assert [each["as"] for each in made] == ["method"] * 3


def test_a_mission_is_told_why_not(user: User) -> None:
    """Whoever rejects says why, and the mission that waited fails with it."""
    facet = ("send", "brick_prototype_obj", "tamland_facet_", "What is a shed?")
    (user.home / "batos.toml").write_text('install = "ask"\ninterpret = "never"\n', encoding="utf-8")
    assert user.run(*facet).code == 7
    (name,) = [each["id"] for each in user.run("approvals", "--json").document["data"]["approvals"]]
    assert user.run("reject", name).code == 2
    assert user.run("reject", name, "--why", " ").code == 2
    no = user.run("reject", name, "--why", "too loud")
    assert (no.code, f"{name} is rejected" in no.out) == (0, True)
    assert user.run("reject", name, "--why", "still").code == 4
    ended = user.run("resume", "last")
    assert ended.code == 1
    assert "too loud" in ended.err
    listed = user.run("approvals", "--status", "rejected", "--json").document["data"]["approvals"]
    assert [(each["id"], each["why"]) for each in listed] == [(name, "too loud")]


def test_what_cannot_be_meant_is_said(user: User) -> None:
    """Ids and --all exclude each other, a pattern needs --all, and one that fits nothing names nothing."""
    for wrong in (("approve",), ("approve", "--all"), ("approve", "--matching", "*"), ("approve", "a-1", "--all")):
        assert user.run(*wrong).code == 2, wrong
    nothing = user.run("approve", "--all", "--matching", "*", "--json")
    assert (nothing.code, nothing.document["error"]["code"]) == (2, "not_found")
    assert user.run("approvals", "a-none").code == 2
    assert "Nothing waits for approval." in user.run("approvals").out
