"""The doctor's checks of the home: its folder, permissions and disk, and that image, journal and blobs agree."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Final

from batos.client import addresses
from batos.config import Settings
from batos.genesis.integrity import Finding
from batos.history import as_of, record_chain
from batos.image import roots
from batos.image.readable import ReadOnlyPair
from batos.image.records import Attachment
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.inference import journal
from batos.objects.prototype import own_slots
from batos.protocol.errors import ImageDamaged
from batos.records import redaction
from batos.terminal.console import count_text, size

#: Free space below which a mission may not find room, in bytes.
LEAST_FREE = 256 * 2**20
#: Free space below which no model is pulled or made on the daemon's disk, in bytes.
LEAST_STORE = 2**30
#: By how many seconds a clock may go back between two starts.
SLACK = 60.0

#: The files of a home that hold what people asked and were told.
_OURS = ("*.fs", "*.fs.*", "token", "server.json", "blobs", "logs", "logs/*", "codex", "keys", "keys/*", "uploads*")


def findings(settings: Settings) -> Iterator[Finding]:
    """Check the home's folder, its files, its disk and a server's note; nothing is changed."""
    home = settings.home
    yield disk("disk.home", home, LEAST_FREE, f"where the home is ({home})")
    yield _private(home)
    yield _files(home)
    yield writable(home)
    yield _server(home)


def disk(id_: str, place: Path, least: int, where: str) -> Finding:
    """Measure the free bytes at a place; a place that is not there yet is measured where it will be."""
    folder = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    what = f"{size(free)} free {where}"
    if free < least:
        return Finding(id_, False, what, f"Free space until at least {size(least)} are left.")
    return Finding(id_, True, what)


def store(blob: Path, least: int = LEAST_STORE) -> list[Finding]:
    """Measure the room where the daemon keeps its models, by the path of one; return nothing if that is not here."""
    if not blob.is_absolute() or not blob.exists():
        return []
    return [disk("disk.store", blob, least, f"where Ollama keeps its models ({blob.parent})")]


def clock(last: float, now: float | None = None) -> Finding:
    """Check that the clock is not behind the image's last commit (seconds since 1970): ids and history go by time."""
    ahead = last - (time.time() if now is None else now)
    if ahead > SLACK:
        what = f"the last commit is {ahead:.0f} s in the future: the clock is behind, or was ahead"
        return Finding("clock.sane", False, what, "Set the clock (timedatectl), before more is written.")
    return Finding("clock.sane", True, "the clock is not behind the last commit")


def _private(home: Path) -> Finding:
    mode = home.stat().st_mode & 0o777 if home.exists() else 0o700
    if mode & 0o077:
        return Finding(
            "home.private", False, f"other users may open the home ({mode:o})", f"chmod 700 {quote(str(home))}"
        )
    return Finding("home.private", True, "only its owner may enter the home")


def _files(home: Path) -> Finding:
    open_ = [path for pattern in _OURS for path in sorted(home.glob(pattern)) if _mode(path) & 0o077]
    if open_:
        what = f"other users may read {', '.join(str(path.relative_to(home)) for path in open_[:5])}"
        more = f" and {len(open_) - 5} more" if len(open_) > 5 else ""
        return Finding("home.files", False, f"{what}{more}", f"chmod -R go= {quote(str(home))}")
    return Finding("home.files", True, "only their owner may read the files of the home")


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode & 0o777 if not path.is_symlink() else 0
    except OSError:  # it is gone by now
        return 0


def writable(home: Path, may: Callable[[Path, int], bool] = os.access) -> Finding:
    """Check that the home can be written, or made."""
    place = next(path for path in (home, *home.parents) if path.exists())
    if not may(place, os.W_OK | os.X_OK):
        remedy = f"Give yourself the right to write there: chmod u+wx {quote(str(place))}, or name another home."
        return Finding("home.writable", False, f"{place} cannot be written", remedy)
    return Finding("home.writable", True, "the home can be written")


def _server(home: Path) -> Finding:
    """Check that the process of a server's note still runs."""
    path = home / addresses.SERVER_FILE
    if not path.exists():
        return Finding("home.server", True, "no server is recorded as running")
    left = addresses.read_record(home)
    if left is None:
        return Finding("home.server", False, f"{path} cannot be parsed", f"Remove {path}.")
    if addresses.running_server(home) == left:
        return Finding("home.server", True, f"a server runs as process {left.pid}, at {left.bind}")
    return Finding("home.server", False, f"{path} names process {left.pid}, which does not run", f"Remove {path}.")


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


def consistency_findings(faces: ReadOnlyPair, root: Root) -> Iterator[Finding]:
    """Look at the attached files, at every call in the journal, and at whether both are of one moment."""
    kept = _journal(faces)
    yield _moment(faces, root, kept)
    yield _consistency_files(faces, root)
    yield _calls(kept)
    yield _effects(root)
    yield _erasure(root)


def _journal(faces: ReadOnlyPair) -> _JournalContents:
    kept = _JournalContents()
    with snapshot(faces.journal) as root:
        for name, log in (root.get(journal.MISSIONS) or {}).items():
            # Those that the image never had; an erased one is closed, and has no note of that any more.
            if not log.is_closed and not any(as_of.NOTE in note for note in log.notes):
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


def _consistency_files(faces: ReadOnlyPair, root: Root) -> Finding:
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
    left = redaction.describe_erasure(root)
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
