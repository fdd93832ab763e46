"""Disarming: a mind that comes out of a backup or an export acts on nothing until a person grants it again.

A backup does not know what became of its effects since, and an export may be a stranger's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from ZODB.DB import DB
from ZODB.POSException import POSKeyError, StateLoadError

from batos.agency.records import staged_effects
from batos.image import roots, storage
from batos.image.files.filestorage import SoundFileStorage
from batos.image.records import OPEN, Brief
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.protocol.care_documents import DisarmingReport
from batos.protocol.errors import BriefError

_UNSURE: Final = "its mind came back from a backup or an export, and it may have happened since that was made"


def disarm(root: Root, at: str) -> DisarmingReport:
    """Take back all grants, and ask a person about each effect that waits; within a change of the image.

    Missions that have not ended lose the grants that they name: else one of the same name would be theirs again.
    """
    effects = _list_waiting(root)
    for name in effects:
        staged_effects.become(root, staged_effects.find(root, name), "unknown", at, {"reason": _UNSURE})
    grants = list(root[roots.GRANTS]) if roots.GRANTS in root else []
    for name in grants:
        del root[roots.GRANTS][name]
    for brief in _list_granted(root):
        brief.drop_grants()
    return {"grants": grants, "effects": effects}


def _list_waiting(root: Root) -> list[str]:
    """Return the effects that wait by the outbox or by their own state: in a stranger's mind the two may differ.

    Raises: BriefError: an effect stands under another name than its own.
    """
    effects: Any = root.get(roots.EFFECTS, {})
    found = set(staged_effects.list_waiting(root))
    for name, effect in effects.items():
        with _pass_over_lost():
            if effect["state"] in staged_effects.WAITING:
                found.add(name)
    for name in found:
        if staged_effects.find(root, name)["effect"] != name:
            raise BriefError(f"the effect {name} has another name", field="effects", remedy="Take another copy.")
    return sorted(found)


def _list_granted(root: Root) -> list[Brief]:
    """Return the briefs of missions that have not ended, or are not published yet, and that name grants."""
    unfolded = set(root[roots.UNFOLDED]) if roots.UNFOLDED in root else set()
    found = []
    for name, record in roots.records_of(root) if roots.MISSIONS in root else ():
        with nullcontext() if name in unfolded else _pass_over_lost():
            if (name in unfolded or record.status.word in OPEN) and record.brief.value.get("grants"):
                found.append(record.brief)
    return found


@contextmanager
def _pass_over_lost() -> Iterator[None]:
    """Pass over an object whose record is lost: whoever repairs the mind takes away what has it."""
    with suppress(POSKeyError, StateLoadError):
        yield


def disarm_file(path: Path, at: str) -> DisarmingReport:
    """Take back the same in a file that no process has open; one with nothing of it stays as it is."""
    database = storage.open_database(f"file://{path}", connections=1, factory=lambda: SoundFileStorage(str(path)))
    with closing(database):
        done = _disarm_database(database, at)
    for beside in path.parent.glob(f"{path.name}.*"):
        beside.unlink()
    return done


def _disarm_database(database: DB, at: str) -> DisarmingReport:
    with snapshot(database) as now:
        if not (now.get(roots.GRANTS) or _list_waiting(now) or _list_granted(now)):
            return {"grants": [], "effects": []}
    with database.transaction("disarmed") as connection:
        return disarm(roots.root_of(connection), at)
