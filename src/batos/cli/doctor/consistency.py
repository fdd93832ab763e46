"""The doctor's checks of image, journal and blobs: they belong together, are complete, and are as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from batos.genesis.integrity import Finding
from batos.history import past_questions, record_chain
from batos.image import roots
from batos.image.records import Attachment
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.image.views.read_only import ReadOnlyPair
from batos.inference import journal
from batos.objects.prototype import own_slots
from batos.protocol.errors import ImageDamaged
from batos.records import unfinished_erasure
from batos.terminal.console import count_text

#: Of so many missions, the newest, it is looked up whether the journal has what they say they asked.
NEWEST: Final = 500
_ONE_BACKUP: Final = "Stop the server and restore image, journal and blobs together from one backup."


@dataclass(slots=True)
class _JournalContents:
    """The journal's missions, the keys of all its calls, and the faults in it."""

    missions: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    calls: int = 0
    faults: list[str] = field(default_factory=list)


def findings(faces: ReadOnlyPair, root: Root) -> Iterator[Finding]:
    """Look at the attached files, at every call in the journal, and at whether both are of one moment."""
    kept = _journal(faces)
    yield _moment(faces, root, kept)
    yield _files(faces, root)
    yield _calls(kept)
    yield _effects(root)
    yield _erasure(root)


def _journal(faces: ReadOnlyPair) -> _JournalContents:
    kept = _JournalContents()
    with snapshot(faces.journal) as root:
        for name, log in (root.get(journal.MISSIONS) or {}).items():
            # Those that the image never had; an erased one is closed, and has no note of that any more.
            if not log.is_closed and not any(past_questions.NOTE in note for note in log.notes):
                kept.missions.append(name)
            kept.calls += len(log.entries)
            kept.keys.update(entry.fields.get("key", "") for entry in log.entries)
        kept.faults = record_chain.read_calls(root).find_faults()
    return kept


def _moment(faces: ReadOnlyPair, root: Root, kept: _JournalContents) -> Finding:
    missions = frozenset(root.get(roots.MISSIONS) or ())
    newest = max(missions, default="")
    # Beside a server the journal is read a moment later than the image.
    unknown = [
        name
        for name in kept.missions
        if name.startswith("m-") and name not in missions and not (faces.holder and name > newest)
    ]
    if unknown:
        lost = count_text(len(unknown), "mission")
        what = f"the image is older than the journal: it lacks {lost} of the journal"
        remedy = f"{_ONE_BACKUP} Without a backup the answers that those missions paid for are lost."
        return Finding("image.moment", False, what, remedy)
    lacking = [name for name, keys in _journal_keys(root) if not keys <= kept.keys]
    if lacking:
        what = f"the journal is older than the image: it lacks calls of {count_text(len(lacking), 'mission')}"
        remedy = f"{_ONE_BACKUP} The answers are in the image; the record of their calls is lost."
        return Finding("image.moment", False, what, remedy)
    return Finding("image.moment", True, "image and journal belong to the same moment")


def _journal_keys(root: Root) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the newest missions, with the keys of the calls that their thoughts say they rest on."""
    missions = root.get(roots.MISSIONS)
    if not missions:
        return
    for name in islice(reversed(missions.keys()), NEWEST):
        provenance = own_slots(roots.mission_record(root, name).thought).get("provenance")
        if isinstance(provenance, Mapping):
            yield name, frozenset(provenance.get("journal", ()))


def _files(faces: ReadOnlyPair, root: Root) -> Finding:
    attachments: Mapping[str, Attachment] = dict(root.get(roots.ATTACHMENTS) or {})
    bad: list[str] = []
    for attachment in attachments.values():
        try:
            faces.check_attachment(attachment)
        except ImageDamaged as error:
            bad.append(error.message)
    if not bad:
        return Finding("image.files", True, f"{count_text(len(attachments), 'attached file')} as they were attached")
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    remedy = "Attach the same files again to any question, which writes them again, or restore the folder of the blobs."
    return Finding("image.files", False, f"{bad[0]}{more} (of {count_text(len(attachments), 'file')})", remedy)


def _effects(root: Root) -> Finding:
    unknown = [each["effect"] for each in (root.get(roots.EFFECTS) or {}).values() if each["state"] == "unknown"]
    if not unknown:
        return Finding("image.effects", True, "of every effect on the world it is known whether it happened")
    what = f"of {count_text(len(unknown), 'effect')} nobody knows whether it happened: {', '.join(unknown[:3])}"
    remedy = f"Look in the world, then `batos effects settle {unknown[0]} done` (or `undone`)."
    return Finding("image.effects", False, what, remedy)


def _erasure(root: Root) -> Finding:
    left = unfinished_erasure.describe(root)
    if left is None:
        return Finding("image.erasure", True, "no erasure is unfinished")
    what = f"the erasure that {left['by']} asked for at {left['at']} is under way, or was cut off: words may be there"
    return Finding("image.erasure", False, what, "Run `batos serve`, or ask something: that finishes it.")


def _calls(kept: _JournalContents) -> Finding:
    if not kept.faults:
        return Finding("image.journal", True, f"{count_text(kept.calls, 'call')} in the journal as they were written")
    more = f", and {len(kept.faults) - 1} more" if len(kept.faults) > 1 else ""
    remedy = f"{_ONE_BACKUP} Without a backup, a mission that needs one of them asks the model again."
    return Finding("image.journal", False, f"damaged in the journal: {kept.faults[0]}{more}", remedy)
