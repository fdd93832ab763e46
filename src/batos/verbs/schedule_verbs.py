"""The verbs of time: what is asked, said or remembered at a moment that a person chose, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from batos.protocol.brief import TEXT_LIMIT, EffortChoice
from batos.protocol.effect_documents import (
    AddedSchedule,
    InboxEntry,
    InboxPage,
    ReadInbox,
    RemovedSchedule,
    RunSchedule,
    ScheduleDocument,
    SchedulePage,
)
from batos.protocol.wire_messages import Asker, Name, StrictModel
from batos.terminal.console import count_text, local_time
from batos.terminal.layout import Column, card, listing
from batos.verbs.wire_verb import Noun, WireVerb

#: The most characters of a question in a list.
_SHOWN: Final = 60

SCHEDULE_NOUN: Final = Noun(
    "schedule",
    """Let the mind ask, remind or remember at a time: list what is planned, add, pause and remove.

    Without a verb: `list`. Answers and reminders come into `batos inbox`.""",
    default="list",
)
INBOX_NOUN: Final = Noun(
    "inbox",
    "Show what schedules brought: answers of their missions, and reminders. Without a verb: `list`.",
    default="list",
)


class SchedulesArgs(StrictModel):
    """List what is planned, what comes first before the others."""

    user: Asker = Field(default=None, description="Only those of this user.")


def schedules_text(told: SchedulePage) -> str:
    """Write schedules, a line each."""
    columns: Mapping[str, Column] = {
        "schedule": "id", "when": lambda each: f"{each['when']} ({each['zone']})", "state": "state",
        "next": lambda each: local_time(each["next"]) if each["next"] else "",
        "runs": "runs", "skipped": "skipped", "does": _does_text, "why": "reason",
    }  # fmt: skip
    none = 'Nothing is planned. `batos schedule add "0 7 * * 1-5" "What is due today?"` plans something.'
    return listing(told["schedules"], columns, none, whole=(0,))


def _does_text(told: ScheduleDocument) -> str:
    said = told["folder"] if told["work"] == "remember" else told["text"]
    return f"{told['work']}: {said if len(said) <= _SHOWN else f'{said[: _SHOWN - 3]}...'}"


class ScheduleAddArgs(StrictModel):
    """Plan a question, with --remind a reminder, or with --remember that a folder is remembered as it changes.

    WHEN is a line as cron has it ("0 7 * * 1-5"), "every 30 minutes", "every monday 9:00", "once tomorrow 9:00",
    "once 2026-12-01 09:00", "once in 2 hours", "on idle 30 minutes", or "on file FOLDER": the question is then asked
    about the files that are new or changed. A mission of a schedule begins once for each moment, also after a crash;
    moments that were missed are run as --catch-up says.
    """

    when: str = Field(min_length=1, max_length=400, description="When: see above.")
    text: str | None = Field(
        default=None, min_length=1, max_length=TEXT_LIMIT, description="The question, or what you are reminded of."
    )
    remind: bool = Field(default=False, description="Put TEXT into the inbox, and ask no model.")
    remember: bool = Field(
        default=False, description="Of `on file FOLDER`: remember what is new or changed, forget what went."
    )
    zone: str | None = Field(
        default=None, min_length=1, max_length=60, description="The time zone, as Europe/Berlin; absent: the machine's."
    )
    catch_up: Literal["none", "one", "all"] = Field(
        default="one", description="Of missed moments run `one` (the newest), `all` (at most 24), or `none`."
    )
    effort: EffortChoice | None = Field(default=None, description="`auto`, `reflex`, `cycle` or `council`.")
    persona: Name | None = Field(default=None, description="The persona that answers: ROBIN, BRICK, BABS or ALFRED.")
    grants: list[Name] = Field(
        default_factory=list, max_length=8, description="A grant for missions that nobody watches; repeatable."
    )
    user: Asker = Field(default=None, description="The user who asks; absent: the server's own user.")


def added_text(told: AddedSchedule) -> str:
    """Write when a schedule comes next, and what keeps it from coming."""
    schedule = told["schedule"]
    lines = [f"{schedule['id']} {schedule['state']}: {schedule['when']} ({schedule['zone']})"]
    if schedule["upcoming"]:
        lines.append("next " + ", ".join(each[:16].replace("T", " ") for each in schedule["upcoming"]))
    if told["changes_clock"] and schedule["upcoming"]:
        lines.append("A time that a clock change leaves out comes right after it; one that comes twice is run once.")
    if not told["is_served"]:
        lines.append("No server runs now, which would begin it: `batos serve` starts one.")
    elif not told["starts_by_itself"]:
        lines.append("Nothing starts the server after a restart of this machine: `batos serve --install` does.")
    if schedule["work"] != "remember":
        lines.append("What it brings is in `batos inbox`.")
    return "\n".join(lines)


class ScheduleArgs(StrictModel):
    """A schedule by its id."""

    schedule: Name = Field(description="The schedule's id or its beginning; `last` is the newest.")
    user: Asker = Field(default=None, description="Only if it is this user's.")


def run_text(told: RunSchedule) -> str:
    """Write what was begun."""
    mission = told["mission"]
    return f"{mission} is begun: batos wait {mission}" if mission else told["did"]


def schedule_text(told: ScheduleDocument) -> str:
    """Write all of a schedule."""
    reason = f": {told['reason']}" if told["reason"] else ""
    rows = [
        ("schedule", told["id"]), ("when", f"{told['when']} ({told['zone']})"), ("does", told["work"]),
        ("text", told["text"] or told["folder"]), ("state", f"{told['state']}{reason}"),
        ("next", "\n".join(each[:16].replace("T", " ") for each in told["upcoming"])),
        ("missed", f"{told['skipped']} left out; --catch-up {told['catch_up']}"),
        ("runs", str(told["runs"])), ("mission", told["mission"] or ""), ("grants", ", ".join(told["grants"])),
        ("added", local_time(told["made_at"])),
    ]  # fmt: skip
    return card([each for each in rows if each[1]])


class InboxArgs(StrictModel):
    """List what schedules brought, the newest first: what nobody has marked as read, or with --all everything."""

    all: bool = Field(default=False, description="Also what was marked as read.")
    limit: int = Field(default=20, ge=1, le=1_000, description="Most entries in the list.")
    user: Asker = Field(default=None, description="Only those of this user.")


def inbox_text(told: InboxPage) -> str:
    """Write the entries of the inbox with their answers."""
    waits = "waits" if told["waiting"] == 1 else "wait"
    counted = count_text(told["waiting"], "effect")
    asked = [f"{counted} of schedules {waits} for your yes: `batos approvals`."] if told["waiting"] else []
    if not told["entries"]:
        return "\n".join(["The inbox has nothing new. `batos inbox list --all` shows what was read.", *asked])
    parts = [_entry_text(each) for each in told["entries"]]
    counted = f"Unread: {told['unread']}. `batos inbox read` marks all as read."
    return "\n\n".join([*parts, "\n".join([counted, *asked])])


def _entry_text(told: InboxEntry) -> str:
    missed = f", {told['skipped']} missed before" if told["skipped"] else ""
    late = "" if told["came"][:16] == told["due"][:16] else f", due {local_time(told['due'])}"
    head = f"{told['entry']}  {local_time(told['came'])}{late}{missed}"
    if "mission" not in told:
        return f"{head}\n  {told['text']}"
    said = told.get("answer") or f"({told.get('status', 'gone')}) batos show {told['mission']}"
    indented = "\n".join(f"  {line}" for line in said.splitlines())
    return f"{head}  {told['mission']}\n  > {told['text']}\n{indented}"


class InboxReadArgs(StrictModel):
    """Mark an entry of the inbox as read, or all."""

    entry: Name | None = Field(default=None, description="The entry's id or its beginning; absent: all.")
    user: Asker = Field(default=None, description="Only those of this user.")


SCHEDULES: Final = WireVerb("schedules", SchedulesArgs, "schedule list", schedules_text, reads=True)
SCHEDULE_SHOW: Final = WireVerb(
    "schedule_show", ScheduleArgs, "schedule show SCHEDULE", schedule_text, reads=True,
    about="Show a schedule: its rule, its next moments, and how it went.",
)  # fmt: skip
SCHEDULE_ADD: Final = WireVerb[ScheduleAddArgs, AddedSchedule](
    "schedule_add", ScheduleAddArgs, "schedule add WHEN [TEXT] --grant=GRANTS", added_text, governs=True,
    examples=(
        'batos schedule add "0 7 * * 1-5" "What is due today?"',
        'batos schedule add "once tomorrow 9:00" "Call the dentist." --remind',
        'batos schedule add "on file ~/notes" --remember',
    ),
)  # fmt: skip
SCHEDULE_PAUSE: Final = WireVerb[ScheduleArgs, AddedSchedule](
    "schedule_pause", ScheduleArgs, "schedule pause SCHEDULE", "{schedule[id]} rests.", governs=True,
    about="Let a schedule rest: nothing of it begins until `resume`.",
)  # fmt: skip
SCHEDULE_RESUME: Final = WireVerb[ScheduleArgs, AddedSchedule](
    "schedule_resume", ScheduleArgs, "schedule resume SCHEDULE", added_text, governs=True,
    about="Let a schedule wait for its next moment again; what came meanwhile is left out.",
)  # fmt: skip
SCHEDULE_RUN: Final = WireVerb[ScheduleArgs, RunSchedule](
    "schedule_run", ScheduleArgs, "schedule run SCHEDULE", run_text, governs=True,
    about="Do now what a schedule does, whatever its rule says.",
)  # fmt: skip
SCHEDULE_REMOVE: Final = WireVerb[ScheduleArgs, RemovedSchedule](
    "schedule_remove", ScheduleArgs, "schedule remove SCHEDULE", "{removed[id]} is removed.", governs=True,
    about="Remove a schedule; missions that it began go on, and what it brought stays in the inbox.",
)  # fmt: skip
INBOX: Final = WireVerb("inbox", InboxArgs, "inbox list", inbox_text, reads=True)
INBOX_READ: Final = WireVerb[InboxReadArgs, ReadInbox](
    "inbox_read", InboxReadArgs, "inbox read [ENTRY]", "{read} marked as read.", governs=True
)
