"""Places that may still hold erased words: those that a scan finds, and those that none of ours can reach."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ZODB.DB import DB

from batos.image import storage
from batos.image.ids import oid_text
from batos.image.image import LivingImage
from batos.protocol.server_documents import RemainingPlace
from batos.records.erased_words import ErasedWords
from batos.terminal import logs

#: The file of a home in which `batos chat` keeps what was typed.
_TYPED: Final = "chat_history"
#: Files of a home that are databases or keys: the ones are scanned as such, the others have no words.
_NOT_READ: Final = frozenset({".fs", ".index", ".lock", ".tmp", ".pack", ".blob"})
#: The largest file of a home that is read for words.
_LARGEST: Final = 64 * 2**20


def erase_lines(home: Path, words: ErasedWords, missions: list[str]) -> int:
    """Take the lines out of the logs of a home, and of what was typed, that have the words or are about the missions.

    Returns how many went.
    """

    def is_kept(line: str) -> bool:
        return not words.are_in(line) and not any(each in line for each in missions)

    return logs.drop_lines(home / "logs", is_kept) + logs.drop_lines_of(home / _TYPED, is_kept)


def find_in_records(db: DB, words: ErasedWords) -> Iterator[str]:
    """Yield the oids of the records that have the words, of the present and of all that history keeps."""
    storage: Any = db.storage
    for transaction in storage.iterator():
        for record in transaction:
            if record.data and words.are_in_bytes(record.data):
                yield oid_text(record.oid)


def find_in_files(home: Path, words: ErasedWords) -> Iterator[Path]:
    """Yield the files of a home that have the words, but for its databases."""
    for path in sorted(home.rglob("*")):
        if path.suffix in _NOT_READ or not path.is_file() or path.is_symlink() or path.stat().st_size > _LARGEST:
            continue
        if words.are_in_bytes(path.read_bytes()):
            yield path


def find_blobs(image: LivingImage, words: ErasedWords) -> Iterator[Path]:
    """Yield the files of blobs that have the words."""
    folder = storage.blob_folder(image.db.storage)
    for path in sorted(folder.rglob("*.blob")) if folder is not None else ():
        if words.are_in_bytes(path.read_bytes()):
            yield path


def list_unreachable(uri: str) -> list[RemainingPlace]:
    """Return the places that no process of ours can erase: copies, and what lies below the database."""
    places = [
        RemainingPlace(
            place="backups and exports",
            what="each one that was made before has the words, also that of an upgrade in the home, and what a"
            " restoration set aside there (NAME.before-restore)",
            remedy="Make a new one (`batos backup FOLDER --full`), then delete the older ones.",
        ),
        RemainingPlace(
            place="Ollama",
            what="its logs may have prompts (with OLLAMA_DEBUG), and its runners keep the last ones in memory",
            remedy="Restart it, and delete its logs.",
        ),
        RemainingPlace(
            place="the terminal",
            what="the shell's history has what was typed there",
            remedy="Delete the lines, as with `history -d`.",
        ),
    ]
    return [*places, *_below(uri.partition("://")[0])]


def _below(scheme: str) -> Iterator[RemainingPlace]:
    yield RemainingPlace(
        place="the disk",
        what="freed blocks keep their bytes until they are used again, and snapshots of the file system too",
        remedy="Delete the snapshots; `fstrim` a solid-state disk, or keep the data on an encrypted one.",
    )
    if scheme == "zeo":
        yield RemainingPlace(
            place="the buffers of the ZEO server",
            what="the files *.fs.tmp beside its databases may have parts of what was written last",
            remedy="Restart it: it empties them then.",
        )
        yield RemainingPlace(
            place="caches of other nodes",
            what="the files of caches (*.zec) and of blobs of other clients may have records",
            remedy="Stop those nodes, delete the files, and start them again.",
        )
    if scheme in ("postgres", "postgresql"):
        yield RemainingPlace(
            place="PostgreSQL's log of writes",
            what="files of pg_wal, and their archive, have what was written until now",
            remedy="Set wal_recycle = off, run CHECKPOINT twice with pg_switch_wal() between; delete archived files.",
        )
        yield RemainingPlace(
            place="replicas",
            what="one that replays the log has the words until it is there; one by logical replication keeps them",
            remedy="Wait until it has caught up and repeat there what was said of the log; VACUUM FULL a logical one.",
        )
        yield RemainingPlace(
            place="the logs of PostgreSQL",
            what="statements that failed, or were slow, may stand there with their values",
            remedy="Delete those files.",
        )
    if scheme in ("zeo", "postgres", "postgresql"):
        yield RemainingPlace(
            place="other nodes",
            what="the logs and caches in the homes of other nodes, and their sessions at the server, may have them",
            remedy="Stop each, delete its folder `logs` and the folder that `blob_dir` names, and start it again.",
        )
