"""Questions to the past: the image does not keep them, and the journal has what each said and cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from batos.inference.journal import Entries, Journal
from batos.missions import reports
from batos.protocol.errors import Refused, TimedOut
from batos.protocol.mission_documents import MissionDocument, PromptDocument

#: The key of the journal's note on such a question.
NOTE: Final = "asked_of_the_past"

_LEFT = Refused(
    "its process ended, whoever asked left, or something was erased, before it was answered",
    remedy="Ask again.",
)
_WAITS = Refused(
    "an answer about the past waits for nobody", remedy="Ask again with --install never and --interpret allow."
)
#: The remedy for a deadline that passed: a mission of a copy is nobody's ancestor.
_LATER: Final = "Ask again with a later deadline."


async def keep(journal: Journal, report: MissionDocument) -> None:
    """Write a mission's document, with the moment it was asked about, into the journal; durable when this returns."""
    journal.note(report["id"], {NOTE: {"report": json.dumps(report, ensure_ascii=False)}})
    await journal.flush(report["id"])


def begun_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that is not answered yet: so it stands if it never is."""
    return {**report, "status": "cancelled", "reason": _LEFT.as_dict()}


def ended_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that has ended: it names no commit and no remedy that only the copy has."""
    ended, reason, provenance = report.copy(), report.get("reason"), report.get("provenance")
    if reason and (reason["code"], reason.get("field")) == (TimedOut.code, "deadline"):
        ended["reason"] = {**reason, "remedy": _LATER}
    if provenance and "read_at" in provenance:
        ended["provenance"] = {**provenance, "read_at": report["as_of"]["tid"]}
    return ended


def running_report(report: MissionDocument, begun: MissionDocument) -> MissionDocument:
    """Return the report of a question as its copy has it now, with what the document that was kept first says of it."""
    shown = report.copy()
    if "as_of" in begun:
        shown["as_of"] = begun["as_of"]
    if "dream" in begun:
        shown["dream"] = begun["dream"]
    return shown


def unended_report(report: MissionDocument) -> MissionDocument:
    """Return what is kept of a question that would have waited for somebody."""
    return {**report, "status": "cancelled", "reason": _WAITS.as_dict()}


def find_question(journal: Entries, named: str, user: str | None = None) -> MissionDocument | None:
    """Return the document of a question to the past by its id or the beginning of it; None: there is none of this
    user's.
    """
    mission = journal.complete_id(named, lambda each: _read(journal, each, user) is not None)
    return None if mission is None else _read(journal, mission, user)


def prompts_of(journal: Entries, mission: str) -> list[PromptDocument]:
    """Return every call of such a question with its exact prompt."""
    return list(reports.prompts_report(journal.read([mission]), {}))


def _read(journal: Entries, mission: str, user: str | None) -> MissionDocument | None:
    found = next(_reports(journal, mission), None)
    return found if found is not None and user in (None, found["brief"]["user"]) else None


def _reports(journal: Entries, mission: str) -> Iterator[MissionDocument]:
    """Yield what is kept of a question, the newest first."""
    for note in reversed(journal.notes(mission)):
        if NOTE in note:
            yield json.loads(note[NOTE]["report"])
