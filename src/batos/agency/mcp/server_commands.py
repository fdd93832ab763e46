"""Commands of servers: which program a person lets run, what is kept of it, and versions that have to be pinned."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from batos.protocol.errors import BriefError, Refused

#: Programs that fetch what they run, with the options that name a package, and the form of one version alone.
_NPM: Final = re.compile(r"(?:@[\w.-]+/)?[\w.-]+@\d+\.\d+\.\d+[\w.+-]*")
_PYPI: Final = re.compile(r"[\w.-]+(?:\[[\w,.-]+\])?(?:==|@)\d+(?:\.\d+)+[\w.+]*")
_IMAGE: Final = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_LAUNCHERS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    **dict.fromkeys(("npx", "bunx", "pnpx"), (_NPM, "name@1.2.3")),
    **dict.fromkeys(("uvx", "pipx"), (_PYPI, "name==1.2.3")),
    **dict.fromkeys(("docker", "podman"), (_IMAGE, "name@sha256:...")),
}
#: Launchers that take these words first, as another name of one above.
_LONG: Final = {"npm exec": "npx", "pnpm dlx": "npx", "yarn dlx": "npx", "uv tool": "uvx"}
_SCRIPTS: Final = (".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".rb", ".sh", ".jar", ".dll")
_PACKAGES: Final = ("-p", "--package", "--from", "--spec", "--with")
_VALUES: Final = ("-c", "--call", "--python", "--index-url", "--index", "--registry")


def resolve_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command whose program is named by its whole path.

    Raises: BriefError: there is no such program. Refused: it fetches a program of no certain version.
    """
    found = shutil.which(command[0]) if command else None
    if found is None:
        what = f"there is no program {command[0]!r}" if command else "the command is missing"
        remedy = "batos grants add mcp NAME -- PROGRAM ARGUMENTS, or batos grants add mcp NAME URL."
        raise BriefError(what, field="args.command", remedy=remedy)
    check_pinned(command)
    return (str(Path(found).absolute()), *command[1:])


def check_pinned(command: Sequence[str]) -> None:
    """Raise Refused where a launcher within a command would fetch a package of whatever version there is."""
    said = [word for each in command for word in each.split()]
    for place, word in enumerate(said):
        name = _LONG.get(" ".join((Path(word).name, *said[place + 1 : place + 2])), Path(word).name)
        if name not in _LAUNCHERS:
            continue
        form, example = _LAUNCHERS[name]
        packages = _packages(said[place + 1 :], is_image=form is _IMAGE)
        loose = next((each for each in packages if not form.fullmatch(each)), None)
        if loose is not None or not packages:
            what = f"{name} would fetch {loose or 'a program'} in whatever version there is then"
            raise Refused(what, field="args.command", remedy=f"Name one version: {example}.")


def _packages(words: Sequence[str], *, is_image: bool) -> list[str]:
    """Return what a launcher fetches: the packages of its options, else the first word that is no option."""
    if is_image:
        return [each for each in words if "@sha256:" in each][:1]
    named, left = [], list(words)
    while left:
        word = left.pop(0)
        option, _, value = word.partition("=")
        if option in _PACKAGES:
            named.append(value or (left.pop(0) if left else ""))
        elif word in _VALUES:
            left[:1] = []
        elif not word.startswith("-") and word not in ("run", "exec", "dlx", "tool"):
            return named or [word]
    return named


def digest_files(command: Sequence[str]) -> dict[str, str]:
    """Return the digest of each program and script that a command names by its whole path; data may change.

    Raises: BriefError: one cannot be read.
    """
    found = {}
    for path in (Path(each) for each in command if each.startswith("/")):
        try:
            if path.is_file() and (os.access(path, os.X_OK) or path.suffix in _SCRIPTS):
                status = path.stat()
                found[str(path)] = _digest(path, (status.st_mtime_ns, status.st_size, status.st_ino))
        except OSError as error:
            raise BriefError(f"{path} cannot be read: {error.strerror}", field="args.command") from error
    return found


@lru_cache(maxsize=64)
def _digest(path: Path, _mark: tuple[int, int, int]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
