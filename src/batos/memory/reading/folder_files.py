"""Finds the files that are to be remembered, by rules such as `.gitignore`, and their texts."""

from __future__ import annotations

import errno
import hashlib
import importlib
import mimetypes
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from batos.memory.reading.file_texts import FileTexts
from batos.memory.reading.read_text import (
    HEAD,
    Format,
    NoText,
    NotReadable,
    ReadText,
    UnreadPart,
    digest_of,
    format_of,
    one_line,
    shorten_source,
    source_of,
    text_format,
)
from batos.protocol.brief import NAME_LIMIT

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

#: Files of rules: a later one's go before an earlier one's.
_NAMES: Final = (".gitignore", ".batosignore")
#: Bytes of a file of rules that are looked at.
_MOST: Final = 2**18
#: The most `*` of a part of a rule between slashes, and the most `**` parts before its last: with more of them a long
#: path is compared in very many ways.
_STARS, _ANY_DEPTHS = 3, 2
#: The rules of a file that have several of either: each takes long for some paths.
_MANIFOLD: Final = 64


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in a folder, the outermost first, each with the path from its folder to this one."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def ignores(self, name: str) -> bool:
        """Test if a file of the folder, or a folder in it (`name/`), is ignored: the last rule decides."""
        said = (spec.check_file(f"{above}{name}").include for above, spec in self.specs)
        return next((each for each in reversed(list(said)) if each is not None), False)


@dataclass(slots=True)
class IgnoreFiles:
    """Reads the rules of folders, each after the one that it is in.

    `on_refused` is told of rules that ignore nothing.
    """

    on_refused: Callable[[Path, str], None] = lambda path, reason: None
    _known: dict[Path, IgnoreRules] = field(default_factory=dict)

    def rules_in(self, folder: Path) -> IgnoreRules:
        """Return the rules that hold in a folder."""
        above = self._known.get(folder.parent, IgnoreRules()).specs
        specs = tuple((f"{path}{folder.name}/", spec) for path, spec in above)
        own = tuple(("", spec) for name in _NAMES if (spec := self._read(folder / name)) is not None)
        found = IgnoreRules((*specs, *own))
        if found.specs:  # only what a folder below may ask for
            self._known[folder] = found
        return found

    def _read(self, path: Path) -> GitIgnoreSpec | None:
        try:
            if not path.is_file():
                return None
            with path.open("rb") as file:
                lines = file.read(_MOST).decode("utf-8", "replace").splitlines()
            rules = list(_quick_rules(lines))
            if len(rules) < len(lines):
                self.on_refused(path, f"{len(lines) - len(rules)} of its rules have too many `*`: they ignore nothing")
            specs = importlib.import_module("pathspec")  # takes long, and only folders with rules need it
            found: GitIgnoreSpec = specs.GitIgnoreSpec.from_lines(rules)
            return found
        except (OSError, ValueError):
            return None  # rules that cannot be read ignore nothing


def _quick_rules(lines: Sequence[str]) -> Iterator[str]:
    """Yield the rules that are compared in no time, and comments; of rules with several `*` only the first ones."""
    left = _MANIFOLD
    for line in lines:
        parts = [part for part, _ in groupby(line.strip().replace("\\*", "").split("/"))]
        stars = max((part.count("*") for part in parts if part != "**"), default=0)
        depths = parts[:-1].count("**")
        if not line.startswith("#") and max(stars, depths) > 1:
            left -= 1
            if left < 0 or stars > _STARS or depths > _ANY_DEPTHS:
                continue
        yield line


#: Folders whose files nobody wrote to be read.
_PASSED_OVER: Final = frozenset({"__pycache__", "node_modules"})
#: The formats of files that hold many texts: a file's own digest tells nothing of these.
MANY: Final[frozenset[str]] = frozenset({"mbox", "chats", "llm_logs"})
#: Bytes that are read at once for a digest.
_PIECE: Final = 2**20
#: The text of a file that has more is read when it is its turn, not with the others of its batch.
_HELD: Final = 2**18
_NO_FILE: Final = "it is no file, but a pipe, a socket or a device"


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that is to be remembered: its absolute path is its source. A short plain text has been read already.

    Of one that somebody named, what turns out to be no text has failed.
    """

    path: Path
    source: str
    format: Format
    size: int
    sha256: str
    text: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class TextToSend:
    """A text with what the verb `remember` is told of it."""

    data: bytes
    about: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file, or a text of it, that is not remembered. A file that is no text has not failed."""

    source: str
    reason: str
    is_text: bool
    size: int = 0


