"""Names of memories as a person types them: ids, sources, and paths of files, also of files that were deleted."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

from batos.cli.doors.door import Opened
from batos.client.wire.pending import OnEvent
from batos.protocol.errors import NotFound

#: The arguments of verbs that name memories.
_NAMING: Final = ("documents", "document", "source", "target")


#: The longest source.
_SOURCE: Final = 4_096


def source_of(path: Path) -> str:
    """Return the source of a file, also of one that is not there: its absolute path as text.

    Raises: OSError, RuntimeError, ValueError: there can be no such file.
    """
    return shorten_source(os.fsencode(path.resolve()).decode("utf-8", "replace"))


def shorten_source(source: str) -> str:
    """Return a source; of one that is too long a digest stands for the end."""
    if len(source) <= _SOURCE:
        return source
    digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    return f"{source[: _SOURCE - len(digest) - 1]}~{digest}"


def exists(path: str) -> bool:
    """Test if there is a file or folder of this name; a text is none."""
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # a text that is too long for a path
        return False


def place_of(named: str) -> str:
    """Return the source of a file that is there as `remember` keeps it, else the name as given."""
    return source_of(Path(named)) if exists(named) else named


def deleted_place(named: str) -> str:
    """Return the source that a name has if it is the path of a file that is not there any more; "" if it is none."""
    try:
        place = "" if not named or exists(named) else source_of(Path(named))
    except (OSError, RuntimeError, ValueError):  # a text that is too long for a path, or links in a circle
        return ""
    return "" if place == named else place


async def ask_of_memories(
    opened: Opened, verb: str, args: Mapping[str, object], on_event: OnEvent | None = None
) -> dict[str, object]:
    """Ask a verb; a name that it does not find is looked for as the path of a file that was deleted.

    Raises: NotFound: it is not found so either.
    """
    left = {name: place for name in _names_in(args) if (place := deleted_place(name))}
    told: dict[str, NotFound] = {}
    async with opened as way:
        while True:
            try:
                found = await way.call(verb, args, on_event)
            except NotFound as error:
                missing = next((name for name in left if repr(name) in error.message), None)
                if missing is None:  # the error of a path is that of the name that was given
                    raise next((told[each] for each in told if repr(each) in error.message), error) from None
                told[left[missing]] = error
            else:
                missing = next(iter(left), None) if found.get("recalled") == [] else None
                if missing is None:
                    return found
            args = _with_place(args, missing, left.pop(missing))


async def erased_place(opened: Opened, args: Mapping[str, object]) -> str:
    """Return the target of an erasure: the path of a file that was deleted, where only this names a memory."""
    target = str(args["target"])
    place = "" if args["words"] else deleted_place(target)
    if not place or not ("/" in target or Path(target).suffix):  # each look plans an erasure
        return target
    async with opened as way:
        for each in (target, place):
            try:
                planned = await way.call("erase", {**args, "target": each, "dry_run": True})
            except NotFound:
                continue
            if planned["kind"] != "words":
                return each
    return target


def _names_in(args: Mapping[str, Any]) -> list[str]:
    given = (args[key] for key in _NAMING if key in args)
    return [name for each in given for name in ([each] if isinstance(each, str) else each)]


def _with_place(args: Mapping[str, Any], named: str, place: str) -> dict[str, object]:
    """Return arguments with the place of a file instead of a name."""
    return {key: _replace_name(value, named, place) if key in _NAMING else value for key, value in args.items()}


def _replace_name(value: str | Collection[str], named: str, place: str) -> str | list[str]:
    if isinstance(value, str):
        return place if value == named else value
    return [place if each == named else each for each in value]
