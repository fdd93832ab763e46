"""Minds that come from elsewhere: their folders hold plain files, and they act on nothing until a person lets them.

A backup does not know what became of its effects since, and an export may be a stranger's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from persistent.mapping import PersistentMapping
from ZODB.DB import DB
from ZODB.POSException import POSKeyError, StateLoadError

from batos.agency.records import effect_records, schedule_records
from batos.image import roots, storage
from batos.image.filestorage import SoundFileStorage
from batos.image.records import OPEN, Brief
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.protocol.errors import BriefError
from batos.protocol.server_documents import DisarmingReport

_COPIED: Final = "it came with a backup or an export; `batos schedule resume` lets it go on"
_UNSURE: Final = "its mind came back from a backup or an export, and it may have happened since that was made"


def disarm(root: Root, at: str) -> DisarmingReport:
    """Take back all grants, ask a person about each effect that waits, pause heartbeat and schedules; in a change.

    Missions that have not ended lose the grants that they name: else one of the same name would be theirs again.
    """
    effects = _list_waiting(root)
    for effect in (effect_records.find_effect(root, name) for name in effects):
        effect_records.withdraw_question(root, effect, at)
        effect_records.become(root, effect, "unknown", at, {"reason": _UNSURE})
    grants = list(root[roots.GRANTS]) if roots.GRANTS in root else []
    for name in grants:
        del root[roots.GRANTS][name]
    for brief in _list_granted(root):
        brief.drop_grants()
    if _beats(root):
        root[roots.HEARTBEAT]["on"] = False
    for schedule in _list_planned(root):
        schedule_records.set_state(schedule, "paused", _COPIED)
    return {"grants": grants, "effects": effects}


def _beats(root: Root) -> bool:
    """Test if the mind wakes by itself: its owner said so, elsewhere."""
    kept = root.get(roots.HEARTBEAT)
    return isinstance(kept, PersistentMapping) and bool(kept.get("on"))


def _list_planned(root: Root) -> list[schedule_records.Schedule]:
    """Return the schedules that begin something by themselves."""
    found = []
    for schedule in schedule_records.list_all(root):
        with _pass_over_lost():
            if schedule["state"] == "active":
                found.append(schedule)
    return found


def _list_waiting(root: Root) -> list[str]:
    """Return the effects that wait by the outbox or by their own state: in a stranger's mind the two may differ.

    Raises: BriefError: an effect stands under another name than its own.
    """
    effects: Any = root.get(roots.EFFECTS, {})
    found = set(effect_records.list_waiting(root))
    for name, effect in effects.items():
        with _pass_over_lost():
            if effect["state"] in {*effect_records.WAITING, "asking"}:
                found.add(name)
    for name in found:
        if effect_records.find_effect(root, name)["effect"] != name:
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
        if not (now.get(roots.GRANTS) or _list_waiting(now) or _list_granted(now) or _beats(now) or _list_planned(now)):
            return {"grants": [], "effects": []}
    with database.transaction("disarmed") as connection:
        return disarm(roots.root_of(connection), at)


#: Settings that say where the mind lives, who reaches it and who thinks for it: a stranger's are not taken over.
_PLACES: Final = frozenset({"home", "image", "journal", "ollama_host", "bind", "events", "server"})


def check_plain(folder: Path) -> None:
    """Raise BriefError for a link, or what else is no file and no folder, in a folder that may be a stranger's.

    A copy of what a link leads to would bring any file of this machine into the home.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            what = f"{path} is a link, or no file"
            raise BriefError(what, field="folder", remedy="Take it out; exports and backups have plain files alone.")


def has_harmless_settings(path: Path) -> bool:
    """Test if a file of settings names no place: none of the mind, of its server, or of Ollama.

    No file is harmless; a file that cannot be read as settings is not.
    """
    try:
        return not path.exists() or _PLACES.isdisjoint(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return False
