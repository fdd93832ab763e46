"""The verbs `schedule` and `inbox` as a person types them, and a server that begins what is due."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.processes import User

from batos.verbs.schedule_verbs import added_text, inbox_text, schedule_text, schedules_text

SCHEDULE: Any = {
    "id": "s-1", "when": "0 7 * * 1-5", "zone": "Europe/Berlin", "work": "ask", "text": "What is due?", "folder": "",
    "catch_up": "one", "grants": [], "state": "active", "reason": "", "last": None,
    "next": "2026-12-01T06:00:00.000Z", "upcoming": ["2026-12-01T07:00:00+01:00"], "runs": 0, "skipped": 0,
    "failures": 0, "mission": None, "user": "ann", "made_at": "2026-11-30T17:00:00.000Z",
}  # fmt: skip
ENTRY: Any = {
    "entry": "i-1", "schedule": "s-1", "due": "2026-11-30T17:00:00.000Z", "came": "2026-11-30T17:00:01.000Z",
    "skipped": 0, "is_read": False, "text": "Call the dentist.",
}  # fmt: skip


def test_what_is_planned(user: User, tmp_path: Path) -> None:
    """A plan is added, shown, paused, resumed, run and removed; what is wrong is refused with the remedy."""
    assert user.run("schedule").out.startswith("Nothing is planned.")
    added = user.run("schedule", "add", "0 7 * * 1-5", "What is due today?", "--zone", "Europe/Berlin")
    assert added.code == 0, added.err
    assert "0 7 * * 1-5 (Europe/Berlin)" in added.out
    assert "A time that a clock change leaves out comes right after it" in added.out
    assert "No server runs now, which would begin it" in added.out
    reminder = user.run("schedule", "add", "once in 2 hours", "Call the dentist.", "--remind", "--json")
    name = reminder.document["data"]["schedule"]["id"]
    listed = user.run("schedule", "--json").document["data"]["schedules"]
    assert name in {each["id"] for each in listed}  # the first is what is due next, which the hour of the day decides
    assert "Call the dentist." in user.run("schedule", "show", name[:12]).out
    assert user.run("schedule", "pause", name).out == f"{name} rests.\n"
    assert "paused" in user.run("schedule").out
    assert user.run("schedule", "resume", "last").code == 0
    assert "Call the dentist." in user.run("schedule", "run", name).out
    assert "Call the dentist." in user.run("inbox").out
    assert user.run("inbox", "read").out == "1 marked as read.\n"
    assert user.run("inbox").out.startswith("The inbox has nothing new.")
    assert "Call the dentist." in user.run("inbox", "list", "--all").out
    assert user.run("schedule", "remove", name).out == f"{name} is removed.\n"
    for wrong in (
        ("add", "noon", "x"), ("add", "every hour"), ("add", "every hour", "x", "--zone", "Mars"), ("show", name),
        ("add", "every hour", "x", "--grant", "none"), ("add", "on file nowhere", "--remember"), ("pause", "s-none"),
    ):  # fmt: skip
        refused = user.run("schedule", *wrong)
        assert refused.code in {2, 4}, wrong
        assert refused.err.count("\n") >= 2, refused.err  # what is wrong, and what to do


def test_a_watched_folder(user: User, tmp_path: Path) -> None:
    """`remember --watch` reads it now, and plans that it is read as it changes: once, and only a folder."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "lamp.md").write_text("The lamp of Holm burns 12 litres.")
    told = user.run("remember", str(folder), "--watch")
    assert told.code == 0, told.err
    assert f"on file {folder}" in told.out
    assert "lamp" in user.run("memories").out
    assert user.run("remember", str(folder), "--watch").code == 0
    (found,) = user.run("schedule", "--json").document["data"]["schedules"]
    assert (found["work"], found["folder"]) == ("remember", str(folder))
    assert user.run("remember", str(folder / "lamp.md"), "--watch").code == 2
    assert user.run("remember", str(folder), "--watch", "--all").code == 2
    assert user.run("remember", str(user.home), "--watch").code == 4


def test_texts() -> None:
    """A list, one schedule, what was added, and the inbox with what was late or missed."""
    parked: Any = {
        **SCHEDULE,
        "state": "parked",
        "reason": "its mission failed 4 times: m-1",
        "next": None,
        "upcoming": [],
    }
    assert "its mission failed 4 times: m-1" in schedules_text({"schedules": [SCHEDULE, parked]})
    assert "parked: its mission failed" in schedule_text(parked)
    told: Any = {"schedule": SCHEDULE, "changes_clock": False, "is_served": True, "starts_by_itself": False}
    assert "batos serve --install" in added_text(told)
    told["starts_by_itself"] = True
    assert "batos serve --install" not in added_text(told)
    late: Any = {**ENTRY, "came": "2026-11-30T19:00:00.000Z", "skipped": 3}
    asked: Any = {**ENTRY, "mission": "m-1", "status": "done", "text": "What is due?", "answer": "Seven.\nEight."}
    waiting: Any = {**ENTRY, "mission": "m-2", "status": "waiting", "text": "What is due?"}
    shown = inbox_text({"entries": [late, asked, waiting], "unread": 3, "waiting": 0})
    assert "due " in shown
    assert "3 missed before" in shown
    assert "  > What is due?\n  Seven.\n  Eight." in shown
    assert "(waiting) batos show m-2" in shown
    assert shown.endswith("Unread: 3. `batos inbox read` marks all as read.")
    none = inbox_text({"entries": [], "unread": 0, "waiting": 2})
    assert none.endswith("2 effects of schedules wait for your yes: `batos approvals`.")