@dataclass(slots=True)
class FileReader:
    """Reads files one by one. `limit` bounds a text, in bytes; `every` takes hidden and ignored files as well.

    `own` has the source and the title that a person chose, where a single file is read.
    `on_skipped` is told of what cannot be read. `left_out` counts what was hidden, ignored or made by machines: a
    folder counts once.
    """

    limit: int
    texts: FileTexts
    on_skipped: Callable[[SkippedFile], None] = lambda skipped: None
    every: bool = False
    own: Mapping[str, object] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def find(self, path: Path) -> Iterator[FoundFile]:
        """Yield a file, or the files of a folder and of the folders in it, by their names."""
        if not path.is_dir():
            yield from self._look_at(path, is_named=True)
            return
        for each in self.walk(path):
            yield from self._look_at(each)

    def walk(self, folder: Path) -> Iterator[Path]:
        """Yield the paths of a folder's files, without those that are left out."""
        ignored = IgnoreFiles(lambda path, reason: self._skip(path, reason, is_text=False))
        for where, folders, files in os.walk(folder, onerror=self._tell_refusal):
            rules = ignored.rules_in(Path(where))
            chosen = sorted(each for each in folders if not self._leaves_out(each, rules.ignores(f"{each}/")))
            for each in list(chosen):
                if self._is_passed_over(Path(where, each), folder, is_folder=True):
                    chosen.remove(each)
            folders[:] = chosen
            for each in sorted(files):
                path = Path(where, each)
                if not self._leaves_out(each, rules.ignores(each)) and not self._is_passed_over(path, folder):
                    yield path

    def _is_passed_over(self, path: Path, folder: Path, *, is_folder: bool = False) -> bool:
        """Test if an entry leads elsewhere, or may not be looked at; tell of it."""
        try:
            if not path.is_symlink():
                return False
            if is_folder:  # not followed: it may lead back
                self._skip(path, "it is a link to a folder", is_text=False)
                return True
            if not path.exists() or path.resolve().is_relative_to(folder.resolve()):
                return False
        except (OSError, RuntimeError) as error:  # a link into a folder that is closed to this user, or to itself
            self._skip(path, getattr(error, "strerror", None) or "it is a link to itself")
            return True
        self._skip(path, "it is a link to a file outside the folder; name the file itself", is_text=False)
        return True

    def read(self, found: FoundFile) -> Iterator[TextToSend]:
        """Yield the texts of a file."""
        if found.format == "plain":
            yield from self._read_plain(found)
            return
        for each in self.texts.read(found.path, found.format):
            if isinstance(each, UnreadPart):
                place = f"{found.path}#{each.place}" if each.place else str(found.path)
                self.on_skipped(SkippedFile(place, each.reason, each.is_text or found.is_named))
            elif each.text.strip():
                yield self._to_send(found, each)
            else:
                self._skip(found.path, "it is empty", is_text=found.is_named)

    def _read_plain(self, found: FoundFile) -> Iterator[TextToSend]:
        try:
            text = found.text if found.text is not None else _plain_text(found.path.read_bytes())
        except (OSError, NotReadable, UnicodeError) as error:  # it has changed meanwhile
            self._skip(found.path, getattr(error, "strerror", None) or "it changed while it was read")
        else:
            yield self._to_send(found, ReadText(text))

    def _to_send(self, found: FoundFile, read: ReadText) -> TextToSend:
        """Return a text with what is told of it; the chosen title is for a file that is one text."""
        title = read.title if read.place else self.own.get("title") or read.title
        about: Mapping[str, object] = {
            "name": one_line(found.path.name.encode("utf-8", "replace").decode())[:NAME_LIMIT] or "file",
            "media_type": _media_type(found, read),
            "source": shorten_source(f"{found.source}#{read.place}") if read.place else found.source,
            "original": digest_of(read) if read.place else found.sha256,
            "kind": read.kind,
            "said_at": read.said_at,
            "speaker": read.speaker,
            "conversation": read.conversation,
            **({"left_out": [*read.left_out]} if read.left_out else {}),
            **({"title": title} if title else {}),
        }
        return TextToSend(read.text.encode("utf-8", "replace"), about)

    def _skip(self, path: Path, reason: str, *, is_text: bool = True) -> None:
        self.on_skipped(SkippedFile(str(path), reason, is_text))

    def _tell_refusal(self, error: OSError) -> None:
        self._skip(Path(str(error.filename)), error.strerror or "it cannot be read")

    def _leaves_out(self, name: str, is_ignored: bool) -> bool:
        if self.every:
            return False
        why = "hidden" if name.startswith(".") else "machine-made" if name in _PASSED_OVER else ""
        why = why or ("ignored" if is_ignored else "")
        if why:
            self.left_out[why] = self.left_out.get(why, 0) + 1
        return bool(why)

    def _look_at(self, path: Path, *, is_named: bool = False) -> Iterator[FoundFile]:
        """Yield a file if it can be remembered. Where somebody named the very file, it is one to be read."""
        try:
            yield replace(self._identify(path), is_named=is_named)
        except OSError as error:
            self.on_skipped(SkippedFile(str(path), error.strerror or "it cannot be read", True, _size(path)))
        except NotReadable as error:
            is_text = is_named or not isinstance(error, NoText)
            self.on_skipped(SkippedFile(str(path), str(error), is_text, _size(path)))

    def _identify(self, path: Path) -> FoundFile:
        """Return a file with its format and digest. Raises: OSError, NotReadable: it cannot be remembered."""
        try:
            number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would be waited for
        except OSError as error:
            if error.errno in {errno.ENXIO, errno.EOPNOTSUPP}:  # a socket is not opened
                raise NoText(_NO_FILE) from None
            raise
        with open(number, "rb") as file:  # noqa: PTH123 - a descriptor has no path
            about = os.fstat(number)
            if not stat.S_ISREG(about.st_mode):
                raise NoText(_NO_FILE)
            head = file.read(HEAD)
            format_ = format_of(path.name, head)
            if " " in format_ or not head.strip():
                raise NoText(format_ if head.strip() else "it is empty")
            source = str(self.own.get("source") or source_of(path))
            if format_ == "plain":
                if about.st_size > self.limit:
                    raise NotReadable(f"it has more than {self.limit:,} bytes (the setting `attachment_bytes`)")
                return _plain(path, shorten_source(source), head + file.read(self.limit + 1 - len(head)))
            digest = hashlib.sha256(head)
            while piece := file.read(_PIECE):
                digest.update(piece)
        return FoundFile(path, shorten_source(source), cast("Format", format_), about.st_size, digest.hexdigest())


def count(reader: FileReader, path: Path) -> tuple[int, int]:
    """Return how many files there are and how many bytes they have, as far as the folders tell."""
    files = size = 0
    for each in reader.walk(path) if path.is_dir() else (path,):
        files += 1
        size += _size(each)
    return files, size


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _plain(path: Path, source: str, data: bytes) -> FoundFile:
    digest = hashlib.sha256(data).hexdigest()
    try:
        text = _plain_text(data)
    except UnicodeError:
        return FoundFile(path, source, "other_text", len(data), digest)
    return FoundFile(path, source, text_format(data), len(data), digest, text if len(data) <= _HELD else None)


def _plain_text(data: bytes) -> str:
    text = data.decode("utf-8").removeprefix("\ufeff")
    if "\0" in text:
        raise UnicodeError("NUL")
    if not text.strip():
        raise NoText("it is empty")
    return text


def _media_type(found: FoundFile, read: ReadText) -> str:
    guessed = mimetypes.guess_type(f"file{found.path.suffix}")[0] or "text/plain"
    return guessed if found.format == "plain" else read.media_type
