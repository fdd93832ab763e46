"""Replays: a mission of the past asked again in a copy of the mind of its own snapshot, and what came out otherwise."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Final

from batos.image import roots
from batos.image.ids import tid_text
from batos.image.image import LivingImage
from batos.image.readable import ReadableImage
from batos.image.records import StatusWord
from batos.image.roots import Root
from batos.image.views.past import first_writing
from batos.inference.journal import Entries
from batos.memory.sentences import sentence_spans
from batos.objects.prototype import own_slots
from batos.protocol.brief import File
from batos.protocol.errors import Refused
from batos.protocol.mission_documents import MissionDocument, ProvenanceDocument, ReplayDocument

#: Fields of a brief that each mission has of its own.
_ITS_OWN: Final = frozenset({"id", "deadline", "idempotency_key", "attachments", "budget"})
_ENDED: Final[frozenset[StatusWord]] = frozenset({"done", "failed", "cancelled", "parked", "undone"})


def find_snapshot(image: ReadableImage, mission: str) -> str:
    """Return the commit as of which a mission saw the mind; of one without an answer, that of its acceptance.

    Raises: NotFound: there is none. Refused: it has not ended.
    """
    with image.snapshot() as root:
        record = image.find(root, mission)
        if record.status.word not in _ENDED:
            raise Refused(
                f"{mission} has not ended: it is {record.status.word}",
                field="mission",
                remedy=f"Replay it when it has ended: `batos show {mission}` says how far it is.",
            )
        provenance = own_slots(record.thought).get("provenance") or {}
        return str(provenance.get("read_at") or tid_text(first_writing(root, record.status).tid))


def replay_brief(brief: Mapping[str, object], mission: str) -> dict[str, object]:
    """Return the brief that asks a mission again; calls that it paid for are served where they are the same."""
    kept = {name: value for name, value in brief.items() if name not in _ITS_OWN}
    return {**kept, "ancestor": mission}


async def end_original(copy: LivingImage, before: MissionDocument, files: Sequence[File]) -> None:
    """End the mission in the copy, where it is about to run: who asks again does not wait for it.

    A dream that was promoted since is not in the mind that it saw. Its brief is put there, for the replay to name.
    """
    mission = before["id"]

    def change(root: Root) -> None:
        if roots.find_record(root, mission) is None:
            contents = {file.ref.sha256: file.data for file in files}
            copy.insert(root, dict(before["brief"]), before["accepted_at"], contents)
        status = roots.mission_record(root, mission).status
        if status.word not in _ENDED:
            status.become("cancelled", status.at)
        root[roots.UNFOLDED].discard(mission)

    await copy.writer.apply(change)


def compare(before: MissionDocument, after: MissionDocument, journal: Entries) -> ReplayDocument:
    """Return what is otherwise in a replay of a mission: calls by their steps, answer by sentences, and its grounds."""
    old, new = before.get("provenance") or ProvenanceDocument(), after.get("provenance") or ProvenanceDocument()
    paths = {each.key: each.path for each in journal.sound([before["id"], after["id"]])}
    keys, others = list(old.get("journal", ())), list(new.get("journal", ()))
    return {
        "of": before["id"],
        "mission": after["id"],
        "same": [paths.get(key, key) for key in others if key in keys],
        "made": [paths.get(key, key) for key in others if key not in keys],
        "gone": [paths.get(key, key) for key in keys if key not in others],
        "erased": journal.count_erased([before["id"]]),
        "models": [sorted(old.get("models", ())), sorted(new.get("models", ()))],
        "personas": [_personas(before), _personas(after)],
        "carried": [_count_carried(old), _count_carried(new)],
        "methods": _lines_of(_methods(old), _methods(new)),
        "recalled": _lines_of(_names(old), _names(new)),
        "written": _lines_of(_slots(old), _slots(new)),
        "answer": _lines_of(_sentences(before), _sentences(after)),
    }


def _personas(told: MissionDocument) -> list[str]:
    route = told.get("route")
    return list(route["personas"]) if route else []


def _count_carried(provenance: ProvenanceDocument) -> int:
    return sum(each["state"] == "carried" for each in provenance.get("sentences", ()))


def _names(provenance: ProvenanceDocument) -> list[str]:
    """List what was recalled, by name."""
    found = provenance.get("recalled", ())
    return [str(each.get("memory") or each.get("mission") or each.get("name") or each.get("turns")) for each in found]


def _methods(provenance: ProvenanceDocument) -> list[str]:
    """List what answered messages: a revision of a method, or an intent that was interpreted."""
    return sorted(map(_method_line, provenance.get("methods", ())))


def _method_line(ran: Mapping[str, object]) -> str:
    revision = str(ran.get("revision", ""))
    how = f"revision {revision}" if revision.isdigit() else "interpreted"
    return f"{ran['holder']}.{ran['selector']} {how}"


def _slots(provenance: ProvenanceDocument) -> list[str]:
    return [f"{each['oid']}.{each['slot']}" for each in provenance.get("written", ())]


def _sentences(told: MissionDocument) -> list[str]:
    answer = str(told.get("answer", ""))
    return [answer[start:end] for start, end in sentence_spans(answer)]


def _lines_of(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """Return the lines that differ, each after a minus or a plus; none if nothing differs."""
    found = difflib.ndiff(before, after)
    return [line for line in found if line.startswith(("- ", "+ "))]
