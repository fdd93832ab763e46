"""The files of a codex as bytes: bounded, in UTF-8; a file that cannot be read is reported by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from batos.genesis.codex.reader import nearest_word
from batos.protocol.errors import CodexError

#: The most that a file of the codex may have, in bytes: the shipped ones have some thousands.
LARGEST = 2**20


def there(path: Path) -> bool:
    """Test if anything has that name, also a broken link or something unreadable: reading it will tell."""
    try:
        path.lstat()
    except OSError as error:
        return not isinstance(error, FileNotFoundError | NotADirectoryError)
    return True


def texts(folder: Path, names: Sequence[str]) -> tuple[dict[str, str], list[CodexError]]:
    """Return the texts of a codex's files by name, and a fault for each file that cannot be read or does not belong
    there.
    """
    found: dict[str, str] = {}
    faults: list[CodexError] = []
    if not there(folder):
        remedy = "Run `batos genesis`: it copies the shipped codex there."
        return found, [CodexError("there is no codex yet", file=str(folder), remedy=remedy)]
    for name in names:
        try:
            found[name] = _text(folder / name)
        except CodexError as fault:
            faults.append(fault)
    for path in sorted(folder.glob("[!.]*.toml")):
        if path.name not in names:
            near = nearest_word(path.name, names)
            hint = f": did you mean {near}?" if near else ""
            remedy = f"Move it away; there are {', '.join(names)} and no other."
            faults.append(CodexError(f"no such part of the codex{hint}", file=str(path), remedy=remedy))
    return found, faults


def _text(path: Path) -> str:
    file = str(path)
    try:
        if path.exists() and not path.is_file():
            raise CodexError("not a file", file=file, remedy="Move it away; `batos genesis` copies the shipped file.")
        with path.open("rb") as opened:
            data = opened.read(LARGEST + 1)
    except FileNotFoundError:
        if path.is_symlink():
            remedy = "Restore its target, or remove it: `batos genesis` then copies the shipped file."
            raise CodexError("a broken link", file=file, remedy=remedy) from None
        remedy = "Run `batos genesis`: it copies the shipped file to where one is missing."
        raise CodexError("the file is missing", file=file, remedy=remedy) from None
    except OSError as error:
        raise CodexError(f"cannot be read: {error.strerror}", file=file, remedy="Make it readable for you.") from error
    if len(data) > LARGEST:
        raise CodexError(f"more than {LARGEST} bytes", file=file, remedy="Shorten it: a codex is some pages of text.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise CodexError(what, file=file, line=line, remedy="Save it as UTF-8.") from error
